//! Gives the tests of the outbox and of campaigns organisations, a receiver of events, and a clock that the test sets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use local::database::TABLE_NAME;
use local::faults::Faults;
use local::http::{Answer, Call};
use local::receiver::{Received, Receiver};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::network::address::Reach;
use shared::network::{Network, SystemLookup};
use shared::records::delivery::Delivery;
use shared::table::Table;
use shared::table::page::PageQuery;
use shared::values::id::{EndpointId, OrgId};
use shared::values::tenant::Tenant;
use shared::values::time::{Clock, Timestamp};
use standardwebhooks::Webhook;

use crate::support::documented::documented_event;
use crate::support::fixture::{NOW, PATIENT, call, data, empty};

/// The service with an empty table, and a receiver that answers 200 by default.
pub struct Setup {
    pub stack: Stack,
    pub receiver: Receiver,
    pub clock: Clock,
    pub faults: Faults,
}

/// An organisation with its key and its part of the table, for work that no operation does.
#[derive(Clone)]
pub struct Org {
    pub id: OrgId,
    pub key: String,
    pub table: Table,
}

impl Drop for Setup {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.receiver.all().iter().for_each(documented_event);
        }
    }
}

pub fn loopback(attempt: Duration) -> Network {
    Network::new(Reach::Loopback, Arc::new(SystemLookup), attempt)
}

impl Setup {
    pub async fn start() -> Self {
        Self::with(|settings| settings).await
    }

    /// A setup with changed settings.
    pub async fn with(change: impl FnOnce(Settings) -> Settings) -> Self {
        let (clock, faults) = (Clock::at(Timestamp::from_unix_millis(NOW)), Faults::default());
        let settings = change(Settings {
            stream: true,
            clock: clock.clone(),
            faults: faults.clone(),
            network: loopback(PATIENT),
            ..empty()
        });
        let clock = settings.clock.clone();
        let (stack, receiver) = tokio::join!(Stack::start(settings), Receiver::start());
        Self { stack: stack.unwrap(), receiver: receiver.unwrap(), clock, faults }
    }

