//! Runs `update-tag` under Lambda. Written by `cargo generate`.

use shared::prelude::{Tag, Update};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Update<Tag>>(&routes::UPDATE_TAG))
}
