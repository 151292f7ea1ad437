//! Runs `delete-datasource-file` under Lambda. Written by `cargo generate`.

use shared::prelude::{DatasourceFile, Delete};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<DatasourceFile>>(&routes::DELETE_DATASOURCE_FILE))
}
