//! The text of a campaign. It is stored once, with the campaign; the messages in the conversations of its contacts only
//! refer to it.
//!
//! A change of the campaign must leave sent messages as they were. So each text has a version, and a text that may have
//! been sent is kept when a new one replaces it. Before a contact is removed from its campaign, the text is copied into
//! the messages already sent to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::contact_partitions::contact_partitions;
use super::{Campaign, CampaignContact, RunId};
use crate::records::conversation;
use crate::table::cascade::AT_ONCE;
use crate::table::expression::Condition;
use crate::table::item::{Item, from_item, key_of, number, readable, text};
use crate::table::keys::{Key, SK};
use crate::table::transaction::Write;
use crate::table::{Table, TableError};
use crate::values::id::{AssistantId, CampaignId, ConversationId};
use crate::values::tenant::Tenant;
use crate::values::text::MessageText;
use crate::values::time::Timestamp;

/// Messages into which the text is copied at the same time.
const KEPT_TOGETHER: usize = 32;

/// The sort key of a campaign's current text. A query for a campaign's items starts here.
const PRESENT: &str = "CAMPAIGN_TEXT";

/// The key of a campaign's current text. It has the partition key of the run's pointer.
pub(super) fn present_text(tenant: &Tenant, run: RunId) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{run}"), PRESENT)
}

/// The key of an earlier text of a campaign. It sorts before the current text, so that a query for a campaign's items
/// leaves it out.
fn earlier_text(tenant: &Tenant, TextOf { run, version }: TextOf) -> Key {
    Key::of(tenant, format_args!("CAMPAIGN_RUN#{run}"), format_args!("CAMPAIGN_SAID#{version:010}"))
}

/// Identifies a text: the run of its campaign, and its version there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextOf {
    /// The run.
    pub run: RunId,
    /// The version.
    pub version: u32,
}

/// The position of a campaign's message: the conversation, the ordinal there, and the version of the text. Without an
/// ordinal, only the conversation is known: old versions of the service did not store more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePosition(pub ConversationId, pub Option<u64>, pub u32);

/// The text that a campaign sends to each contact, or an earlier one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct CampaignText {
    /// The version: 0, and one more with each change.
    #[serde(default, rename = "text_version")]
    pub version: u32,
    /// The message; `None` for a call.
    pub text: Option<MessageText>,
    /// The assistant that its events name. It is stored with earlier texts; for the current text, the campaign has it.
    pub assistant_id: Option<AssistantId>,
}

impl CampaignText {
    /// The current text among the items stored with a campaign.
    pub(super) fn among(items: &[Item]) -> Option<Self> {
        let present = items.iter().find(|item| item.get(SK) == Some(&text(PRESENT)));
        present.and_then(|item| from_item(item.clone()).ok())
    }

    fn item(&self, key: &Key) -> Item {
        let mut item = key.attributes();
        item.extend(self.text.as_ref().map(|message| ("text".to_owned(), text(message))));
        item.extend(self.assistant_id.map(|id| ("assistant_id".to_owned(), text(id))));
        item.extend((self.version > 0).then(|| ("text_version".to_owned(), number(self.version))));
        item
    }
}

impl Campaign {
    /// The text that its contacts are sent.
    pub(super) fn text_of(&self) -> TextOf {
        TextOf { run: self.id.run(), version: self.text_version }
    }

    /// Whether contacts may have been dispatched. True for a run that is older than the field `until_place`, since
    /// nothing shows whether they were.
    const fn may_have_dispatched(&self) -> bool {
        self.until_place.is_some() || self.last_run_at.is_some() || self.next_place > 0 || self.start_time.is_none()
    }
}

impl CampaignContact {
    /// The positions of the messages sent to it, as far as they are known.
    pub(super) fn message_positions(&self) -> Vec<MessagePosition> {
        let in_conversation = || self.conversation_id.map(|id| MessagePosition(id, None, 0)).into_iter().collect();
        self.said.clone().unwrap_or_else(in_conversation)
    }
}

