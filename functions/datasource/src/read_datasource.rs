//! `GET /api/v1/datasource/{datasource_id}`: a data source.

use shared::prelude::*;

pub type ReadDatasource = Read<Datasource>;
