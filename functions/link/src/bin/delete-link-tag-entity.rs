//! Runs `delete-link-tag-entity` under Lambda. Written by `cargo generate`.

use shared::prelude::{Delete, Link};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Link>>(&routes::DELETE_LINK_TAG_ENTITY))
}
