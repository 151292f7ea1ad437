//! Loads the demo set from its file: organisations, keys, and some records of each kind, with fixed ids.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use shared::records::agency::Agency;
use shared::records::api_key::{ApiKey, ApiKeyRecord};
use shared::records::assistant::Assistant;
use shared::records::campaign::{Campaign, CampaignContact};
use shared::records::contact::Contact;
use shared::records::conversation::{Conversation, Message, NewMessage};
use shared::records::datasource::{Datasource, DatasourceFile, DatasourceLink};
use shared::records::delivery::{NewDelivery, StoredDelivery};
use shared::records::form::Form;
use shared::records::intent::Intent;
use shared::records::tag::{Link, Tag};
use shared::records::user::User;
use shared::records::webhook::StoredWebhook;
use shared::records::widget::Widget;
use shared::request::error::chain;
use shared::request::tenant::Tenant;
use shared::table::keys::{Entity, Row};
use shared::table::list::APPEND_LIMIT;
use shared::table::store::{BATCH_WRITE_LIMIT, Item, Store};
use shared::table::{Table, TableError};
use shared::values::id::{ConversationId, OrgId, WebhookId, with_ordinal};
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::Trouble;

/// The kinds that stand in lists, in the order in which they are loaded.
const LISTS: [&str; 5] = ["users", "links", "webhooks", "conversations", "deliveries"];

/// The demo set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demo {
    /// When everything in it was made.
    time: Timestamp,
    /// The organisations.
    pub organisations: Vec<Organisation>,
}

/// An organisation of the demo set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Organisation {
    /// Its id.
    pub org_id: OrgId,
    /// Its name.
    pub name: String,
    /// Its keys.
    pub keys: Vec<Key>,
    /// Its records, by kind.
    #[serde(default)]
    records: BTreeMap<String, Vec<Value>>,
}

/// A key of the demo set. No other key stands in any file.
#[derive(Debug, Deserialize)]
pub struct Key {
    /// The key itself.
    pub key: String,
    /// What the database holds of it.
    #[serde(flatten)]
    record: Map<String, Value>,
}

impl Key {
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

    /// Puts the set into the table, unless it is there: an organisation's last key, which is put last, tells.
    ///
    /// # Errors
    /// [`Trouble`] names the record that is not as it should be.
    pub async fn load(&self, store: &Store) -> Result<(), Trouble> {
        for organisation in &self.organisations {
            organisation.load(self.time, store).await?;
        }
        Ok(())
    }
}

impl Organisation {
    async fn load(&self, time: Timestamp, store: &Store) -> Result<(), Trouble> {
        let keys = self.keys.iter().map(|key| self.key(key, time)).collect::<Result<Vec<_>, _>>()?;
        if let Some((last, _)) = keys.last()
            && store.api_key(&last.hash()).await.map_err(trouble)?.is_some()
        {
            return Ok(());
        }
        #[expect(clippy::disallowed_methods, reason = "the demo set is loaded by whoever runs the stack")]
        let table = Table::new(store.clone(), Tenant::operator(self.org_id));
        let (mut items, mut listed) = (Vec::new(), BTreeMap::<_, Vec<Value>>::new());
        for (kind, templates) in &self.records {
            for template in templates {
                let records = self.expand(template, time)?;
                match kind.as_str() {
                    "agencies" => items.extend(each(&table, records, |agency: &Agency| agency.id)?),
                    "assistants" => items.extend(each(&table, records, |assistant: &Assistant| assistant.id)?),
                    "campaigns" => items.extend(each(&table, records, |campaign: &Campaign| campaign.id)?),
                    "campaign_contacts" => items.extend(each(&table, records, |contact: &CampaignContact| contact.id)?),
                    "contacts" => items.extend(each(&table, records, |contact: &Contact| contact.id)?),
                    "datasources" => items.extend(each(&table, records, |datasource: &Datasource| datasource.id)?),
                    "datasource_files" => items.extend(each(&table, records, |file: &DatasourceFile| file.id)?),
                    "datasource_links" => {
                        items.extend(each(&table, records, |link: &DatasourceLink| {
                            (link.datasource_id, link.assistant_id)
                        })?);
                    }
                    "forms" => items.extend(each(&table, records, |form: &Form| form.id)?),
                    "intents" => items.extend(each(&table, records, |intent: &Intent| intent.id)?),
                    "tags" => items.extend(each(&table, records, |tag: &Tag| tag.id)?),
                    "widgets" => items.extend(each(&table, records, |widget: &Widget| widget.id)?),
                    // What stands in a list comes after what it refers to.
                    kind if LISTS.contains(&kind) => listed.entry(kind).or_default().extend(records),
                    other => return Err(Trouble(format!("demo set: no kind of record is called {other}"))),
                }
            }
        }
        for batch in items.chunks(BATCH_WRITE_LIMIT) {
            store.put_batch(batch.to_vec()).await.map_err(trouble)?;
        }
        for kind in LISTS {
            let records = listed.remove(kind).unwrap_or_default();
            match kind {
                "users" => append::<User>(&table, records).await?,
                "links" => append::<Link>(&table, records).await?,
                "webhooks" => append::<StoredWebhook>(&table, records).await?,
                "conversations" => converse(&table, records).await?,
                _ => deliver(&table, records).await?,
            }
        }
        for (key, record) in &keys {
            store.add_api_key(&key.hash(), record).await.map_err(trouble)?;
        }
        Ok(())
    }

