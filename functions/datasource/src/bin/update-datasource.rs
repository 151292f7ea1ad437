//! Runs `update-datasource` under Lambda. Written by `cargo generate`.

use shared::prelude::{Datasource, Update};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Update<Datasource>>(&routes::UPDATE_DATASOURCE))
}
