//! `POST /api/v1/conversation`: opens a conversation of an assistant.

use shared::prelude::*;

pub type OpenConversation = Create<Conversation>;
