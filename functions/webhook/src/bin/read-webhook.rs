//! Runs `read-webhook` under Lambda. Written by `cargo generate`.

use shared::prelude::{Read, Webhook};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<Webhook>>(&routes::READ_WEBHOOK))
}
