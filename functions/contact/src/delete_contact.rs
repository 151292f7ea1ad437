//! `DELETE /api/v1/contact/{contact_id}`: removes a contact.

use shared::prelude::*;

pub type DeleteContact = Delete<Contact>;
