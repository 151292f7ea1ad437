//! Runs `read-assistant` under Lambda. Written by `cargo generate`.

use shared::prelude::{Assistant, Read};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<Assistant>>(&routes::READ_ASSISTANT))
}
