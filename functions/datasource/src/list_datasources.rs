//! `GET /api/v1/datasource`: a page of the organisation's data sources, oldest first. `ds_type` and `ds_status` select some of them.

use shared::prelude::*;

pub type ListDatasources = List<Datasource>;
