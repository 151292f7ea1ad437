//! Runs `create-datasource` under Lambda. Written by `cargo generate`.

use shared::prelude::{Create, Datasource};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Create<Datasource>>(&routes::CREATE_DATASOURCE))
}
