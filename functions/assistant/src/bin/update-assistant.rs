//! Runs `update-assistant` under Lambda. Written by `cargo generate`.

use shared::prelude::{Assistant, Update};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Update<Assistant>>(&routes::UPDATE_ASSISTANT))
}
