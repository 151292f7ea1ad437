//! Emits events of changes: each goes into the log, and as a delivery to each webhook that subscribes to it.
//!
//! An event that nobody subscribes to is not made. The webhooks of an organisation are read once in half a minute.

mod campaign_contact;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{CAMPAIGN_DELIVERY_ENDED, Reacting};
use crate::delivery::context::MessageContext;
use crate::delivery::event::logged_schema;
use crate::input::member;
use crate::input::schema::{Schema, Value, extended, titled};
use crate::records::agency::{Agency, BillingPlan};
use crate::records::assistant::Assistant;
use crate::records::campaign::{Campaign, CampaignContact};
use crate::records::captured_form::{CapturedForm, FormWebhooks};
use crate::records::captured_intent::CapturedIntent;
use crate::records::contact::Contact;
use crate::records::contact_custom_field::ContactCustomField;
use crate::records::conversation::{self, Conversation, Message};
use crate::records::datasource::{Datasource, DatasourceFile, DatasourceLink};
use crate::records::delivery::{self, Delivery, NewDelivery, scope_of};
use crate::records::due::{Due, handle_due};
use crate::records::event::kind::{RECORDS, RecordKinds, Sign};
use crate::records::event::{self, Event, EventId, EventKind, LONGEST, pending};
use crate::records::export::Export;
use crate::records::form::Form;
use crate::records::intent::{Intent, IntentLink};
use crate::records::suppression::Suppression;
use crate::records::tag::{Link, Tag};
use crate::records::user::User;
use crate::records::webhook::Webhook;
use crate::records::webhook::subscription::{EventPath, EventScope, NamedWebhooks, Subscriptions};
use crate::records::widget::Widget;
use crate::request::error::{Error, Result};
use crate::request::event::EventContext;
use crate::routes;
use crate::table::Table;
use crate::table::change::Change;
use crate::table::declaration::Declared as _;
use crate::table::keys::Key;
use crate::table::stored::Listed;
use crate::values::id::{AssistantId, ContactId, ConversationId, WebhookId, WidgetId};
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Seconds for which a process knows the webhooks of an organisation.
pub const KNOWN: i64 = 30;
/// The most webhooks of an organisation: the limit of their quota.
const MOST_WEBHOOKS: usize = 1000;
/// Changes whose messages are read at the same time.
const READING: usize = 8;

/// What the schema of a message says of its context.
const CONTEXT: &str =
    "What is needed to answer it: of a message of a user, where the webhook has `context`. The log does not have it.";

/// Whether `change` may be an event.
pub(super) fn is_emitted(change: &Change) -> bool {
    change.record_name().is_some_and(|name| {
        name == Conversation::NAME
            || kinds_of(name).is_some()
            || (name == CampaignContact::NAME && !change.is_removal())
            || CAMPAIGN_DELIVERY_ENDED.includes(Delivery::NAME, change)
    })
}

/// The names of the records whose changes are events.
pub(super) fn records() -> impl Iterator<Item = &'static str> {
    RECORDS.iter().map(|kinds| kinds.record).chain([Conversation::NAME, CampaignContact::NAME])
}

fn kinds_of(record: &str) -> Option<&'static RecordKinds> {
    RECORDS.iter().find(|kinds| kinds.record == record)
}

/// Emits the events of the changes of an organisation, in their order.
pub(super) async fn emit(cx: &Reacting<'_>, changes: &[&Change]) -> Result<()> {
    // The webhooks are read again at once where this process sees one of them change.
    if changes.iter().any(|change| change.record_name() == Some(Webhook::NAME)) {
        cx.table.forget::<Webhook>(());
    }
    let emitter = Emitter::of(&cx.table, cx.now).await?;
    // The webhook of a form gets what is filled into the form. It may be new.
    let is_filled = changes.iter().any(|change| change.record_name() == Some(CapturedForm::NAME));
    if emitter.subscriptions.is_empty() && !is_filled {
        return Ok(());
    }
    let events: Vec<_> = changes.iter().map(|change| emitter.events(change)).collect();
    let all: Vec<ChangeEvents> = stream::iter(events).buffered(READING).try_collect().await?;
    let pending: BTreeSet<ConversationId> = all.iter().filter_map(|events| events.pending).collect();
    emitter.publish(all.into_iter().flat_map(|events| events.now).collect()).await?;
    // Only now: the tick must not emit a change of a conversation whose opening is not in the log yet.
    try_join_all(pending.into_iter().map(|id| pending::note(&cx.table, id, cx.now))).await?;
    Ok(())
}

