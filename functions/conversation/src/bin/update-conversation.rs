//! Runs `update-conversation` under Lambda. Written by `cargo generate`.

use shared::prelude::{Conversation, Update};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Update<Conversation>>(&routes::UPDATE_CONVERSATION))
}
