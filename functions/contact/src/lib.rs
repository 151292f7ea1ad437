//! The operations of the record `contact`. Written by `cargo generate`.

mod delete_contact;
mod import_contacts;
mod list_contacts;
mod read_contact;
mod update_contact;
mod upsert_contact;

pub use delete_contact::DeleteContact;
pub use import_contacts::ImportContacts;
pub use list_contacts::ListContacts;
pub use read_contact::ReadContact;
pub use update_contact::UpdateContact;
pub use upsert_contact::UpsertContact;
