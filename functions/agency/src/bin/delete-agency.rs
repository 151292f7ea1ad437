//! Runs `delete-agency` under Lambda. Written by `cargo generate`.

use shared::prelude::{Agency, Delete};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Agency>>(&routes::DELETE_AGENCY))
}
