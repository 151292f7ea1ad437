//! Runs `create-assistant` under Lambda. Written by `cargo generate`.

use shared::prelude::{Assistant, Create};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Create<Assistant>>(&routes::CREATE_ASSISTANT))
}
