//! `GET /api/v1/datasource`: a page of the data sources; the query can filter them by type and status.

use shared::prelude::*;

pub type ListDatasources = List<Datasource>;
