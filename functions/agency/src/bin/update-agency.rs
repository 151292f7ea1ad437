//! Runs `update-agency` under Lambda. Written by `cargo generate`.

use shared::prelude::{Agency, Update};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Update<Agency>>(&routes::UPDATE_AGENCY))
}