/// Emits an event of each conversation that has changed in the last minute.
///
/// # Errors
/// The first error; the events of the others are emitted all the same.
pub async fn emit_pending(cx: &EventContext<'_>) -> Result<()> {
    handle_due(cx, Due::Event, |key| emit_conversation(cx, key)).await
}

/// Emits the event of the conversation whose pending changes are at `key`; false if that was done meanwhile.
async fn emit_conversation(cx: &EventContext<'_>, key: Key) -> Result<bool> {
    let Some(tenant) = Tenant::of_partition_key(&key.pk) else { return Ok(false) };
    let (table, now) = (cx.table(tenant), cx.service.clock.now());
    let Some(noted) = pending::at(&table, &key).await? else { return Ok(false) };
    let conversation = table.find::<Conversation>(noted.conversation_id).await?;
    // The event of the close has all that was said.
    if let Some(conversation) = conversation.filter(Conversation::is_open) {
        let (kind, sequence) = (EventKind::CONVERSATION_UPDATED, conversation.version.number() + 1);
        let id = EventId::of_change(kind, conversation.id.0, &sequence.to_string());
        let emitter = Emitter::of(&table, now).await?;
        let events = of_conversation(kind, id, sequence, &conversation).into_iter().collect();
        // Where it has changed since, its close may be in the log already. The next tick looks again.
        if !emitter.publish_if(events, Some(&conversation)).await? {
            return Ok(false);
        }
    }
    Ok(pending::settle(&table, &noted).await?)
}

/// An event, with what subscriptions are narrowed by.
struct ScopedEvent {
    event: Event,
    scope: EventScope,
}

/// The events of a change.
#[derive(Default)]
struct ChangeEvents {
    /// Those that go into the log now.
    now: Vec<ScopedEvent>,
    /// The open conversation whose change the tick will report.
    pending: Option<ConversationId>,
}

impl From<Option<ScopedEvent>> for ChangeEvents {
    fn from(event: Option<ScopedEvent>) -> Self {
        Self { now: event.into_iter().collect(), pending: None }
    }
}

/// The fields of a record on which its event depends.
#[derive(Debug, Deserialize)]
struct About {
    id: Uuid,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    assistant_id: Option<AssistantId>,
    widget_id: Option<WidgetId>,
}

/// A message, with what its conversation belongs to.
#[derive(Debug, Serialize)]
struct MessageData<'a> {
    #[serde(flatten)]
    message: &'a Message,
    assistant_id: AssistantId,
    widget_id: Option<WidgetId>,
    contact_id: Option<ContactId>,
}

impl Schema for MessageData<'_> {
    fn schema() -> Value {
        let members = vec![
            member::<AssistantId>("assistant_id", true, "The assistant of the conversation."),
            member::<Option<WidgetId>>("widget_id", true, "The widget through which the conversation takes place."),
            member::<Option<ContactId>>("contact_id", true, "The contact that takes part."),
            member::<MessageContext<'_>>("context", false, CONTEXT),
        ];
        titled(extended(Message::schema(), members), "MessageData", "A message, with what its conversation belongs to.")
    }
}

/// What is needed to emit the events of one organisation.
struct Emitter<'a> {
    table: &'a Table,
    now: Timestamp,
    subscriptions: Subscriptions,
}

impl<'a> Emitter<'a> {
    async fn of(table: &'a Table, now: Timestamp) -> Result<Self> {
        let webhooks = table.remembered::<Webhook>((), (MOST_WEBHOOKS, KNOWN), now).await?;
        Ok(Self { table, now, subscriptions: Subscriptions::of(webhooks) })
    }

