//! Runs `unlink-assistant-intent` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<assistant::UnlinkAssistantIntent>(&routes::UNLINK_ASSISTANT_INTENT))
}
