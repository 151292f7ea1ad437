//! `GET /api/v1/contact`: a page of the contacts.

use shared::prelude::*;

pub type ListContacts = List<Contact>;
