//! Runs `update-intent` under Lambda. Written by `cargo generate`.

use shared::prelude::{Intent, Update};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Update<Intent>>(&routes::UPDATE_INTENT))
}
