//! Runs `list-datasource-files` under Lambda. Written by `cargo generate`.

use shared::prelude::{DatasourceFile, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<DatasourceFile>>(&routes::LIST_DATASOURCE_FILES))
}
