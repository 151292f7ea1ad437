//! The records of the demo set that no single request creates: campaigns with their contacts, conversations with their
//! messages, deliveries.

use serde::Deserialize;
use serde_json::{Value, json};
use shared::records::campaign;
use shared::records::campaign::{Campaign, CampaignContact, ContactStatus, Unreached};
use shared::records::conversation;
use shared::records::conversation::{Conversation, Message};
use shared::records::delivery::{self, DeliveryOutcome};
use shared::records::delivery::{Delivery, NewDelivery};
use shared::records::event::{self, Event, EventId, EventKind};
use shared::request::route::Route;
use shared::routes;
use shared::table::Table;
use shared::table::declaration::Declared as _;
use shared::table::filters::{Move, follow};
use shared::table::reservation::remove_tokens;
use shared::table::stored::Listed;
use shared::values::id::{ConversationId, Id, WebhookId};
use shared::values::json::JsonObject;
use shared::values::time::Timestamp;

use crate::Trouble;
use crate::api::ApiRequest;
use crate::demo::{Loader, appended, id_of, record_of, request_of_all, trouble};

/// The year 2100, in milliseconds since 1970.
const NEVER: i64 = 4_102_444_800_000;

impl Loader<'_> {
    /// Inserts campaigns: first the running ones with their messages, which are stored with them, and then the ones
    /// that begin later, with their contacts.
    pub(super) async fn add_campaigns(&self, records: Vec<Value>) -> Result<(), Trouble> {
        let (later, mut rows): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|record| record["contact_ids"].is_array());
        for row in &mut rows {
            campaign::stage_message(&self.table, &record_of(row.clone())?).await.map_err(trouble)?;
            row["message"] = Value::Null;
        }
        let first = rows.len();
        self.insert::<Campaign>(None, (), rows).await?;
        let have = appended::<Campaign>(&self.table, ()).await?;
        for record in later.into_iter().skip(have - first) {
            self.ask(id_of(&record)?, request_of_all(&routes::CREATE_CAMPAIGN, &record)).await?;
        }
        remove_tokens::<Campaign>(&self.table, ()).await.map_err(trouble)
    }

    /// Opens the conversations, adds their messages, and closes the ones that must be closed.
    pub(super) async fn converse(&self, records: Vec<Value>, time: Timestamp) -> Result<(), Trouble> {
        let (table, mut moves, mut closed) = (&self.table, Vec::new(), Vec::new());
        for (place, record) in records.into_iter().enumerate() {
            let Spoken { conversation, messages } = record_of(record.clone())?;
            // Without a stream in the stack, no function writes the filters, so the loader writes them.
            let (key, is) = (table.key::<Conversation>(conversation.id), Some(conversation.terms()));
            moves.push(Move { key, was: None, is, made_at: conversation.dated() });
            if appended::<Conversation>(table, ()).await? > place {
                continue;
            }
            let id = conversation.id;
            let opened = ["assistant_id", "widget_id", "contact_id", "device_type"];
            let body = opened.iter().filter_map(|name| Some(((*name).to_owned(), record.get(name)?.clone())));
            self.ask(id.0, ApiRequest::of(&routes::OPEN_CONVERSATION).body(&body.collect())).await?;
            let of_it = |route| ApiRequest::of(route).parameter("conversation_id", id);
            for Message { id: message, sender_type, message_type, text, .. } in messages {
                let said = json!({"sender_type": sender_type, "message_type": message_type, "text": text});
                self.ask(message.0, of_it(&routes::ADD_MESSAGE).body(&said)).await?;
            }
            if !conversation.is_open() {
                self.ask(id.0, of_it(&routes::CLOSE_CONVERSATION)).await?;
                closed.push(conversation);
            }
        }
        conversation::forget_threads(table, closed.iter()).await.map_err(trouble)?;
        remove_tokens::<Conversation>(table, ()).await.map_err(trouble)?;
        follow::<Conversation>(table, &moves, time).await.map_err(trouble)
    }
}

