//! `GET /api/v1/conversation`: a page of the conversations; the query can filter them by status and assistant.

use shared::prelude::*;

pub type ListConversations = List<Conversation>;
