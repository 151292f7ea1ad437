//! Runs `list-suppressions` under Lambda. Written by `cargo generate`.

use shared::prelude::{List, Suppression};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Suppression>>(&routes::LIST_SUPPRESSIONS))
}