/// The step that removes the contacts of a removed campaign. Before that, it copies the text into the messages sent to
/// them.
pub fn remove_contacts(table: &Table, campaign: Uuid, _: Timestamp) -> BoxFuture<'_, Result<bool, TableError>> {
    Box::pin(async move {
        let run = CampaignId(campaign).run();
        for partition in contact_partitions(&table.tenant, run) {
            let (items, more) = table.store.some_of(&partition, None, AT_ONCE).await?;
            let keys: Vec<Key> = items.iter().filter_map(key_of).collect();
            let contacts: Vec<CampaignContact> = readable(items);
            copy_text_into_messages(table, run, contacts.iter().flat_map(CampaignContact::message_positions).collect())
                .await?;
            table.store.delete_all(&keys).await?;
            if more {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Stores the message of a new campaign, if it has one.
///
/// # Errors
/// [`TableError`].
pub async fn stage_message(table: &Table, campaign: &Campaign) -> Result<(), TableError> {
    if campaign.message.is_none() {
        return Ok(());
    }
    let current = CampaignText { text: campaign.message.clone(), ..CampaignText::default() };
    table.store.put(current.item(&present_text(&table.tenant, campaign.id.run()))).await
}

/// The writes for a change of a campaign's text; `was` is the campaign before the change, with the items stored with
/// it. Their condition is that the text is still the one that was read, because the items and the campaign are read at
/// different moments.
pub(super) fn changing_text(
    table: &Table,
    (was, items): (&Campaign, &[Item]),
    (version, message): (u32, Option<&MessageText>),
) -> Vec<Write> {
    let before = CampaignText::among(items).unwrap_or_default();
    let present = present_text(&table.tenant, was.id.run());
    let now = CampaignText { version, text: message.cloned(), assistant_id: None };
    let unchanged = "attribute_not_exists(text_version) OR text_version = :read";
    let unchanged = Condition::of(unchanged, [(":read", number(before.version))]);
    let mut writes = vec![Write::put(now.item(&present)).when(unchanged)];
    if was.may_have_dispatched() {
        let of = TextOf { run: was.id.run(), version: before.version };
        let before = CampaignText { assistant_id: was.assistant_id, ..before };
        writes.push(Write::put(before.item(&earlier_text(&table.tenant, of))));
    }
    writes
}

/// These texts, without the ones whose campaigns are deleted. One call reads all texts that are current.
///
/// # Errors
/// [`TableError`].
pub(crate) async fn texts(
    table: &Table,
    wanted: &BTreeSet<TextOf>,
) -> Result<BTreeMap<TextOf, MessageText>, TableError> {
    let mut texts = texts_at(table, wanted.iter().map(|of| present_text(&table.tenant, of.run))).await?;
    let is_replaced = |of: &&TextOf| {
        let present = texts.get(&present_text(&table.tenant, of.run));
        present.is_some_and(|present| present.version != of.version)
    };
    let replaced: Vec<Key> = wanted.iter().filter(is_replaced).map(|of| earlier_text(&table.tenant, *of)).collect();
    texts.extend(texts_at(table, replaced).await?);
    Ok(wanted.iter().filter_map(|of| Some((*of, text_among(table, &texts, *of)?))).collect())
}

async fn texts_at(
    table: &Table,
    keys: impl IntoIterator<Item = Key>,
) -> Result<HashMap<Key, CampaignText>, TableError> {
    let keys: Vec<Key> = keys.into_iter().collect();
    let items = table.store.get_all(&keys).await?;
    items
        .into_iter()
        .filter_map(|item| Some((key_of(&item)?, item)))
        .map(|(key, item)| Ok((key, from_item(item)?)))
        .collect()
}

fn text_among(table: &Table, texts: &HashMap<Key, CampaignText>, of: TextOf) -> Option<MessageText> {
    let present = || texts.get(&present_text(&table.tenant, of.run)).filter(|present| present.version == of.version);
    texts.get(&earlier_text(&table.tenant, of)).or_else(present)?.text.clone()
}

/// The text of a campaign at this version; `None` if it is deleted.
///
/// # Errors
/// [`TableError`].
pub(crate) async fn text_of_version(
    table: &Table,
    campaign: &Campaign,
    version: u32,
) -> Result<Option<CampaignText>, TableError> {
    let run = campaign.id.run();
    let present = table.store.get(&present_text(&table.tenant, run)).await?;
    let present: CampaignText = present.map(from_item).transpose()?.unwrap_or_default();
    if present.version == version {
        return Ok(Some(CampaignText { assistant_id: campaign.assistant_id, ..present }));
    }
    table.store.get(&earlier_text(&table.tenant, TextOf { run, version })).await?.map(from_item).transpose()
}

/// Copies the texts into the messages at `positions`, which only refer to them until then. A repeat makes no difference,
/// and a deleted message stays deleted.
///
/// # Errors
/// [`TableError`]: some messages may have their text.
pub(super) async fn copy_text_into_messages(
    table: &Table,
    run: RunId,
    positions: Vec<MessagePosition>,
) -> Result<(), TableError> {
    let find = async |MessagePosition(conversation, ordinal, version): MessagePosition| match ordinal {
        Some(ordinal) => Ok(vec![((conversation, ordinal), version)]),
        None => conversation::said_in(table, conversation, run).await,
    };
    let finds: Vec<_> = positions.into_iter().map(find).collect();
    let found: Vec<_> = stream::iter(finds).buffer_unordered(KEPT_TOGETHER).try_collect().await?;
    let found: Vec<_> = found.concat();
    if found.is_empty() {
        return Ok(());
    }
    // One call reads the current text and the earlier ones. A text that it misses was replaced at that moment.
    let wanted: BTreeSet<TextOf> = found.iter().map(|(_, version)| TextOf { run, version: *version }).collect();
    let earlier = wanted.iter().map(|of| earlier_text(&table.tenant, *of));
    let read = texts_at(table, earlier.chain([present_text(&table.tenant, run)])).await?;
    let replaced = wanted.into_iter().filter(|of| text_among(table, &read, *of).is_none()).collect();
    let replaced = texts(table, &replaced).await?;
    let text_of = |of| text_among(table, &read, of).or_else(|| replaced.get(&of).cloned());
    let keep = async |(message, version)| match text_of(TextOf { run, version }) {
        Some(text) => conversation::keep_text(table, message, run, text).await,
        // The text was lost before the service copied texts into messages.
        None => Ok(()),
    };
    let keeps: Vec<_> = found.into_iter().map(keep).collect();
    stream::iter(keeps).buffer_unordered(KEPT_TOGETHER).try_collect().await
}
