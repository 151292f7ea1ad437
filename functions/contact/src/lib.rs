//! The operations of the record `contact`. Written by `cargo generate`.

mod delete_contacts;
mod import_contacts;
mod list_contacts;
mod update_contact;
mod upsert_contact;

pub use delete_contacts::DeleteContacts;
pub use import_contacts::ImportContacts;
pub use list_contacts::ListContacts;
pub use update_contact::UpdateContact;
pub use upsert_contact::UpsertContact;
