//! Runs `create-tag` under Lambda. Written by `cargo generate`.

use shared::prelude::{Create, Tag};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Create<Tag>>(&routes::CREATE_TAG))
}
