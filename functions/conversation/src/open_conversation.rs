//! `POST /api/v1/conversation`: opens a conversation with an assistant. Add messages with `add-message`, and close it with `close-conversation`.

use shared::prelude::*;

pub type OpenConversation = Create<Conversation>;
