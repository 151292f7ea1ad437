//! What operators read is what is deployed.
