//! Runs `delete-contact` under Lambda. Written by `cargo generate`.

use shared::prelude::{Contact, Delete};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Contact>>(&routes::DELETE_CONTACT))
}
