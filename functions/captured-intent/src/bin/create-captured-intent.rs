//! Runs `create-captured-intent` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<captured_intent::CreateCapturedIntent>(&routes::CREATE_CAPTURED_INTENT))
}
