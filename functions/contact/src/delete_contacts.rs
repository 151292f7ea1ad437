//! `DELETE /api/v1/contact/multiple`: deletes up to 500 contacts, each as `delete-contact` does. The answer has a result for each.

use shared::prelude::*;

pub type DeleteContacts = DeleteMany<Contact>;
