//! The most operations per second of one organisation, by the units that they take of partitions.
//!
//! Nothing is timed: for each operation, the units that it takes of each partition are counted, including all later
//! reactions on the stream. A partition gives a number of units per second, and the hottest one is used up first. So
//! the figures are the same on every machine.

use embedded_dynamodb::partitions::{Counting, Heat, Partition, Partitions};
use local::database::TABLE_NAME;
use local::receiver::Receiver;
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::records::contact::Contact;
use shared::records::conversation::Conversation;
use shared::records::delivery;
use shared::records::delivery::{Delivery, NewDelivery};
use shared::records::event::EventId;
use shared::table::keys::{NEIGHBOURS, ROWS, SHARDS, list_head};
use shared::table::stored::Listed as _;
use shared::values::id::{EndpointId, SPREAD};
use shared::values::time::Clock;
use uuid::Uuid;

use crate::Result;
use crate::bench::Bench;
use crate::figures::{Figures, Must, Row, Unit, figure};
use crate::organisation::Organisation;

const SECTION: &str = "What one organisation can do in a second, by the units of the hottest partition";

/// How many times each operation is executed: enough that a long list uses each of its partitions equally often.
const OPERATIONS: usize = 1024;
const _: () = assert!(OPERATIONS as u64 == SHARDS * NEIGHBOURS);
/// The most contacts that a call imports.
const IMPORTED: usize = 500;
/// After so many operations the stream passes their changes on: about the size of a batch while the operations come as
/// fast as possible.
const WAVE: usize = 25;
/// Sends per second, so high that none waits.
const MANY: u32 = 10_000;
/// The most ticks that a campaign takes.
const TICKS: usize = 20;

/// The service with an organisation, and the units counted so far.
struct Counted {
    stack: Stack,
    receiver: Receiver,
    partitions: Partitions,
    organisation: Organisation,
}

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let counted = Counted::new(bench).await?;
    counted.spread(&Conversation::list(()))?;
    counted.spread(&Contact::list(()))?;
    counted.conversations(figures).await?;
    counted.messages(figures).await?;
    counted.deliveries(figures).await?;
    counted.contacts(figures).await?;
    counted.campaign(figures).await?;
    counted.stack.stop().await;
    Ok(())
}

/// A contact whose telephone number no other contact has.
fn contact(call: usize, number: usize) -> Value {
    json!({"first_name": "New", "phone_number": format!("+316{call}{number:08}")})
}

impl Counted {
    async fn new(bench: &Bench) -> Result<Self> {
        let partitions = Partitions::new(Counting::Counted);
        let settings = Settings {
            demo: None,
            partitions: partitions.clone(),
            sends_per_second: MANY,
            ..Settings::of(&bench.root)
        };
        let (stack, receiver) = (Stack::start(settings).await?, Receiver::start().await?);
        let organisation = Organisation::new(&stack, stack.gateway.service.store.clone()).await?;
        Ok(Self { stack, receiver, partitions, organisation })
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.organisation.post(&self.stack, path, body).await
    }

    /// A webhook to `path` of the receiver, and an assistant with this webhook.
    async fn assistant(&self, path: &str) -> Result<(EndpointId, Value)> {
        let endpoint = format!("{}{path}", self.receiver.url);
        let webhook = self.post("/api/v1/outbound_webhook", &json!({"endpoint": endpoint})).await?;
        let assistant = self.post("/api/v1/assistant", &json!({"webhook_id": webhook["id"]})).await?;
        let endpoint = EndpointId(serde_json::from_value(webhook["id"].clone())?);
        self.spread(&Delivery::list(endpoint))?;
        Ok((endpoint, assistant["id"].clone()))
    }

    /// Opens a conversation with these values; returns its path.
    async fn open(&self, with: &Value) -> Result<String> {
        let opened = self.post("/api/v1/conversation", with).await?;
        Ok(format!("/api/v1/conversation/{}", opened["id"].as_str().ok_or("no id")?))
    }

