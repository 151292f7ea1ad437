//! The plain operations: create, read, list, update and delete, generic over all listed records. [`DeleteMany`] is
//! for a request that removes many.
//!
//! A plain operation has no file: its binary runs `Read<Tag>`. An operation that does more implements
//! [`Operation`](crate::request::pipeline::Operation) itself.

mod create;
mod delete;
mod delete_many;
pub mod import;
mod list;
pub mod new;
mod read;
mod update;

pub use create::Create;
pub use delete::Delete;
pub use delete_many::{DeleteMany, DeletedRecords, ManyIds, delete_many};
pub use list::List;
pub use read::Read;
pub use update::{Update, update};
