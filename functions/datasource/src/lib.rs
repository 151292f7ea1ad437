//! The operations of the record `datasource`. Written by `cargo generate`.

mod delete_linked_assistant_datasource;

pub use delete_linked_assistant_datasource::DeleteLinkedAssistantDatasource;
