//! The operations of the record `contact`. Written by `cargo generate`.

mod delete_contacts;
mod import_contacts;
mod upsert_contact;

pub use delete_contacts::DeleteContacts;
pub use import_contacts::ImportContacts;
pub use upsert_contact::UpsertContact;
