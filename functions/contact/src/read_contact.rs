//! `GET /api/v1/contact/{contact_id}`: a contact.

use shared::prelude::*;

pub type ReadContact = Read<Contact>;
