//! On the table's stream: when a conversation is closed, its assistant's webhook gets a delivery. Nothing is sent from here.

use std::collections::BTreeMap;

use shared::prelude::events::*;
use shared::records::conversation::Conversation;
use shared::table::keys::conversation_of;

pub struct ConversationClosed;

impl StreamConsumer for ConversationClosed {
    const NAME: &'static str = "conversation-closed";

    async fn handle(cx: &EventContext<'_>, batch: &[Change]) -> Handled {
        let (mut closed, mut stopped) = (BTreeMap::new(), Vec::new());
        for (at, change) in batch.iter().enumerate() {
            let Some(tenant) = conversation_of(&change.key()) else { continue };
            match change.record::<Conversation>() {
                Ok(Some(conversation)) if !conversation.is_open() => {
                    let (_, conversations) = closed.entry(tenant.org()).or_insert((tenant, Vec::new()));
                    conversations.push((at, conversation));
                }
                Ok(_) => {}
                Err(error) => stopped.push(Unhandled::at(at, error)),
            }
        }
        for (tenant, conversations) in closed.into_values() {
            let first = conversations.first().map_or(0, |(at, _)| *at);
            let conversations: Vec<_> = conversations.into_iter().map(|(_, conversation)| conversation).collect();
            let announced = cx.table(tenant).announce_closed(&conversations, cx.service.clock.now()).await;
            stopped.extend(announced.err().map(|error| Unhandled::at(first, error)));
        }
        // All organisations have their turn, whatever becomes of one: what stands before the place that is told counts as handled.
        Unhandled::first(stopped)
    }
}
