//! Runs `list-webhooks` under Lambda. Written by `cargo generate`.

use shared::prelude::{List, Webhook};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Webhook>>(&routes::LIST_WEBHOOKS))
}
