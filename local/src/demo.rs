//! Loads the demo set from its file: organisations, keys, and some records of each kind, with fixed ids.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use shared::records::agency::{Agency, BillingPlan};
use shared::records::api_key::{ApiKey, ApiKeyRecord};
use shared::records::assistant::Assistant;
use shared::records::campaign::{Campaign, CampaignContact, ContactStatus};
use shared::records::contact::Contact;
use shared::records::conversation::{Conversation, ConversationStatus, Message, NewMessage};
use shared::records::datasource::{Datasource, DatasourceFile, DatasourceLink};
use shared::records::declaration::Declared as _;
use shared::records::delivery::{Delivery, NewDelivery};
use shared::records::form::Form;
use shared::records::intent::{Intent, IntentLink};
use shared::records::tag::{Link, Tag};
use shared::records::user::User;
use shared::records::webhook::Webhook;
use shared::records::widget::Widget;
use shared::request::error::chain;
use shared::request::tenant::Tenant;
use shared::table::filters::Move;
use shared::table::rows::{INSERT_LIMIT, NewRow};
use shared::table::store::Store;
use shared::table::stored::Listed;
use shared::table::{Table, TableError};
use shared::values::id::{ConversationId, OrgId, WebhookId, with_ordinal};
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::Trouble;

/// The kinds of records, in the order in which they are loaded: a record comes after those that it refers to.
const KINDS: &[&str] = &[
    "users",
    "tags",
    "links",
    "webhooks",
    "assistants",
    "widgets",
    "contacts",
    "intents",
    "forms",
    "datasources",
    "datasource_files",
    "datasource_links",
    "intent_links",
    "agencies",
    "billing_plans",
    "campaigns",
    "campaign_contacts",
    "conversations",
    "deliveries",
];

/// The demo set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demo {
    /// When everything in it was made.
    time: Timestamp,
    /// The organisations.
    pub organisations: Vec<DemoOrganisation>,
}

/// An organisation of the demo set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemoOrganisation {
    /// Its id.
    pub org_id: OrgId,
    /// Its name.
    pub name: String,
    /// Its keys.
    pub keys: Vec<DemoKey>,
    /// Its records, by kind.
    #[serde(default)]
    records: BTreeMap<String, Vec<Value>>,
}

/// A key of the demo set. No other key is in any file.
#[derive(Debug, Deserialize)]
pub struct DemoKey {
    /// The key itself.
    pub key: String,
    /// Its stored form.
    #[serde(flatten)]
    record: Map<String, Value>,
}

impl DemoKey {
    /// What the key may do.
    pub fn role(&self) -> &str {
        self.record.get("role").and_then(Value::as_str).unwrap_or_default()
    }
}

impl Demo {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`Trouble`] says what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, Trouble> {
        let named = |error: String| Trouble(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
        serde_yaml_ng::from_str(&text).map_err(|error| named(error.to_string()))
    }

    /// The key that a newcomer may do everything with.
    pub fn full_key(&self) -> Option<&str> {
        self.organisations.iter().find_map(DemoOrganisation::full_key)
    }

    /// Puts the set into the table, unless it is there already: the last key of an organisation is put last, and tells this.
    ///
    /// # Errors
    /// [`Trouble`] names the invalid record.
    pub async fn load(&self, store: &Store) -> Result<(), Trouble> {
        for organisation in &self.organisations {
            organisation.load(self.time, store).await?;
        }
        Ok(())
    }
}

impl DemoOrganisation {
    /// Its key that everything can be done with.
    pub fn full_key(&self) -> Option<&str> {
        self.keys.iter().find(|key| key.role() == "full").map(|key| key.key.as_str())
    }

