//! Runs `delete-assistant` under Lambda. Written by `cargo generate`.

use shared::prelude::{Assistant, Delete};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Assistant>>(&routes::DELETE_ASSISTANT))
}
