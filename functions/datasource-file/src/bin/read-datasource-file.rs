//! Runs `read-datasource-file` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<datasource_file::ReadDatasourceFile>(&routes::READ_DATASOURCE_FILE))
}
