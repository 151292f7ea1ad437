//! The operations of the record `captured-intent`. Written by `cargo generate`.

mod create_captured_intent;

pub use create_captured_intent::CreateCapturedIntent;
