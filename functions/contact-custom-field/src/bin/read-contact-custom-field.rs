//! Runs `read-contact-custom-field` under Lambda. Written by `cargo generate`.

use shared::prelude::{ContactCustomField, Read};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<ContactCustomField>>(&routes::READ_CONTACT_CUSTOM_FIELD))
}
