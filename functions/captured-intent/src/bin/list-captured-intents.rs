//! Runs `list-captured-intents` under Lambda. Written by `cargo generate`.

use shared::prelude::{CapturedIntent, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<CapturedIntent>>(&routes::LIST_CAPTURED_INTENTS))
}
