//! Runs `read-captured-intent` under Lambda. Written by `cargo generate`.

use shared::prelude::{CapturedIntent, Read};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<CapturedIntent>>(&routes::READ_CAPTURED_INTENT))
}
