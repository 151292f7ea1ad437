//! The operations of the record `datasource`. Written by `cargo generate`.

mod create_datasource;
mod delete_datasource;
mod delete_linked_assistant_datasource;
mod list_datasources;
mod read_datasource;
mod update_datasource;

pub use create_datasource::CreateDatasource;
pub use delete_datasource::DeleteDatasource;
pub use delete_linked_assistant_datasource::DeleteLinkedAssistantDatasource;
pub use list_datasources::ListDatasources;
pub use read_datasource::ReadDatasource;
pub use update_datasource::UpdateDatasource;
