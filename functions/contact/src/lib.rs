//! The operations of the record `contact`. Written by `UPDATE=1 cargo test`.

mod list_contacts;
mod read_contact;

pub use list_contacts::ListContacts;
pub use read_contact::ReadContact;
