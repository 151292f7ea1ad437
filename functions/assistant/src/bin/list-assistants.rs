//! Runs `list-assistants` under Lambda. Written by `cargo generate`.

use shared::prelude::{Assistant, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Assistant>>(&routes::LIST_ASSISTANTS))
}
