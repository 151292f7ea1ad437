//! Runs `list-intents` under Lambda. Written by `cargo generate`.

use shared::prelude::{Intent, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Intent>>(&routes::LIST_INTENTS))
}
