//! Runs `close-conversation` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<close_conversation::CloseConversation>())
}