    /// Spreads the rows of a list, as in a long list.
    fn spread(&self, list: &str) -> Result<()> {
        let head = list_head(&self.organisation.tenant, list);
        let item = json!({"pk": {"S": head.pk}, "sk": {"S": head.sk}, "next_ordinal": {"N": SPREAD.to_string()}, "spread_from": {"N": "0"}});
        let request = json!({"TableName": TABLE_NAME, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"});
        self.stack.database.put_item(serde_json::from_value(request)?)?;
        Ok(())
    }

    /// Waits for all reactions, and begins to count.
    async fn begin(&self) -> Result<()> {
        self.stack.settle().await?;
        self.partitions.forget();
        Ok(())
    }

    /// Runs the reactions to the changes of a wave, if `number` is the last one of the wave or of all.
    async fn follow(&self, number: usize) -> Result<()> {
        if (number + 1).is_multiple_of(WAVE) || number + 1 == OPERATIONS {
            self.stack.settle().await?;
        }
        Ok(())
    }

    /// Reports the units that `count` of `what` took of the hottest partition, and of each other partition that each of
    /// them uses, and how many per second that allows, which must be `at_least` so many.
    fn report(&self, figures: &mut Figures, what: &str, count: usize, at_least: f64) -> Result<()> {
        eprintln!("{what}, {count} times\n{}", self.partitions);
        let of_each = |(partition, heat): (Partition, Heat)| (partition, heat.units / figure(count as u64));
        let mut taken: Vec<_> = self.partitions.heat().into_iter().map(of_each).collect();
        let most = |(partition, units): &(Partition, f64)| partition.unit.limit() / units;
        taken.sort_by(|one, other| most(one).total_cmp(&most(other)));
        // The first of the partitions over which rows are spread represents all of them.
        let is_first_shard =
            |key: &str| key.rsplit_once(ROWS).is_none_or(|(_, shard)| shard.is_empty() || shard == "#0");
        let hottest_key = taken.first().map(|(partition, _)| partition.key.clone());
        taken.retain(|(of, units)| Some(&of.key) == hottest_key.as_ref() || *units >= 1.0 && is_first_shard(&of.key));
        let hottest = taken.first().ok_or("nothing was counted")?;
        let row = Row::new(SECTION, format!("{what}: in a second"), most(hottest), Unit::PerSecond);
        figures.push(row.must(Must::AtLeast(at_least)));
        for (partition, units) in taken {
            let of = partition.index.as_ref().map(|index| format!(" of the index `{index}`")).unwrap_or_default();
            let unit = format!("{:?}", partition.unit).to_lowercase();
            let subject = format!("{what}: {unit} units of `{}`{of} for each", partition.name(true));
            figures.push(Row::new(SECTION, subject, units, Unit::CapacityUnits));
        }
        Ok(())
    }

    async fn conversations(&self, figures: &mut Figures) -> Result<()> {
        let (_, assistant) = self.assistant("/closed").await?;
        let widget = json!({"assistant_id": assistant, "widget_type": "chat"});
        let widget = self.post("/api/v1/widget", &widget).await?["id"].take();
        let contacts = self.import(1).await?;
        self.begin().await?;
        for (number, contact) in contacts.iter().enumerate() {
            let with = json!({"assistant_id": assistant, "widget_id": widget, "contact_id": contact});
            let conversation = self.open(&with).await?;
            self.post(&format!("{conversation}/close"), &Value::Null).await?;
            self.follow(number).await?;
        }
        self.received("/closed", OPERATIONS)?;
        self.report(
            figures,
            "conversations with contacts opened and closed, with an event to one webhook",
            OPERATIONS,
            300.0,
        )
    }

    async fn messages(&self, figures: &mut Figures) -> Result<()> {
        let (_, assistant) = self.assistant("/messages").await?;
        let mut conversations = Vec::new();
        for _ in 0..OPERATIONS {
            conversations.push(self.open(&json!({"assistant_id": assistant})).await?);
        }
        let one = &conversations[..1];
        let many = ("messages to many conversations", &conversations[..], 2000.0);
        for (which, conversations, at_least) in [many, ("messages to one", one, 500.0)] {
            self.begin().await?;
            for number in 0..OPERATIONS {
                let path = format!("{}/message", conversations[number % conversations.len()]);
                self.post(&path, &json!({"sender_type": "user", "text": "Until when are you open?"})).await?;
                self.follow(number).await?;
            }
            self.report(figures, which, OPERATIONS, at_least)?;
        }
        Ok(())
    }

    async fn deliveries(&self, figures: &mut Figures) -> Result<()> {
        let (webhook, _) = self.assistant("/hook").await?;
        self.begin().await?;
        for first in (0..OPERATIONS).step_by(WAVE) {
            let now = Clock::System.now();
            let new: Vec<_> = (first..OPERATIONS.min(first + WAVE))
                .map(|_| NewDelivery::test(EventId(Uuid::now_v7()), now))
                .collect();
            delivery::enqueue(&self.organisation.table, webhook, &new, now).await?;
            self.stack.settle().await?;
        }
        self.received("/hook", OPERATIONS)?;
        self.report(figures, "deliveries to one webhook", OPERATIONS, 1000.0)
    }

    async fn contacts(&self, figures: &mut Figures) -> Result<()> {
        self.begin().await?;
        for number in 0..OPERATIONS {
            self.post("/api/v1/contact/upsert", &contact(0, number)).await?;
            self.follow(number).await?;
        }
        self.report(figures, "contacts created by `upsert-contact`", OPERATIONS, 1000.0)?;
        self.begin().await?;
        self.import(2).await?;
        self.stack.settle().await?;
        self.report(figures, "contacts created by `import-contacts`", OPERATIONS, 1000.0)
    }

    /// Imports contacts that no other call imports; returns their ids.
    async fn import(&self, call: usize) -> Result<Vec<Value>> {
        let contacts: Vec<Value> = (0..OPERATIONS).map(|number| contact(call, number)).collect();
        let mut ids = Vec::new();
        for contacts in contacts.chunks(IMPORTED) {
            let mut imported = self.post("/api/v1/contact/import", &json!({"contacts": contacts})).await?;
            let items = imported["items"].as_array_mut().ok_or("no items")?;
            ids.extend(items.iter_mut().map(|item| item["id"].take()));
        }
        Ok(ids)
    }

    async fn campaign(&self, figures: &mut Figures) -> Result<()> {
        let (_, assistant) = self.assistant("/campaign").await?;
        let connector = format!("{}/connector", self.receiver.url);
        let widget = json!({"assistant_id": assistant, "widget_type": "whatsapp", "connector_url": connector});
        let widget = self.post("/api/v1/widget", &widget).await?;
        self.spread(&Delivery::list(EndpointId(serde_json::from_value(widget["id"].clone())?)))?;
        let contacts = self.import(3).await?;
        let path = format!("/api/v1/campaign/run/{}", widget["id"].as_str().ok_or("no id")?);
        self.post(&path, &json!({"contact_ids": contacts, "message": "Hello"})).await?;
        // The seconds in which the campaign is sent come after this request.
        self.begin().await?;
        for _ in 0..TICKS {
            self.stack.settle().await?;
            if self.receiver.count("/connector") >= OPERATIONS {
                break;
            }
            self.stack.minute().await?;
        }
        self.received("/connector", OPERATIONS)?;
        self.report(figures, "contacts of one campaign with a connector", OPERATIONS, 500.0)
    }

    /// Requires that so many requests were received.
    fn received(&self, path: &str, wanted: usize) -> Result<()> {
        match self.receiver.count(path) {
            count if count == wanted => Ok(()),
            count => Err(format!("{path} got {count} requests of {wanted}").into()),
        }
    }
}
