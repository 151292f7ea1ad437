//! Runs `delete-tag` under Lambda. Written by `cargo generate`.

use shared::prelude::{Delete, Tag};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Tag>>(&routes::DELETE_TAG))
}
