//! Runs `read-link-tag-entity-list` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<read_link_tag_entity_list::ReadLinkTagEntityList>())
}
