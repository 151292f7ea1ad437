//! Runs `list-agencies` under Lambda. Written by `cargo generate`.

use shared::prelude::{Agency, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Agency>>(&routes::LIST_AGENCIES))
}
