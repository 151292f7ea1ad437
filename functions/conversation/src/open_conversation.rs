//! `POST /api/v1/conversation`: begins a conversation of an assistant.

use shared::prelude::*;

pub type OpenConversation = Create<Conversation>;
