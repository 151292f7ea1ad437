//! The body of an event. It is made for each attempt from the records at that time. In between may have changed the
//! contact, and what update-conversation changes: a copy of all records with every delivery would cost each contact of a
//! campaign more writes.

use serde::Serialize;

use crate::delivery::bounds::ResourceShare;
use crate::delivery::context::{MAKING, Said, context};
use crate::delivery::endpoint::Endpoint;
use crate::delivery::event::{CampaignData, ConversationData, EventBody, EventData, RequestedData, TestData};
use crate::delivery::outbox::Outbox;
use crate::records::campaign::{self, Campaign, CampaignContact, CampaignStatus, CampaignText, ContactStatus, TextOf};
use crate::records::contact::Contact;
use crate::records::conversation::{self, Conversation, Message, SenderType};
use crate::records::delivery::{Delivery, Subject};
use crate::records::event::{Event, EventId, EventKind, HAVE_TRANSCRIPTS, LONGEST};
use crate::request::error::Error;
use crate::table::stored::Stored;
use crate::table::{Table, TableError};
use crate::values::id::{CampaignContactId, CampaignId, ConversationId, WebhookId, WidgetId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

/// Why a delivery was not sent.
pub(super) enum Unsent {
    /// It cannot be sent.
    Impossible(&'static str),
    /// It must no longer be sent.
    Stopped(&'static str),
    /// Its campaign is paused.
    Paused(CampaignId),
    /// The window of its campaign opens at this time.
    WindowClosed(Timestamp),
    /// This process has no memory left for its body now.
    Postponed,
    /// A failure that does not depend on the delivery.
    Failed(Error),
}

impl From<Error> for Unsent {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<TableError> for Unsent {
    fn from(error: TableError) -> Self {
        Self::Failed(error.into())
    }
}

/// A body, with its share of the memory.
pub(super) struct Body {
    pub text: String,
    pub share: Option<ResourceShare>,
}

fn printed(body: &impl Serialize, share: Option<ResourceShare>) -> Result<Body, Unsent> {
    let text = serde_json::to_string(body).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(Body { text, share })
}

fn of_data(was: &Delivery, data: EventData<'_>) -> Result<Body, Unsent> {
    printed(&EventBody::of(was, data), None)
}

impl Outbox<'_> {
    /// The body of a delivery.
    pub(super) async fn body(&self, endpoint: &Endpoint, was: &Delivery) -> Result<Body, Unsent> {
        match was.subject() {
            Some(Subject::Test) => of_data(was, EventData::Test(TestData::of(WebhookId(endpoint.id.0)))),
            Some(Subject::Logged(id)) => self.logged(endpoint, was, id).await,
            Some(Subject::Closed(id)) => self.closed(&endpoint.table, was, id).await,
            Some(Subject::Campaign(id)) => self.of_campaign(endpoint, was, id).await,
            Some(Subject::Requested(id)) => requested(endpoint, was, id).await,
            None => Err(Error::Internal("a delivery of nothing".into()).into()),
        }
    }

    /// An event of the log. That of a conversation has all that was said by then. That of a user's message has what is
    /// needed to answer it, if the webhook wants that.
    async fn logged(&self, endpoint: &Endpoint, was: &Delivery, id: EventId) -> Result<Body, Unsent> {
        let table = &endpoint.table;
        let event = table.find::<Event>(id).await?;
        let event = event.ok_or(Unsent::Impossible("the event is no longer in the log"))?;
        if let Some(id) = event.conversation.filter(|_| HAVE_TRANSCRIPTS.contains(&event.event)) {
            return self.with_transcript(table, was, event, id).await;
        }
        let wants_context = event.event == EventKind::MESSAGE_CREATED && endpoint.wants_context();
        let said = if wants_context { event.data.read::<Said>() } else { None };
        match said.filter(|said| said.sender_type == SenderType::User) {
            Some(said) => self.with_context(table, was, event, &said).await,
            None => printed(&event, None),
        }
    }

    async fn with_context(&self, table: &Table, was: &Delivery, event: Event, said: &Said) -> Result<Body, Unsent> {
        let (org, patience) = (table.tenant.org(), self.patience(was));
        let making = self.bounds.memory(org, MAKING, patience).await.ok_or(Unsent::Postponed)?;
        // Boxed: otherwise every other delivery would contain its memory.
        let context = Box::pin(context(said, table, &self.service.bucket, &event, self.now())).await?;
        let data = event.data.with("context", &context);
        let data = data.ok_or_else(|| Error::Internal("a context that is no JSON".into()))?;
        let body = printed(&Event { data, ..event }, None)?;
        drop((making, context));
        let share = self.bounds.memory(org, body.text.len() as u64, patience).await.ok_or(Unsent::Postponed)?;
        Ok(Body { share: Some(share), ..body })
    }

    async fn with_transcript(
        &self,
        table: &Table,
        was: &Delivery,
        event: Event,
        id: ConversationId,
    ) -> Result<Body, Unsent> {
        let gone = || Unsent::Impossible("the conversation is gone");
        let (now, then) = (table.find::<Conversation>(id).await?.ok_or_else(gone)?, event.data.read::<Conversation>());
        let then = then.ok_or_else(gone)?;
        let path = format!("/api/v1/conversation/{id}/transcript");
        if now.text_bytes > LONGEST as u64 {
            return printed(&event.truncated(Some(path)), None);
        }
        let share = self.bounds.body(table.tenant.org(), &now, self.patience(was)).await.ok_or(Unsent::Postponed)?;
        let said = conversation::said_between(table, id, 0..then.chat_count).await?;
        let whole = JsonObject::of(&ConversationData::of(&then, &said)).filter(|data| data.len() <= LONGEST);
        let event = match whole {
            Some(data) => Event { data, ..event },
            None => event.truncated(Some(path)),
        };
        printed(&event, Some(share))
    }

    /// The event of a closed conversation. What was said never changes, so the delivery needs no copy of it.
    async fn closed(&self, table: &Table, was: &Delivery, id: ConversationId) -> Result<Body, Unsent> {
        let conversation = table.find::<Conversation>(id).await?;
        let conversation = conversation.ok_or(Unsent::Impossible("the conversation is gone"))?;
        let share =
            self.bounds.body(table.tenant.org(), &conversation, self.patience(was)).await.ok_or(Unsent::Postponed)?;
        let transcript = conversation::transcript(table, id).await?;
        let body = of_data(was, EventData::Conversation(ConversationData::of(&conversation, &transcript)))?;
        Ok(Body { share: Some(share), ..body })
    }

    /// The event for a contact of a campaign.
    async fn of_campaign(&self, endpoint: &Endpoint, was: &Delivery, id: CampaignContactId) -> Result<Body, Unsent> {
        let table = &endpoint.table;
        let deleted = || Unsent::Stopped("deleted before it was sent");
        let (campaign, member) =
            futures_util::try_join!(campaign::of_delivery(table, was), table.find::<CampaignContact>(id))?;
        let (campaign, member) = campaign.zip(member).ok_or_else(deleted)?;
        if member.delivery_id.is_some_and(|id| id != was.id) || member.next_attempt_at.is_some() {
            return Err(Unsent::Stopped("its attempt has ended"));
        }
        match member.clone().as_answered_in(&campaign).status {
            ContactStatus::Queued => {}
            ContactStatus::Sent => return Err(Unsent::Stopped("its attempt has ended")),
            _ => return Err(Unsent::Stopped("cancelled before it was sent")),
        }
        if campaign.status == CampaignStatus::Paused {
            return Err(Unsent::Paused(campaign.id));
        }
        let schedule = campaign.schedule().filter(|schedule| !schedule.is_open(self.now()));
        if let Some(opens) = schedule.and_then(|schedule| schedule.opens(self.now())) {
            return Err(Unsent::WindowClosed(opens));
        }
        let contact = table.find::<Contact>(member.contact_id).await?;
        let contact = contact.ok_or(Unsent::Impossible("the contact is gone"))?;
        let said = self.campaign_text(table, &campaign, was).await?;
        let CampaignText { text, assistant_id, .. } = said.ok_or_else(deleted)?;
        let campaign = Campaign { message: text, assistant_id, ..campaign };
        let widget = WidgetId(endpoint.id.0);
        of_data(was, EventData::Campaign(CampaignData::of(&campaign, widget, &member, &contact, was.message_id)))
    }

    /// The text of a delivery's campaign at the time when the delivery was made; it is read once for all its contacts.
    /// `None` if the campaign is deleted.
    async fn campaign_text(
        &self,
        table: &Table,
        campaign: &Campaign,
        was: &Delivery,
    ) -> Result<Option<CampaignText>, TableError> {
        let of = (table.tenant.org(), TextOf { run: campaign.id.run(), version: was.text_version });
        let mut texts = self.texts.lock().await;
        if let Some(said) = texts.get(&of) {
            return Ok(Some(said.clone()));
        }
        let said = campaign::text_of_version(table, campaign, was.text_version).await?;
        let said = said.filter(|said| said.text.is_some() || was.message_id.is_none());
        texts.extend(said.clone().map(|said| (of, said)));
        Ok(said)
    }
}

/// The event of a single message or call.
async fn requested(endpoint: &Endpoint, was: &Delivery, id: ConversationId) -> Result<Body, Unsent> {
    let table = &endpoint.table;
    let (conversation, contact, message) = futures_util::try_join!(
        found::<Conversation>(table, Some(id)),
        found::<Contact>(table, was.contact_id),
        message_of(table, was)
    )?;
    let conversation = conversation.filter(|_| message.is_some() == was.message_id.is_some());
    let conversation = conversation.ok_or(Unsent::Impossible("the conversation is gone"))?;
    let contact = contact.ok_or(Unsent::Impossible("the contact is gone"))?;
    let (widget, to) = (WidgetId(endpoint.id.0), (contact, was.to.clone()));
    let requested = RequestedData::of(widget, &conversation, to, message.as_ref());
    of_data(was, EventData::Requested(Box::new(requested)))
}

/// The record with this id; `None` without an id.
pub(super) async fn found<R: Stored>(table: &Table, id: Option<R::Id>) -> Result<Option<R>, Unsent> {
    match id {
        Some(id) => Ok(table.find(id).await?),
        None => Ok(None),
    }
}

/// The message that is delivered.
async fn message_of(table: &Table, delivery: &Delivery) -> Result<Option<Message>, Unsent> {
    match delivery.conversation_id.zip(delivery.message_id) {
        Some((conversation, id)) => Ok(conversation::message(table, conversation, id).await?),
        None => Ok(None),
    }
}
