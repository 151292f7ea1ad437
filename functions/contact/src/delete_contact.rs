//! `DELETE /api/v1/contact/{contact_id}`: deletes a contact. Its conversations stay.

use shared::prelude::*;

pub type DeleteContact = Delete<Contact>;
