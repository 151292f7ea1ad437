//! Runs `read-conversation-transcript` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<conversation::ReadConversationTranscript>(&routes::READ_CONVERSATION_TRANSCRIPT))
}
