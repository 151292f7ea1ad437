//! Runs `read-suppression` under Lambda. Written by `cargo generate`.

use shared::prelude::{Read, Suppression};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<Suppression>>(&routes::READ_SUPPRESSION))
}
