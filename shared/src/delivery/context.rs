//! What a program needs to answer the message of a user, in the body of the event itself.

use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};

use crate::bucket::{Bucket, BucketError};
use crate::delivery::body::{Unsent, found};
use crate::delivery::prompt::filled;
use crate::input::member;
use crate::input::schema::{Schema, Value, extended, titled};
use crate::records::assistant::Assistant;
use crate::records::contact::Contact;
use crate::records::conversation::{self, Conversation, Message, SenderType};
use crate::records::datasource::files::FileToDownload;
use crate::records::datasource::{Datasource, DatasourceFile, DatasourceLink};
use crate::records::event::{Event, LONGEST};
use crate::records::form::Form;
use crate::records::intent::{Intent, IntentLink};
use crate::table::Table;
use crate::table::declaration::Declared;
use crate::table::stored::Listed;
use crate::values::id::{AssistantId, ContactId, ConversationId, MessageId, ordinal};
use crate::values::time::Timestamp;

/// The most messages: the answered one, and those before it.
const MESSAGES: u64 = 50;
/// The most intents, and the most forms.
const RECORDS: usize = 100;
/// The most data sources, and the most files of each.
const SOURCES: (usize, usize) = (20, 10);
/// The records that are read at once: a record has 360 KiB at most.
const AT_ONCE: usize = 10;
/// The most bytes of memory for making a context.
pub(super) const MAKING: u64 = 16 * 1024 * 1024;

crate::object! {
    /// What is needed to answer the message of a user.
    pub struct MessageContext<'a> {
        /// The assistant, with the variables of start-call filled into its `system_prompt`; null if it is deleted.
        pub assistant: Option<Assistant>,
        /// The last 50 messages, oldest first. The last of them is the message of the event.
        pub messages: Vec<Message>,
        /// The contact; null if it is not known, or deleted.
        pub contact: Option<Contact>,
        /// The intents of the assistant.
        pub intents: Vec<Intent>,
        /// The forms of the organisation: a form belongs to no assistant.
        pub forms: Vec<Form>,
        /// The data sources of the assistant, with their files.
        pub datasources: Vec<ContextSource>,
        /// The names of the lists that have no room for all their records here.
        pub truncated: Vec<&'a str>,
    }
}

/// A data source with its files.
#[derive(Debug, Serialize)]
pub struct ContextSource {
    #[serde(flatten)]
    datasource: Datasource,
    files: Vec<FileToDownload>,
}

impl Schema for ContextSource {
    fn schema() -> Value {
        let files = member::<Vec<FileToDownload>>("files", true, "Its files, and where to download them.");
        titled(extended(Datasource::schema(), vec![files]), "ContextSource", "A data source with its files.")
    }
}

/// What the event of a message has of it.
#[derive(Debug, Deserialize)]
pub(super) struct Said {
    id: MessageId,
    conversation_id: ConversationId,
    pub sender_type: SenderType,
    assistant_id: AssistantId,
    contact_id: Option<ContactId>,
}

/// Records of a list, as far as there is room for them.
struct ContextList<T> {
    items: Vec<T>,
    most: usize,
    bytes: usize,
    is_cut: bool,
}

impl<T: Serialize> ContextList<T> {
    const fn of(most: usize) -> Self {
        Self { items: Vec::new(), most, bytes: 0, is_cut: false }
    }

    /// Adds `more` items, unless there is no room for one of them.
    fn add(&mut self, more: impl IntoIterator<Item = T>) {
        for item in more {
            self.bytes += bytes_of(&item);
            self.is_cut |= self.items.len() == self.most || self.bytes > LONGEST;
            if self.is_cut {
                return;
            }
            self.items.push(item);
        }
    }
}

fn bytes_of(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

fn shown<R: Declared>(record: R) -> R {
    record.shown().for_reader()
}

/// What is needed to answer the message of `event`.
///
/// # Errors
/// [`Unsent::Postponed`] where the bucket does not answer.
pub(super) async fn context(
    said: &Said,
    table: &Table,
    bucket: &Bucket,
    event: &Event,
    now: Timestamp,
) -> Result<MessageContext<'static>, Unsent> {
    let of = said.assistant_id;
    let (conversation, assistant, contact, messages, intents, forms, sources) = futures_util::try_join!(
        found::<Conversation>(table, Some(said.conversation_id)),
        found::<Assistant>(table, Some(of)),
        found::<Contact>(table, said.contact_id),
        said.messages(table),
        linked(table, of, |link: &IntentLink| link.intent_id, RECORDS),
        listed::<Form>(table, (), RECORDS),
        sources(table, bucket, of, now),
    )?;
    let conversation = conversation.ok_or(Unsent::Impossible("the conversation is gone"))?;
    let assistant = assistant.map(|assistant| match &conversation.prompt_dynamic_variables {
        Some(variables) => Assistant { system_prompt: filled(&assistant.system_prompt, variables).into(), ..assistant },
        None => assistant,
    });
    let room = LONGEST.saturating_sub(event.data.len() + bytes_of(&assistant) + bytes_of(&contact));
    let context = MessageContext {
        assistant: assistant.map(shown),
        messages,
        contact: contact.map(shown),
        intents: intents.items,
        forms: forms.items,
        datasources: sources.items,
        truncated: Vec::new(),
    };
    Ok(context.within(room, [false, intents.is_cut, forms.is_cut, sources.is_cut]))
}