    fn key(&self, key: &Key, time: Timestamp) -> Result<(ApiKey, ApiKeyRecord), Trouble> {
        let parsed = ApiKey::parse(&key.key).ok_or_else(|| Trouble("demo set: a key is malformed".into()))?;
        let mut record = key.record.clone();
        record.insert("prefix".into(), parsed.display_prefix().into());
        Ok((parsed, record_of(self.complete(record, time))?))
    }

    /// The records that `template` stands for: one, or `repeat` of them, with `{n}` in their texts and the number in their ids.
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

    /// What every record has, where it does not say otherwise.
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

fn each<R: Entity>(table: &Table, records: Vec<Value>, id: impl Fn(&R) -> R::Id) -> Result<Vec<Item>, Trouble> {
    let item = |value| {
        let record: R = record_of(value)?;
        table.item(id(&record), &record).map_err(trouble)
    };
    records.into_iter().map(item).collect()
}

/// Appends what the list does not have yet: a load that died on its way is taken up where it stopped.
async fn append<R: Row<Of = (), Id: From<Uuid>> + Clone>(table: &Table, records: Vec<Value>) -> Result<(), Trouble> {
    let rows = records.into_iter().map(record_of).collect::<Result<Vec<R>, _>>()?;
    loop {
        let have = table.next_ordinal::<R>(()).await.map_err(trouble)?;
        let left = u32::try_from(rows.len()).unwrap_or(u32::MAX).saturating_sub(have);
        if left == 0 {
            return Ok(());
        }
        let row = |ordinal: u32| rows[ordinal as usize].clone();
        table.append(left.min(APPEND_LIMIT), row).await.map_err(trouble)?;
    }
}

/// A conversation of the demo set, with what is said in it.
#[derive(Debug, Deserialize)]
struct Spoken {
    #[serde(flatten)]
    conversation: Conversation,
    messages: Vec<Message>,
}

/// Opens the conversations, has them said what is said in them, and closes those that are closed.
async fn converse(table: &Table, records: Vec<Value>) -> Result<(), Trouble> {
    for (place, record) in records.into_iter().enumerate() {
        if table.next_ordinal::<Conversation>(()).await.map_err(trouble)? as usize > place {
            continue;
        }
        let Spoken { conversation, messages } = record_of(record)?;
        let (id, now) = (conversation.id, conversation.created_at);
        let opening = Conversation::open(id, conversation.fields.clone(), now);
        let opened = table.open_conversation(None, |place| opening.at(place)).await.map_err(trouble)?;
        opened.map_err(|needs| Trouble(format!("demo set: conversation {id}: no such {}", needs.field())))?;
        for message in messages {
            let Message { id: message_id, sender_type, message_type, text, .. } = message;
            let new = NewMessage { sender_type, message_type, text };
            table.add_message(id, message_id, &new, None, now).await.map_err(trouble)?;
        }
        if !conversation.is_open() {
            table.close_conversation(id, id.0, now).await.map_err(trouble)?;
        }
    }
    Ok(())
}

/// Puts deliveries of closed conversations, which are given up at once: nothing of the demo set is ever sent.
async fn deliver(table: &Table, records: Vec<Value>) -> Result<(), Trouble> {
    #[derive(Debug, Deserialize)]
    struct GivenUp {
        webhook_id: WebhookId,
        conversation_id: ConversationId,
        error: String,
    }
    for record in records {
        let GivenUp { webhook_id, conversation_id, error } = record_of(record)?;
        let closed: Conversation = table.get(conversation_id).await.map_err(trouble)?;
        let new = NewDelivery::closed(&closed);
        for id in table.enqueue(webhook_id.into(), &[new], closed.created_at).await.map_err(trouble)? {
            let was = StoredDelivery::new(id, new, closed.created_at);
            let is = was.clone().dead(&error, closed.created_at);
            table.replace_delivery(webhook_id.into(), &was, &is).await.map_err(trouble)?;
        }
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
