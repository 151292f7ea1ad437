//! Runs `delete-contact-custom-field` under Lambda. Written by `cargo generate`.

use shared::prelude::{ContactCustomField, Delete};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<ContactCustomField>>(&routes::DELETE_CONTACT_CUSTOM_FIELD))
}
