//! Runs `delete-intent` under Lambda. Written by `cargo generate`.

use shared::prelude::{Delete, Intent};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Intent>>(&routes::DELETE_INTENT))
}
