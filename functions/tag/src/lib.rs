//! The operations of the record `tag`. Written by `UPDATE=1 cargo test`.

mod delete_tag;

pub use delete_tag::DeleteTag;
