//! The operations of the record `datasource`. Written by `UPDATE=1 cargo test`.

mod delete_linked_assistant_datasource;

pub use delete_linked_assistant_datasource::DeleteLinkedAssistantDatasource;
