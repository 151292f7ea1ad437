//! `POST /api/v1/datasource`: creates an empty data source. Add files to it, and link it to assistants.

use shared::prelude::*;

pub type CreateDatasource = Create<Datasource>;
