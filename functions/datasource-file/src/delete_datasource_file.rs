//! `DELETE /api/v1/datasource/datasourcefile/{datasourcefile_id}`: removes a file of a data source.

use shared::prelude::*;

pub type DeleteDatasourceFile = Delete<DatasourceFile>;
