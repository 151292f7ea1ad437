//! Runs `list-contacts` under Lambda. Written by `cargo generate`.

use shared::prelude::{Contact, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Contact>>(&routes::LIST_CONTACTS))
}
