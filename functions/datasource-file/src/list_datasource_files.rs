//! `GET /api/v1/datasource/{datasource_id}/data_source_files`: a page of the files of a data source.

use shared::prelude::*;

pub type ListDatasourceFiles = List<DatasourceFile>;
