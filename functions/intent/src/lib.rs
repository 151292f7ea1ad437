//! The operations of the record `intent`. Written by `UPDATE=1 cargo test`.

mod delete_intent;

pub use delete_intent::DeleteIntent;
