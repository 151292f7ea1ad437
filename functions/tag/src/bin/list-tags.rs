//! Runs `list-tags` under Lambda. Written by `cargo generate`.

use shared::prelude::{List, Tag};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Tag>>(&routes::LIST_TAGS))
}