    async fn load(&self, time: Timestamp, store: &Store) -> Result<(), Trouble> {
        let keys = self.keys.iter().map(|key| self.key(key, time)).collect::<Result<Vec<_>, _>>()?;
        if let Some((last, _)) = keys.last()
            && store.api_key(&last.hash()).await.map_err(trouble)?.is_some()
        {
            return Ok(());
        }
        #[expect(clippy::disallowed_methods, reason = "the user of the stack loads the demo set")]
        let table = Table::new(store.clone(), Tenant::operator(self.org_id));
        if let Some(unknown) = self.records.keys().find(|kind| !KINDS.contains(&kind.as_str())) {
            return Err(Trouble(format!("demo set: no kind of record is called {unknown}")));
        }
        for kind in KINDS.iter().copied() {
            let mut records = Vec::new();
            for template in self.records.get(kind).into_iter().flatten() {
                records.extend(self.expand(template, time)?);
            }
            match kind {
                "users" => insert::<User>(&table, (), records).await?,
                "tags" => insert::<Tag>(&table, (), records).await?,
                "links" => insert::<Link>(&table, (), records).await?,
                "webhooks" => insert::<Webhook>(&table, (), records).await?,
                "assistants" => insert::<Assistant>(&table, (), records).await?,
                "widgets" => insert::<Widget>(&table, (), records).await?,
                "contacts" => insert::<Contact>(&table, (), records).await?,
                "intents" => insert::<Intent>(&table, (), records).await?,
                "forms" => insert::<Form>(&table, (), records).await?,
                "datasources" => insert::<Datasource>(&table, (), records).await?,
                "datasource_files" => insert_by::<DatasourceFile>(&table, |file| file.datasource_id, records).await?,
                "datasource_links" => insert_by::<DatasourceLink>(&table, |link| link.assistant_id, records).await?,
                "intent_links" => insert_by::<IntentLink>(&table, |link| link.assistant_id, records).await?,
                "agencies" => insert::<Agency>(&table, (), records).await?,
                "billing_plans" => insert_by::<BillingPlan>(&table, |plan| plan.agency_id, records).await?,
                "campaigns" => add_campaigns(&table, records).await?,
                "campaign_contacts" => add_campaign_contacts(&table, records).await?,
                "conversations" => converse(&table, records, time).await?,
                _ => deliver(&table, records).await?,
            }
        }
        for (key, record) in &keys {
            store.add_api_key(&key.hash(), record).await.map_err(trouble)?;
        }
        Ok(())
    }

    fn key(&self, key: &DemoKey, time: Timestamp) -> Result<(ApiKey, ApiKeyRecord), Trouble> {
        let parsed = ApiKey::parse(&key.key).ok_or_else(|| Trouble("demo set: a key is malformed".into()))?;
        let mut record = key.record.clone();
        record.insert("prefix".into(), parsed.display_prefix().into());
        Ok((parsed, record_of(self.complete(record, time))?))
    }

    /// The records that `template` stands for: one, or `repeat` of them, with their number in place of `{n}` and in their ids.
    fn expand(&self, template: &Value, time: Timestamp) -> Result<Vec<Value>, Trouble> {
        let Value::Object(members) = template else { return Err(Trouble("demo set: a record is no mapping".into())) };
        let Some(count) = members.get("repeat") else { return Ok(vec![self.complete(members.clone(), time)]) };
        let count = count.as_u64().ok_or_else(|| Trouble("demo set: repeat is no number".into()))?;
        let mut members = members.clone();
        members.remove("repeat");
        let numbered = |n: u64| {
            let text = Value::Object(members.clone()).to_string().replace("{n}", &n.to_string());
            let mut record: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
            if let Some(id) = record.get("id").and_then(|id| id.as_str()?.parse::<Uuid>().ok()) {
                let ordinal = u32::try_from(n).unwrap_or_default();
                record.insert("id".into(), with_ordinal(id, ordinal).to_string().into());
            }
            self.complete(record, time)
        };
        Ok((0..count).map(numbered).collect())
    }

    /// The fields that every record has by default.
    fn complete(&self, mut members: Map<String, Value>, time: Timestamp) -> Value {
        let time = Value::from(time.to_string());
        let common = [
            ("org_id", self.org_id.to_string().into()),
            ("attributes", Value::Object(Map::new())),
            ("created_at", time.clone()),
            ("updated_at", time),
        ];
        for (name, value) in common {
            members.entry(name).or_insert(value);
        }
        Value::Object(members)
    }
}

/// Inserts the rows that the list does not have yet, so that an interrupted load is continued.
async fn insert<R: Listed>(table: &Table, of: R::Of, records: Vec<Value>) -> Result<(), Trouble>
where
    R::Id: PartialEq + std::fmt::Debug,
{
    let have = table.next_ordinal::<R>(of).await.map_err(trouble)? as usize;
    let rows = records.into_iter().skip(have).map(listed::<R>).collect::<Result<Vec<_>, _>>()?;
    for rows in rows.chunks(INSERT_LIMIT) {
        let ids: Vec<Uuid> = rows.iter().map(|(id, _)| *id).collect();
        let made = table.insert_all::<R>(of, &ids, |index, _| rows[index].1.clone()).await.map_err(trouble)?;
        let expected = |(ordinal, id): (u32, &Uuid)| R::proof(R::id_at(of, *id, ordinal)) == Some(*id);
        let first = table.next_ordinal::<R>(of).await.map_err(trouble)? - u32::try_from(made.len()).unwrap_or_default();
        if let Some((_, id)) = (first..).zip(&ids).find(|pair| !expected(*pair)) {
            return Err(Trouble(format!("demo set: {id} does not end in its place in the list of {}", R::NAME)));
        }
    }
    table.remove_tokens::<R>(of).await.map_err(trouble)
}

