//! Runs `read-tag` under Lambda. Written by `cargo generate`.

use shared::prelude::{Read, Tag};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<Tag>>(&routes::READ_TAG))
}
