//! Runs `list-contact-custom-fields` under Lambda. Written by `cargo generate`.

use shared::prelude::{ContactCustomField, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<ContactCustomField>>(&routes::LIST_CONTACT_CUSTOM_FIELDS))
}