    /// Makes an organisation.
    pub async fn org(&self) -> Org {
        let issued = self.stack.gateway.invoke_by_name("issue-api-key", br#"{"name":"Test"}"#).await;
        let issued: Value = serde_json::from_str(&issued.body).unwrap();
        let id = serde_json::from_value(issued["org_id"].clone()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the tests are their own operator")]
        let tenant = Tenant::operator(id);
        let table = Table::new(self.stack.store(), tenant);
        Org { id, key: issued["api_key"].as_str().unwrap().to_owned(), table }
    }

    pub async fn ask(&self, org: &Org, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into() };
        self.stack.answer(&Call { body, ..call(method, path, &org.key) }).await
    }

    pub async fn get(&self, org: &Org, path: &str) -> Value {
        data(&self.ask(org, "GET", path, &Value::Null).await)
    }

    pub async fn post(&self, org: &Org, path: &str, body: Value) -> Value {
        data(&self.ask(org, "POST", path, &body).await)
    }

    /// Makes a webhook to the receiver's `path`. It subscribes to what does not happen, so it gets only the events of the
    /// assistants that name it.
    pub async fn webhook(&self, org: &Org, path: &str) -> Value {
        let fields = json!({"endpoint": format!("{}{path}", self.receiver.url), "events": ["agency.deleted"]});
        self.post(org, "/api/v1/outbound_webhook", fields).await
    }

    /// Makes an assistant with this webhook.
    pub async fn assistant(&self, org: &Org, webhook: &Value) -> Value {
        self.post(org, "/api/v1/assistant", json!({"webhook_id": webhook["id"]})).await
    }

    pub async fn open(&self, org: &Org, assistant: &Value) -> Value {
        self.post(org, "/api/v1/conversation", json!({"assistant_id": assistant["id"]})).await
    }

    pub async fn close(&self, org: &Org, conversation: &Value) -> Value {
        self.post(org, &format!("/api/v1/conversation/{}/close", id_of(conversation)), Value::Null).await
    }

    /// Opens and closes `count` conversations.
    pub async fn converse(&self, org: &Org, assistant: &Value, count: usize) {
        for _ in 0..count {
            let conversation = self.open(org, assistant).await;
            self.close(org, &conversation).await;
        }
    }

    /// All deliveries to a webhook, or to a widget's connector.
    pub async fn outbox(&self, org: &Org, endpoint: &Value) -> Vec<Delivery> {
        let (endpoint, mut all): (EndpointId, _) = (id_of(endpoint).parse::<uuid::Uuid>().unwrap().into(), Vec::new());
        for page in 1.. {
            let query = PageQuery::oldest_first(page, 100);
            let page = org.table.page::<Delivery>(endpoint, &query).await.unwrap();
            all.extend(page.items);
            if page.next_page.is_none() {
                break;
            }
        }
        all
    }

    pub async fn settle(&self) {
        self.stack.settle().await.unwrap();
    }

    /// Invokes the functions on a schedule, and then the functions on the stream.
    pub async fn minute(&self) {
        self.ticks().await;
        self.settle().await;
    }

    /// Invokes the functions on a schedule that have a due item. Any other function would only read its empty partitions
    /// of the index, and these reads were a third of all calls of the tests. Returns true if it invoked
    /// a function.
    pub async fn ticks(&self) -> bool {
        let due = self.find(Some("Due"), "due_at <= :now", &json!({":now": {"S": self.clock.now()}}));
        let functions: BTreeSet<&str> = due.iter().map(|item| handler_of(&item["due_pk"])).collect();
        let any = !functions.is_empty();
        join_all(functions.into_iter().map(async |name| self.stack.tick(name).await.unwrap())).await;
        any
    }

    /// Lets time pass without any work.
    pub fn pass(&self, seconds: i64) {
        self.clock.set(self.clock.now().plus_seconds(seconds));
    }

    /// Lets `count` minutes pass with their ticks. The functions on the stream follow the ticks, and the last minute.
    pub async fn minutes(&self, count: usize) {
        for left in (0..count).rev() {
            self.pass(60);
            if self.ticks().await || left == 0 {
                self.settle().await;
            }
        }
    }

    /// The items in the index of due items, each with its time.
    pub fn due(&self) -> BTreeMap<String, String> {
        // An item that was already looked at is no work, so it is left out.
        let condition = "attribute_exists(due_pk) AND (attribute_not_exists(looked) OR looked <> :looked)";
        let due = self.find(None, condition, &json!({":looked": {"BOOL": true}}));
        let of = |item: &Value, name: &str| item[name]["S"].as_str().unwrap().to_owned();
        due.iter().map(|item| (format!("{} {}", of(item, "pk"), of(item, "sk")), of(item, "due_at"))).collect()
    }

    /// The items of the table, or of an index, that meet `condition`, as JSON of DynamoDB.
    pub fn find(&self, index: Option<&str>, condition: &str, values: &Value) -> Vec<Value> {
        let (mut found, mut next) = (Vec::new(), Value::Null);
        loop {
            let mut request = json!({
                "TableName": TABLE_NAME,
                "IndexName": index,
                "FilterExpression": condition,
                "ExpressionAttributeValues": values,
            });
            if !next.is_null() {
                request["ExclusiveStartKey"] = next;
            }
            let page = json!(self.stack.database.scan(serde_json::from_value(request).unwrap()).unwrap());
            found.extend(page["Items"].as_array().unwrap().iter().cloned());
            next = page["LastEvaluatedKey"].clone();
            if next.is_null() {
                return found;
            }
        }
    }
}

/// The function that handles the items of a partition of the index of due items.
fn handler_of(partition: &Value) -> &'static str {
    let partition = partition["S"].as_str().unwrap();
    let (kind, _) = partition.split_once('#').unwrap();
    match kind {
        "CAMPAIGN" => "send-campaigns",
        "CONVERSATION" | "DELIVERY" | "EVENT" => "release-deliveries",
        "DEFERRED" | "ENDPOINT" => "send-delivery",
        "EXPORT" => "run-exports",
        "RETIRED_WEBHOOK" => "remove-payment-webhooks",
        _ => panic!("no function is known for {kind}"),
    }
}

/// The id of an answered record.
pub fn id_of(made: &Value) -> &str {
    made["id"].as_str().unwrap()
}

/// The number of requests of each event.
pub fn events(received: &[Received]) -> BTreeMap<&str, usize> {
    received.iter().fold(BTreeMap::new(), |mut times, request| {
        *times.entry(&request.headers["webhook-id"][..]).or_default() += 1;
        times
    })
}

/// Whether one of the request's signatures is made with `secret`.
pub fn is_signed_with(request: &Received, secret: &Value) -> bool {
    let header = |name: &str| request.headers[name].as_str();
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp").parse().unwrap());
    let wanted = Webhook::new(secret.as_str().unwrap()).unwrap().sign(id, timestamp, &request.body).unwrap();
    header("webhook-signature").split(' ').any(|signature| signature == wanted)
}
