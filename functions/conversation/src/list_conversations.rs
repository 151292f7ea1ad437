//! `GET /api/v1/conversation`: a page of the organisation's conversations, oldest first. `status`, `assistant_id`, `widget_id`, `contact_id` and dates select some of them.

use shared::prelude::*;

pub type ListConversations = List<Conversation>;
