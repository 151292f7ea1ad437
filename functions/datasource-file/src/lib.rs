//! The operations of the record `datasource-file`. Written by `cargo generate`.

mod add_datasource_text_blob;
mod create_datasource_file;
mod delete_datasource_file;
mod list_datasource_files;
mod read_datasource_file;

pub use add_datasource_text_blob::AddDatasourceTextBlob;
pub use create_datasource_file::CreateDatasourceFile;
pub use delete_datasource_file::DeleteDatasourceFile;
pub use list_datasource_files::ListDatasourceFiles;
pub use read_datasource_file::ReadDatasourceFile;