    /// The events of a change.
    async fn events(&self, change: &Change) -> Result<ChangeEvents> {
        let name = change.record_name().unwrap_or_default();
        if name == Conversation::NAME {
            return self.of_conversation(change).await;
        }
        if name == Delivery::NAME {
            return self.of_ended_delivery(change).await;
        }
        if name == CampaignContact::NAME {
            return self.of_reported_outcome(change).await;
        }
        // The webhook of a form needs no subscription.
        let is_wanted =
            |kinds: &&'static RecordKinds| name == CapturedForm::NAME || self.subscriptions.include_any(kinds.all());
        let kinds = kinds_of(name).filter(is_wanted);
        let event = kinds.map(|kinds| of_record(change, kinds)).transpose()?.flatten();
        Ok(event.into())
    }

    /// The events of a conversation and its messages. The tick emits that of a new message or of a changed field.
    async fn of_conversation(&self, change: &Change) -> Result<ChangeEvents> {
        if !self.subscriptions.include_any(EventKind::OF_CONVERSATIONS.iter().copied()) {
            return Ok(ChangeEvents::default());
        }
        let (was, is) = (change.record_before::<Conversation>()?, change.record::<Conversation>()?);
        let mut events = ChangeEvents::default();
        let mut emit =
            |kind, id, conversation| events.now.extend(of_conversation(kind, id, change.sequence(), conversation));
        let once = |kind: EventKind, id: Uuid| EventId::of_change(kind, id, "");
        match (&was, &is) {
            (None, Some(is)) => emit(EventKind::CONVERSATION_OPENED, once(EventKind::CONVERSATION_OPENED, is.id.0), is),
            (Some(was), Some(is)) if was.is_open() && !is.is_open() => {
                emit(EventKind::CONVERSATION_CLOSED, EventId(is.id.0), is);
            }
            (Some(was), None) => {
                emit(EventKind::CONVERSATION_DELETED, once(EventKind::CONVERSATION_DELETED, was.id.0), was);
            }
            (Some(was), Some(is)) if self.is_pending(was, is) => events.pending = Some(is.id),
            _ => {}
        }
        let Some(is) = is else { return Ok(events) };
        let said = was.map_or(0, |was| was.chat_count)..is.chat_count;
        if !said.is_empty() && self.is_wanted(EventKind::MESSAGE_CREATED, scope_of(&is)) {
            let messages = conversation::said_between(self.table, is.id, said).await?;
            events.now.extend(messages.iter().filter_map(|message| of_message(message, &is)));
        }
        Ok(events)
    }

    /// Whether the tick is to report that an open conversation has changed as callers see it.
    fn is_pending(&self, was: &Conversation, is: &Conversation) -> bool {
        is.is_open()
            && self.is_wanted(EventKind::CONVERSATION_UPDATED, scope_of(is))
            && JsonObject::of(was) != JsonObject::of(is)
    }

    /// Whether a webhook may get an event of this kind.
    fn is_wanted(&self, kind: EventKind, scope: EventScope) -> bool {
        self.subscriptions.to(kind, scope, &BTreeMap::new()).next().is_some()
    }

    /// Puts the events into the log to which a webhook subscribes, and adds the deliveries.
    async fn publish(&self, events: Vec<ScopedEvent>) -> Result<()> {
        self.publish_if(events, None).await.map(drop)
    }

    /// The same, if the conversation `unchanged` is as it was read; false if it is not.
    async fn publish_if(&self, mut events: Vec<ScopedEvent>, unchanged: Option<&Conversation>) -> Result<bool> {
        let of_forms = FormWebhooks::of(self.table, events.iter().map(|each| &each.event)).await?;
        events.retain(|each| self.is_wanted(each.event.event, each.scope) || of_forms.named(&each.event).is_some());
        let named = self.named(&events).await?;
        let mut logged = Vec::new();
        let mut of_webhook: BTreeMap<WebhookId, Vec<NewDelivery>> = BTreeMap::new();
        for ScopedEvent { event, scope } in &events {
            let of_assistant = scope.assistant_id.and_then(|id| named.get(&id).copied());
            let own = NamedWebhooks { of_assistant, of_form: of_forms.named(event) };
            let mut is_wanted = own.of_form.is_some();
            if let Some(id) = own.of_form {
                of_webhook.entry(id).or_default().push(NewDelivery::logged(event));
            }
            for webhook in self.subscriptions.to(event.event, *scope, &named) {
                is_wanted = true;
                if webhook.gets_deliveries() && webhook.path_of(event, own) == EventPath::Subscription {
                    of_webhook.entry(webhook.id).or_default().push(NewDelivery::logged(event));
                }
            }
            logged.extend(is_wanted.then(|| event.clone().within(*scope)));
        }
        if !event::append(self.table, &logged, unchanged, self.now).await? {
            return Ok(false);
        }
        self.deliver(of_webhook).await.map(|()| true)
    }

