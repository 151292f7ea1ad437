//! Runs `read-intent` under Lambda. Written by `cargo generate`.

use shared::prelude::{Intent, Read};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<Intent>>(&routes::READ_INTENT))
}
