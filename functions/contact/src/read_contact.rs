//! `GET /api/v1/contact/{contact_id}`: one contact.

use shared::prelude::*;

pub type ReadContact = Read<Contact>;
