//! `DELETE /api/v1/datasource/{datasource_id}`: removes a data source.

use shared::prelude::*;

pub type DeleteDatasource = Delete<Datasource>;
