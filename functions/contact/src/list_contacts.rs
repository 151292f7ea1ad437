//! `GET /api/v1/contact`: a page of the organisation's contacts, oldest first. `email` and `phone_number` select the one contact that has them.

use shared::prelude::*;

pub type ListContacts = List<Contact>;
