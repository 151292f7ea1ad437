//! `PUT /api/v1/contact/{contact_id}`: changes a contact; absent fields keep their values.

use shared::prelude::*;

pub type UpdateContact = Update<Contact>;
