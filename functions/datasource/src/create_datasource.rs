//! `POST /api/v1/datasource`: makes a data source, which is empty.

use shared::prelude::*;

pub type CreateDatasource = Create<Datasource>;
