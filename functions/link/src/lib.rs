//! The operations of the record `link`. Written by `UPDATE=1 cargo test`.

mod read_link_tag_entity_list;

pub use read_link_tag_entity_list::ReadLinkTagEntityList;
