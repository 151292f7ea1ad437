//! The operations of the record `tag`. Written by `cargo generate`.

mod delete_tags;

pub use delete_tags::DeleteTags;
