//! Runs `create-agency` under Lambda. Written by `cargo generate`.

use shared::prelude::{Agency, Create};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Create<Agency>>(&routes::CREATE_AGENCY))
}
