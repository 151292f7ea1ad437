//! The operations of the record `link`. Written by `cargo generate`.

mod create_link_tag_entity;
mod read_link_tag_entity_list;

pub use create_link_tag_entity::CreateLinkTagEntity;
pub use read_link_tag_entity_list::ReadLinkTagEntityList;
