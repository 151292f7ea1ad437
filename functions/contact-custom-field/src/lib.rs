//! The operations of the record `contact-custom-field`. Written by `cargo generate`.

mod create_contact_custom_field;
mod update_contact_custom_field;

pub use create_contact_custom_field::CreateContactCustomField;
pub use update_contact_custom_field::UpdateContactCustomField;
