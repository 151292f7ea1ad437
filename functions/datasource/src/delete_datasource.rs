//! `DELETE /api/v1/datasource/{datasource_id}`: deletes a data source with its files, and its links to assistants and tags.

use shared::prelude::*;

pub type DeleteDatasource = Delete<Datasource>;
