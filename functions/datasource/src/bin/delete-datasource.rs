//! Runs `delete-datasource` under Lambda. Written by `cargo generate`.

use shared::prelude::{Datasource, Delete};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Datasource>>(&routes::DELETE_DATASOURCE))
}
