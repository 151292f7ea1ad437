//! The operations of the record `datasource-file`. Written by `UPDATE=1 cargo test`.

mod delete_datasource_file;

pub use delete_datasource_file::DeleteDatasourceFile;
