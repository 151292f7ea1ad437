//! Runs `list-datasources` under Lambda. Written by `cargo generate`.

use shared::prelude::{Datasource, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Datasource>>(&routes::LIST_DATASOURCES))
}
