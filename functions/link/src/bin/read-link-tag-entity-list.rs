//! Runs `read-link-tag-entity-list` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<link::ReadLinkTagEntityList>(&routes::READ_LINK_TAG_ENTITY_LIST))
}
