//! `GET /api/v1/conversation`: a page of the conversations, of one status or one assistant where the query says so.

use shared::prelude::*;

pub type ListConversations = List<Conversation>;
