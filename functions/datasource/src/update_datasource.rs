//! `PUT /api/v1/datasource/{datasource_id}`: changes a data source; absent fields keep their values.

use shared::prelude::*;

pub type UpdateDatasource = Update<Datasource>;
