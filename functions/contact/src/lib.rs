//! The operations of the record `contact`. Written by `UPDATE=1 cargo test`.

mod delete_contact;
mod import_contacts;
mod update_contact;
mod upsert_contact;

pub use delete_contact::DeleteContact;
pub use import_contacts::ImportContacts;
pub use update_contact::UpdateContact;
pub use upsert_contact::UpsertContact;
