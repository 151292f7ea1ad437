//! The operations of the record `datasource-file`. Written by `cargo generate`.

mod add_datasource_text_blob;
mod create_datasource_file;
mod read_datasource_file;

pub use add_datasource_text_blob::AddDatasourceTextBlob;
pub use create_datasource_file::CreateDatasourceFile;
pub use read_datasource_file::ReadDatasourceFile;
