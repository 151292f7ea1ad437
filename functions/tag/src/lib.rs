//! The operations of the record `tag`. Written by `cargo generate`.

mod create_tag;
mod delete_tag;
mod list_tags;
mod read_tag;
mod update_tag;

pub use create_tag::CreateTag;
pub use delete_tag::DeleteTag;
pub use list_tags::ListTags;
pub use read_tag::ReadTag;
pub use update_tag::UpdateTag;
