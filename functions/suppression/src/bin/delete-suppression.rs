//! Runs `delete-suppression` under Lambda. Written by `cargo generate`.

use shared::prelude::{Delete, Suppression};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Suppression>>(&routes::DELETE_SUPPRESSION))
}
