//! Runs `conversation-closed` under Lambda.

use shared::stream::Consumer;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run_consumer(Consumer::of::<conversation_closed::ConversationClosed>())
}
