//! `DELETE /api/v1/datasource/datasourcefile/{datasourcefile_id}`: deletes a file of a data source, with its bytes.

use shared::prelude::*;

pub type DeleteDatasourceFile = Delete<DatasourceFile>;