/// A row with a fixed id.
fn listed<R: Listed>(value: Value) -> Result<(Uuid, R), Trouble> {
    let id = value["id"].as_str().and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| Trouble(format!("demo set: {value} has no id")))?;
    Ok((id, record_of(value)?))
}

/// Inserts rows, each into the list of its owner.
async fn insert_by<R: Listed<Of: Ord>>(
    table: &Table,
    owner: impl Fn(&R) -> R::Of,
    records: Vec<Value>,
) -> Result<(), Trouble>
where
    R::Id: PartialEq + std::fmt::Debug,
{
    let mut by_owner: BTreeMap<R::Of, Vec<Value>> = BTreeMap::new();
    for record in records {
        by_owner.entry(owner(&record_of(record.clone())?)).or_default().push(record);
    }
    for (of, records) in by_owner {
        insert::<R>(table, of, records).await?;
    }
    Ok(())
}

/// Inserts campaigns, whose messages are stored beside them.
async fn add_campaigns(table: &Table, records: Vec<Value>) -> Result<(), Trouble> {
    for record in &records {
        table.stage_message(&record_of(record.clone())?).await.map_err(trouble)?;
    }
    let without_message = |mut record: Value| {
        record["message"] = Value::Null;
        record
    };
    insert::<Campaign>(table, (), records.into_iter().map(without_message).collect()).await
}

/// Queues the contacts of campaigns, and has those fail that have failed.
async fn add_campaign_contacts(table: &Table, records: Vec<Value>) -> Result<(), Trouble> {
    let contacts = records.into_iter().map(record_of).collect::<Result<Vec<CampaignContact>, _>>()?;
    let queue = |contact: CampaignContact| CampaignContact { status: ContactStatus::Queued, error: None, ..contact };
    let queued: Vec<_> = contacts.iter().cloned().map(queue).collect();
    table.stage_contacts(&queued).await.map_err(trouble)?;
    for (contact, queued) in contacts.iter().zip(&queued) {
        if let Some(error) = &contact.error {
            let campaign = table.get(contact.campaign_id).await.map_err(trouble)?;
            table.fail_contact(&campaign, queued, error, contact.updated_at).await.map_err(trouble)?;
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

/// Opens the conversations, adds their messages, and closes those that are closed.
async fn converse(table: &Table, records: Vec<Value>, time: Timestamp) -> Result<(), Trouble> {
    let mut moves = Vec::new();
    for (place, record) in records.into_iter().enumerate() {
        let Spoken { conversation, messages } = record_of(record)?;
        // A stack without a stream has nobody else to do it.
        let (key, is) = (table.key::<Conversation>(conversation.id), Some(conversation.terms()));
        moves.push(Move { key, was: None, is, made_at: conversation.dated() });
        if table.next_ordinal::<Conversation>(()).await.map_err(trouble)? as usize > place {
            continue;
        }
        let (id, now) = (conversation.id, conversation.created_at);
        let row = NewRow { of: (), id: id.0, origin: None, now };
        let open = |id| Conversation { id, chat_count: 0, status: ConversationStatus::Open, ..conversation.clone() };
        table.insert(row, open).await.map_err(trouble)?;
        for message in messages {
            let Message { id: message_id, sender_type, message_type, text, .. } = message;
            let new = NewMessage { sender_type, message_type, text };
            table.add_message(id, message_id, &new, None, now).await.map_err(trouble)?;
        }
        if !conversation.is_open() {
            let close = |open: &mut Conversation| open.close(now);
            let closed = table.try_change(id, id.0, close).await.map_err(trouble)?;
            closed.map_err(|error| Trouble(format!("demo set: {id}: {error}")))?;
        }
    }
    table.remove_tokens::<Conversation>(()).await.map_err(trouble)?;
    table.follow(&moves, time).await.map_err(trouble)
}

/// Adds deliveries of closed conversations and gives them up at once: nothing of the demo set is ever sent.
async fn deliver(table: &Table, records: Vec<Value>) -> Result<(), Trouble> {
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
        for id in table.enqueue(webhook_id.into(), &[new], closed.created_at).await.map_err(trouble)? {
            let was = Delivery::new(id, new, closed.created_at);
            let is = was.clone().dead(&error, closed.created_at);
            table.replace_delivery(webhook_id.into(), &was, &is).await.map_err(trouble)?;
        }
        table.remove_tokens::<Delivery>(webhook_id.into()).await.map_err(trouble)?;
    }
    Ok(())
}

fn record_of<R: DeserializeOwned>(value: Value) -> Result<R, Trouble> {
    let id = value["id"].clone();
    serde_json::from_value(value).map_err(|error| Trouble(format!("demo set: record {id}: {error}")))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err passes")]
fn trouble(error: TableError) -> Trouble {
    Trouble(format!("demo set: {}", chain(&error)))
}