impl Loader<'_> {
    /// Inserts what was captured in conversations by `route`, and writes its filters: see [`Loader::converse`].
    pub(super) async fn capture<R: Listed<Of = (), Id: Id>>(
        &self,
        route: &'static Route,
        records: Vec<Value>,
        time: Timestamp,
    ) -> Result<(), Trouble> {
        let (table, mut moves) = (&self.table, Vec::new());
        let ids = records.iter().map(id_of).collect::<Result<Vec<_>, _>>()?;
        self.insert::<R>(Some(route), (), records).await?;
        for id in ids {
            let row: R = table.get(id.into()).await.map_err(trouble)?;
            moves.push(Move { key: table.key::<R>(id.into()), was: None, is: Some(row.terms()), made_at: row.dated() });
        }
        follow::<R>(table, &moves, time).await.map_err(trouble)
    }
}

/// Queues the contacts of campaigns, and sets the failed ones to failed.
pub(super) async fn add_campaign_contacts(table: &Table, records: Vec<Value>) -> Result<(), Trouble> {
    let contacts = records.into_iter().map(record_of).collect::<Result<Vec<CampaignContact>, _>>()?;
    let queue = |contact: CampaignContact| CampaignContact { status: ContactStatus::Queued, error: None, ..contact };
    let queued: Vec<_> = contacts.iter().cloned().map(queue).collect();
    campaign::stage_contacts(table, &queued, false).await.map_err(trouble)?;
    for (contact, queued) in contacts.iter().zip(&queued) {
        if let Some(error) = &contact.error {
            let campaign = table.get(contact.campaign_id).await.map_err(trouble)?;
            let why = Unreached::Failed(error);
            campaign::end_contact(table, &campaign, queued, why, contact.updated_at).await.map_err(trouble)?;
        }
    }
    Ok(())
}

/// A conversation of the demo set, with its messages.
#[derive(Debug, Deserialize)]
struct Spoken {
    #[serde(flatten)]
    conversation: Conversation,
    messages: Vec<Message>,
}

/// Puts the events of closed conversations into the log. They never expire, so the demo set has events at any time.
pub(super) async fn log_events(table: &Table, records: Vec<Value>) -> Result<(), Trouble> {
    #[derive(Debug, Deserialize)]
    struct ClosedEvent {
        conversation_id: ConversationId,
    }
    for record in records {
        let ClosedEvent { conversation_id } = record_of(record)?;
        let closed: Conversation = table.get(conversation_id).await.map_err(trouble)?;
        let at = (closed.closed_at.unwrap_or(closed.updated_at), closed.version.number() + 1);
        let data = JsonObject::of(&closed).unwrap_or_default();
        let event = Event::new(EventKind::CONVERSATION_CLOSED, EventId(conversation_id.0), at, data);
        let event = Event { conversation: Some(conversation_id), ..event };
        event::append(table, &[event], None, Timestamp::from_unix_millis(NEVER)).await.map_err(trouble)?;
    }
    Ok(())
}

/// Adds deliveries of closed conversations and gives them up at once: no event of the demo set is ever sent.
pub(super) async fn deliver(table: &Table, records: Vec<Value>) -> Result<(), Trouble> {
    #[derive(Debug, Deserialize)]
    struct GivenUpDelivery {
        webhook_id: WebhookId,
        conversation_id: ConversationId,
        error: String,
    }
    for record in records {
        let GivenUpDelivery { webhook_id, conversation_id, error } = record_of(record)?;
        let closed: Conversation = table.get(conversation_id).await.map_err(trouble)?;
        let new = NewDelivery::closed(&closed);
        for id in delivery::enqueue(table, webhook_id.into(), std::slice::from_ref(&new), closed.created_at)
            .await
            .map_err(trouble)?
        {
            let was = Delivery::new(id, new.clone(), closed.created_at);
            let is = was.clone().decide(DeliveryOutcome::GivenUp { reason: error.clone() }, closed.created_at);
            table.replace((webhook_id.into(), id), &was, is).await.map_err(trouble)?;
        }
        remove_tokens::<Delivery>(table, webhook_id.into()).await.map_err(trouble)?;
    }
    Ok(())
}
