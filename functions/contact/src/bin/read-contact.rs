//! Runs `read-contact` under Lambda. Written by `cargo generate`.

use shared::prelude::{Contact, Read};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<Contact>>(&routes::READ_CONTACT))
}