impl Said {
    /// The message, after those before it.
    async fn messages(&self, table: &Table) -> Result<Vec<Message>, Unsent> {
        let end = ordinal(self.id.0) + 1;
        Ok(conversation::said_between(table, self.conversation_id, end.saturating_sub(MESSAGES)..end).await?)
    }
}

impl MessageContext<'_> {
    /// The names of its lists, in the order in which they are measured.
    const LISTS: [&'static str; 4] = ["messages", "intents", "forms", "datasources"];

    /// This context with lists of `room` bytes together. `were_cut` has those that have lost records already.
    fn within(mut self, room: usize, were_cut: [bool; 4]) -> Self {
        fn lengths<T: Serialize>(items: impl IntoIterator<Item = T>) -> Vec<usize> {
            items.into_iter().map(|item| bytes_of(&item)).collect()
        }
        let lists = [
            lengths(self.messages.iter().rev()),
            lengths(&self.intents),
            lengths(&self.forms),
            lengths(&self.datasources),
        ];
        let kept = kept(&lists, room);
        let cut = (0..Self::LISTS.len()).filter(|list| were_cut[*list] || kept[*list] < lists[*list].len());
        self.truncated = cut.map(|list| Self::LISTS[list]).collect();
        self.messages.drain(..self.messages.len() - kept[0]);
        self.intents.truncate(kept[1]);
        self.forms.truncate(kept[2]);
        self.datasources.truncate(kept[3]);
        self
    }
}

/// How many items of each of these lists fit into `room` bytes together. The longest list always loses its last item first.
fn kept(lists: &[Vec<usize>; 4], room: usize) -> [usize; 4] {
    let mut kept = lists.each_ref().map(Vec::len);
    let mut bytes = lists.each_ref().map(|list| list.iter().sum::<usize>());
    while bytes.iter().sum::<usize>() > room {
        let Some(longest) = (0..kept.len()).filter(|list| kept[*list] > 0).max_by_key(|list| bytes[*list]) else {
            break;
        };
        kept[longest] -= 1;
        bytes[longest] -= lists[longest][kept[longest]];
    }
    kept
}

/// The first records of a list.
async fn listed<R: Listed + Serialize>(table: &Table, of: R::Of, most: usize) -> Result<ContextList<R>, Unsent> {
    let (mut part, mut first) = (ContextList::of(most), 0);
    loop {
        let rows = table.rows_from::<R>(of, first, AT_ONCE).await?;
        let is_last = rows.len() < AT_ONCE;
        first = rows.last().map_or(first, |row| ordinal(row.uuid()) + 1);
        part.add(rows.into_iter().map(shown));
        if is_last || part.is_cut {
            return Ok(part);
        }
    }
}

/// The first records to which the links of an assistant lead.
async fn linked<L: Listed<Of = AssistantId>, R: Listed<Id: Ord> + Serialize>(
    table: &Table,
    assistant: AssistantId,
    target: fn(&L) -> R::Id,
    most: usize,
) -> Result<ContextList<R>, Unsent> {
    let links = table.rows_from::<L>(assistant, 0, most + 1).await?;
    let mut part = ContextList::of(most);
    for some in links.chunks(AT_ONCE) {
        let ids: Vec<R::Id> = some.iter().map(target).collect();
        let mut found: Vec<R> = table.get_each(&ids.iter().copied().collect()).await?;
        found.sort_by_cached_key(|record| ids.iter().position(|id| R::proof(*id) == Some(record.uuid())));
        part.add(found.into_iter().map(shown));
        if part.is_cut {
            break;
        }
    }
    Ok(part)
}

/// The first data sources of an assistant, each with its first files.
async fn sources(
    table: &Table,
    bucket: &Bucket,
    assistant: AssistantId,
    now: Timestamp,
) -> Result<ContextList<ContextSource>, Unsent> {
    let target = |link: &DatasourceLink| link.datasource_id;
    let linked: ContextList<Datasource> = linked(table, assistant, target, SOURCES.0).await?;
    let mut part = ContextList::of(SOURCES.0);
    let mut is_cut = linked.is_cut;
    for datasource in linked.items {
        let files = listed::<DatasourceFile>(table, datasource.id, SOURCES.1).await?;
        is_cut |= files.is_cut;
        let find = files.items.into_iter().map(|file| FileToDownload::find(file, bucket, &table.tenant, now));
        part.add([ContextSource { datasource, files: try_join_all(find).await? }]);
        if part.is_cut {
            break;
        }
    }
    part.is_cut |= is_cut;
    Ok(part)
}

/// The next tick tries again: other deliveries of the batch do not wait for the bucket.
impl From<BucketError> for Unsent {
    fn from(error: BucketError) -> Self {
        tracing::warn!(cause = %error, "the files of a context cannot be read");
        Self::Postponed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_list_loses_its_last_items() {
        let lists = |messages: &[usize], forms: &[usize]| [messages.to_vec(), vec![], forms.to_vec(), vec![1]];
        for (messages, forms, room, wanted) in [
            (&[4, 4, 4][..], &[3, 3][..], 19, [3, 0, 2, 1]),
            (&[4, 4, 4], &[3, 3], 18, [2, 0, 2, 1]),
            (&[4, 4, 4], &[3, 3], 10, [1, 0, 1, 1]),
            (&[40], &[3, 3], 10, [0, 0, 2, 1]),
            (&[4], &[3], 0, [0, 0, 0, 0]),
        ] {
            assert_eq!(kept(&lists(messages, forms), room), wanted, "{messages:?} {forms:?} {room}");
        }
    }
}
