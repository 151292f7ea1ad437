//! Runs `list-conversations` under Lambda. Written by `cargo generate`.

use shared::prelude::{Conversation, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Conversation>>(&routes::LIST_CONVERSATIONS))
}