    /// The webhooks that the assistants name whose events webhooks get by default.
    async fn named(&self, events: &[ScopedEvent]) -> Result<BTreeMap<AssistantId, WebhookId>> {
        let by_default = events.iter().filter(|each| Subscriptions::is_default(each.event.event));
        let assistants: BTreeSet<AssistantId> = by_default.filter_map(|each| each.scope.assistant_id).collect();
        Ok(delivery::named_webhooks(self.table, &assistants).await?)
    }

    /// Adds deliveries to the webhooks that are still there and enabled.
    async fn deliver(&self, mut of_webhook: BTreeMap<WebhookId, Vec<NewDelivery>>) -> Result<()> {
        let webhooks = self.table.get_each::<Webhook>(&of_webhook.keys().copied().collect()).await?;
        let there = webhooks.into_iter().filter(Webhook::gets_deliveries);
        let wanted: Vec<_> = there.filter_map(|webhook| of_webhook.remove_entry(&webhook.id)).collect();
        let add = wanted.iter().map(|(id, new)| delivery::enqueue(self.table, (*id).into(), new, self.now));
        try_join_all(add).await?;
        Ok(())
    }
}

/// The event of a conversation; in its deliveries it has all that was said.
fn of_conversation(kind: EventKind, id: EventId, sequence: u64, conversation: &Conversation) -> Option<ScopedEvent> {
    let at = match kind {
        EventKind::CONVERSATION_OPENED => conversation.created_at,
        _ => conversation.updated_at,
    };
    let event = Event {
        conversation: Some(conversation.id),
        ..Event::new(kind, id, (at, sequence), JsonObject::of(conversation)?)
    };
    Some(ScopedEvent { event, scope: scope_of(conversation) })
}

/// The event of a message.
fn of_message(message: &Message, of: &Conversation) -> Option<ScopedEvent> {
    let Conversation { assistant_id, widget_id, contact_id, .. } = *of;
    let data = JsonObject::of(&MessageData { message, assistant_id, widget_id, contact_id })?;
    let event = Event::new(EventKind::MESSAGE_CREATED, EventId(message.id.0), (message.created_at, 1), data);
    Some(ScopedEvent { event: Event { conversation: Some(of.id), ..event }, scope: scope_of(of) })
}

/// The event of a changed record; `None` if an answer would show no change.
fn of_record(change: &Change, kinds: &RecordKinds) -> Result<Option<ScopedEvent>> {
    let event = match images(change)? {
        (None, Some(is)) => made(kinds.created, is, None, change),
        (Some(was), None) => made(kinds.deleted, was, None, change),
        (Some(was), Some(is)) => is.former(&was).filter(|former| !former.is_empty()).and_then(|former| {
            let fact = kinds.facts.iter().find(|fact| is_shown(fact.shown_by, &was, &is, &former));
            made(fact.map_or(kinds.updated, |fact| fact.kind), is, Some(former), change)
        }),
        (None, None) => None,
    };
    Ok(event)
}

fn is_shown(sign: Sign, was: &JsonObject, is: &JsonObject, former: &JsonObject) -> bool {
    match sign {
        Sign::Became(field, value) => {
            is.text(field).as_deref() == Some(value) && was.text(field).as_deref() != Some(value)
        }
        Sign::Set(field) => is.text(field).is_some() && was.text(field).is_none(),
        Sign::Changed(fields) => fields.iter().any(|field| former.has(field)),
    }
}

