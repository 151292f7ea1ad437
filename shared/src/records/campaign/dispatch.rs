//! Campaigns under way: each contact gets its conversation, its message, and its delivery to the widget's connector, at the rate that
//! a widget is allowed.

use crate::records::assistant::Assistant;
use crate::records::campaign::storage::{Dispatch, Dispatched};
use crate::records::campaign::{Campaign, CampaignContact, ContactStatus};
use crate::records::conversation::{Conversation, ConversationFields, MessageType, NewMessage, SenderType};
use crate::records::delivery::NewDelivery;
use crate::records::widget::Widget;
use crate::request::error::Result;
use crate::runtime::schedule::EventContext;
use crate::table::keys::{Due, Paced, campaign_of};
use crate::table::{Table, TableError};
use crate::values::id::{AssistantId, CampaignId, ConversationId, MessageId, WidgetId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;
use futures_util::future::join_all;

/// Seconds that a tick works for: the next one comes after sixty.
const BUDGET: i64 = 50;
/// Campaigns looked for at once, of each partition of the index.
const LIMIT: i32 = 100;
/// Contacts between two notes of how far a campaign has come.
const CHUNK: u32 = 25;
/// Times that a conversation may change under a message that is to go on in it.
const ATTEMPTS: usize = 5;

/// Goes on with all campaigns that are due, for as long as a tick may take.
///
/// # Errors
/// Whatever kept it from one of them; the others go on all the same.
pub async fn send_campaigns(cx: &EventContext<'_>) -> Result<()> {
    let now = cx.service.clock.now();
    let due = cx.service.store.due(Due::Campaign, now, LIMIT).await?;
    let turns = due.iter().filter_map(campaign_of).map(|(tenant, id)| {
        let table = cx.table(tenant);
        async move { go_on(cx, &table, id, now.plus_seconds(BUDGET)).await }
    });
    // One that cannot go on does not keep the others waiting.
    join_all(turns).await.into_iter().collect()
}

/// Sends what is left of a campaign, until `deadline`; somebody else goes on then.
async fn go_on(cx: &EventContext<'_>, table: &Table, id: CampaignId, deadline: Timestamp) -> Result<()> {
    let (clock, rate) = (&cx.service.clock, cx.service.config.rate());
    let Some(mut turn) = table.take_turn(id, clock.now()).await? else { return Ok(()) };
    let widget = turn.campaign.widget_id;
    let (places, channel) = futures_util::try_join!(table.places(id), channel(table, widget))?;
    while turn.next < places {
        let count = CHUNK.min(rate).min(places - turn.next);
        let slots = table.reserve((widget, Paced::Dispatch), count, rate, clock.now(), deadline).await?;
        if slots.is_empty() {
            table.pass_on(&turn, clock.now()).await?;
            return Ok(());
        }
        let next = turn.next + count;
        let contacts = table.contacts_at(id, turn.next..next).await?;
        let queued =
            |contact: &CampaignContact| contact.status == ContactStatus::Queued && contact.conversation_id.is_none();
        for (contact, slot) in contacts.into_iter().filter(queued).zip(slots) {
            clock.sleep_until(slot).await;
            dispatch(cx, table, &turn.campaign, &contact, &channel).await?;
        }
        if !table.go_on(&mut turn, next, clock.now()).await? {
            return Ok(());
        }
    }
    table.finish(&turn).await?;
    Ok(())
}

/// The widget that a campaign runs through, and the assistant that speaks through it; or why nobody does.
async fn channel(table: &Table, id: WidgetId) -> Result<Result<(Widget, AssistantId), &'static str>, TableError> {
    let Some(widget) = table.find::<Widget>(id).await? else { return Ok(Err("the widget is gone")) };
    let Some(assistant) = widget.assistant_id else { return Ok(Err("the widget has no assistant")) };
    let found = table.find::<Assistant>(assistant).await?;
    Ok(if found.is_some() { Ok((widget, assistant)) } else { Err("the widget's assistant is gone") })
}

/// Gives one contact what it is to get, or notes why it gets nothing.
async fn dispatch(
    cx: &EventContext<'_>,
    table: &Table,
    campaign: &Campaign,
    contact: &CampaignContact,
    channel: &Result<(Widget, AssistantId), &'static str>,
) -> Result<()> {
    let now = cx.service.clock.now();
    let fails = |reason| table.fail_contact(campaign, contact.id, reason, now);
    let (widget, assistant_id) = match channel {
        Ok(channel) => channel,
        Err(reason) => return Ok(fails(reason).await?),
    };
    let ids = &cx.service.ids;
    let fields = ConversationFields {
        assistant_id: *assistant_id,
        widget_id: Some(widget.id),
        contact_id: Some(contact.contact_id),
        device_type: None,
        attributes: JsonObject::default(),
    };
    let says = |text: &String| NewMessage {
        sender_type: SenderType::Bot,
        message_type: MessageType::Text,
        text: text.clone(),
    };
    for _ in 0..ATTEMPTS {
        let thread = if campaign.start_new_conversation {
            None
        } else {
            table.open_thread(widget.id, contact.contact_id).await?
        };
        let calls = widget.widget_type.calls();
        let dispatch = Dispatch {
            thread,
            opening: Conversation::open(ConversationId(ids.fresh(now)), fields.clone(), now),
            message: campaign.message.as_ref().map(|text| (MessageId(ids.fresh(now)), says(text))),
            connector: widget
                .connector_url
                .is_some()
                .then(|| (widget.id.into(), NewDelivery::of_campaign(contact.id, calls, now))),
        };
        if table.dispatch(campaign, contact, &dispatch, now).await? != Dispatched::ThreadMoved {
            return Ok(());
        }
    }
    Ok(fails("the conversation kept changing").await?)
}
