//! Runs `create-intent` under Lambda. Written by `cargo generate`.

use shared::prelude::{Create, Intent};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Create<Intent>>(&routes::CREATE_INTENT))
}
