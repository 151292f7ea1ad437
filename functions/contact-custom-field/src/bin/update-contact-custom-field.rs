//! Runs `update-contact-custom-field` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<contact_custom_field::UpdateContactCustomField>(&routes::UPDATE_CONTACT_CUSTOM_FIELD))
}
