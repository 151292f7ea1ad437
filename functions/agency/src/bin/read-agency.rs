//! Runs `read-agency` under Lambda. Written by `cargo generate`.

use shared::prelude::{Agency, Read};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<Agency>>(&routes::READ_AGENCY))
}
