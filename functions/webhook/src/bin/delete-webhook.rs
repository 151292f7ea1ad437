//! Runs `delete-webhook` under Lambda. Written by `cargo generate`.

use shared::prelude::{Delete, Webhook};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Webhook>>(&routes::DELETE_WEBHOOK))
}
