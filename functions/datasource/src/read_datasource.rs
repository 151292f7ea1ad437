//! `GET /api/v1/datasource/{datasource_id}`: one data source.

use shared::prelude::*;

pub type ReadDatasource = Read<Datasource>;