/// The event that `change` makes of the record `data`.
fn made(kind: EventKind, data: JsonObject, previous: Option<JsonObject>, change: &Change) -> Option<ScopedEvent> {
    let about: About = data.read()?;
    let changed_at = if change.is_removal() { None } else { about.updated_at.or(about.created_at) };
    let at = changed_at.unwrap_or_else(|| change.at());
    let id = EventId::of_change(kind, about.id, change.sequence_number());
    let name = change.record_name().unwrap_or_default();
    let own = |record: &str| (name == record).then_some(about.id);
    let scope = EventScope {
        assistant_id: about.assistant_id.or(own(Assistant::NAME).map(AssistantId)),
        widget_id: about.widget_id.or(own(Widget::NAME).map(WidgetId)),
    };
    let whole = Event { previous, ..Event::new(kind, id, (at, change.sequence()), data) };
    let event = if whole.bytes() > LONGEST { whole.truncated(path(name, about.id, &whole.data)) } else { whole };
    Some(ScopedEvent { event, scope })
}

/// The path under which a record can be read.
fn path(record: &str, id: Uuid, data: &JsonObject) -> Option<String> {
    let parameter = SHOWN.iter().find(|shown| shown.record == record)?.parameter;
    let last = format!("{{{parameter}}}");
    let route = routes::ALL.iter().find(|route| route.method == "GET" && route.path.ends_with(&last))?;
    let path = route.path.replace(&last, &id.to_string());
    route
        .parameters()
        .filter(|other| *other != parameter)
        .try_fold(path, |path, other| Some(path.replace(&format!("{{{other}}}"), &data.text(other)?)))
}

type Images = (Option<JsonObject>, Option<JsonObject>);

/// The JSON schemas of the bodies of the events of changes.
pub fn schemas() -> Vec<(EventKind, Value)> {
    let of_record = |record: &'static str| {
        let schema = SHOWN.iter().find(|shown| shown.record == record).map_or(Value::Null, |shown| (shown.schema)());
        let kinds = kinds_of(record).into_iter().flat_map(RecordKinds::all);
        kinds.map(move |kind| (kind, logged_schema(kind, schema.clone()))).collect::<Vec<_>>()
    };
    let others = [
        (EventKind::CONVERSATION_DELETED, Conversation::schema()),
        (EventKind::MESSAGE_CREATED, MessageData::schema()),
        (EventKind::CAMPAIGN_CONTACT_UPDATED, CampaignContact::schema()),
    ];
    let others = others.map(|(kind, data)| (kind, logged_schema(kind, data)));
    RECORDS.iter().flat_map(|kinds| of_record(kinds.record)).chain(others).collect()
}

/// How the changes of a record are read.
struct ShownRecord {
    /// Its name.
    record: &'static str,
    /// The parameter of its path.
    parameter: &'static str,
    /// Its schema.
    schema: fn() -> Value,
    /// The record before and after a change.
    images: fn(&Change) -> Result<Images>,
}

const SHOWN: &[ShownRecord] = &[
    shown::<Agency>(),
    shown::<Assistant>(),
    shown::<BillingPlan>(),
    shown::<Campaign>(),
    shown::<CapturedForm>(),
    shown::<CapturedIntent>(),
    shown::<Contact>(),
    shown::<ContactCustomField>(),
    shown::<Datasource>(),
    shown::<DatasourceFile>(),
    shown::<DatasourceLink>(),
    shown::<Export>(),
    shown::<Form>(),
    shown::<Intent>(),
    shown::<IntentLink>(),
    shown::<Link>(),
    shown::<Suppression>(),
    shown::<Tag>(),
    shown::<User>(),
    shown::<Webhook>(),
    shown::<Widget>(),
];

const fn shown<R: Listed>() -> ShownRecord {
    ShownRecord {
        record: R::NAME,
        parameter: R::PARAMETER,
        schema: R::schema,
        images: |change| {
            let show = |record: Option<R>| record.map(|record| JsonObject::of(&record.shown().for_reader()));
            Ok((show(change.record_before()?).flatten(), show(change.record()?).flatten()))
        },
    }
}

/// The record before and after `change`, as a key that may only read sees it.
fn images(change: &Change) -> Result<Images> {
    let name = change.record_name().unwrap_or_default();
    let shown = SHOWN.iter().find(|shown| shown.record == name);
    (shown.ok_or_else(|| Error::Internal("an unknown record".into()))?.images)(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_with_events_can_be_read() {
        let read: Vec<_> = SHOWN.iter().map(|shown| shown.record).collect();
        assert_eq!(read, RECORDS.iter().map(|kinds| kinds.record).collect::<Vec<_>>());
    }
}
