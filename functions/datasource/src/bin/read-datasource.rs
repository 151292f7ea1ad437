//! Runs `read-datasource` under Lambda. Written by `cargo generate`.

use shared::prelude::{Datasource, Read};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<Datasource>>(&routes::READ_DATASOURCE))
}
