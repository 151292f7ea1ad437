//! Tests that stored records stay readable. `stored/` keeps a sample of each record, which every later version reads.
//!
//! `cargo generate` writes missing samples and never changes one. A record that cannot read its sample needs a migration.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use local::http::Call;
use local::payment_provider::event::NewPaymentEvent;
use repository::{names_in, root};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::payments::customer::PaymentCustomer;
use shared::payments::retired_webhook;
use shared::payments::retired_webhook::RetiredWebhook;
use shared::prelude::*;
use shared::records::agency::StoredPaymentWebhook;
use shared::records::campaign::rate_limit::{self, Limited, RateLimitSlot};
use shared::records::delivery::{self, EndpointHealth};
use shared::records::event::{Event, LogPage};
use shared::request::api_key::ApiKeyRecord;
use shared::request::claim::Claim;
use shared::routes;
use shared::table::item::{Item, from_item};
use shared::table::wire::QueryOutput;
use shared::values::secret::Secret;

use crate::support::fixture::{
    ACME, NOW, acme, data, demo_payment_secret, everything, get, id, kind, signed, spoil, stack, valid_call,
};
use crate::support::generated::{generating, write};
use crate::support::records::item_of;

/// Reads an item as one record. Returns its JSON, or the reason why it cannot be read.
type Reads = fn(&Item) -> Result<Value, String>;

fn reads<R: DeserializeOwned + Serialize>(item: &Item) -> Result<Value, String> {
    let record: R = from_item(item.clone()).map_err(|error| error.to_string())?;
    let json = json!({"Items": [wire(item)], "Count": 1});
    let from_wire = QueryOutput::<R>::read(&json.to_string()).unwrap().items;
    let (one, other) = (serde_json::to_value(&record).unwrap(), serde_json::to_value(&from_wire[0]).unwrap());
    assert_eq!(one, other, "a page reads it in another way");
    Ok(one)
}

/// Every stored record, and the part of its key that identifies it if it is in no list.
fn records() -> Vec<(&'static str, &'static str, Reads)> {
    vec![
        ("Agency", "", reads::<Agency>),
        ("ApiKeyRecord", "KEY#", reads::<ApiKeyRecord>),
        ("Assistant", "", reads::<Assistant>),
        ("Audit", "#AUDIT#", reads::<Audit>),
        ("BillingPlan", "", reads::<BillingPlan>),
        ("Campaign", "", reads::<Campaign>),
        ("CampaignContact", "#CAMPAIGN_CONTACT#", reads::<CampaignContact>),
        ("CapturedForm", "", reads::<CapturedForm>),
        ("CapturedIntent", "", reads::<CapturedIntent>),
        // A claim is never answered, so its JSON leaves out the bytes.
        ("Claim", "#IDEMPOTENCY#", |item| {
            from_item::<Claim>(item.clone()).map(|claim| json!({"ttl": claim.ttl})).map_err(|error| error.to_string())
        }),
        ("Contact", "", reads::<Contact>),
        ("ContactCustomField", "", reads::<ContactCustomField>),
        ("Conversation", "", reads::<Conversation>),
        ("Datasource", "", reads::<Datasource>),
        ("DatasourceFile", "", reads::<DatasourceFile>),
        ("DatasourceLink", "", reads::<DatasourceLink>),
        ("Delivery", "", reads::<Delivery>),
        ("EndpointHealth", "#ENDPOINT_HEALTH#", reads::<EndpointHealth>),
        ("Event", "#EVENT#", reads::<Event>),
        ("Export", "", reads::<Export>),
        ("Form", "", reads::<Form>),
        ("Intent", "", reads::<Intent>),
        ("IntentLink", "", reads::<IntentLink>),
        ("Link", "", reads::<Link>),
        ("LogPage", "#EVENT_LOG", reads::<LogPage>),
        ("Message", "#MESSAGE#", reads::<Message>),
        ("PaymentCustomer", "#PAYMENT_CUSTOMER#", reads::<PaymentCustomer>),
        ("RateLimitSlot", "#RATE_LIMIT#", reads::<RateLimitSlot>),
        ("RetiredWebhook", "#RETIRED_WEBHOOK#", reads::<RetiredWebhook>),
        ("ReceivedMessage", "#RECEIVED#", reads::<ReceivedMessage>),
        ("RunMarker", "#RUN#", reads::<RunMarker>),
        ("Suppression", "", reads::<Suppression>),
        ("Tag", "", reads::<Tag>),
        ("UsageReport", "#USAGE_REPORT#", reads::<UsageReport>),
        ("User", "", reads::<User>),
        ("Webhook", "", reads::<Webhook>),
        ("Widget", "", reads::<Widget>),
    ]
}

/// An item as DynamoDB writes it.
fn wire(item: &Item) -> Value {
    json!(serde_dynamo::Item::from(item.clone()))
}

/// A table in which each record is stored at least once.
async fn full_table() -> Vec<BTreeMap<String, AttributeValue>> {
    let stack = stack().await;
    let headers = [("idempotency-key".to_owned(), routes::RUN_CAMPAIGN.name.to_owned())].into();
    data(&stack.answer(&Call { headers, ..valid_call(&routes::RUN_CAMPAIGN, 'a', ACME) }).await);
    for event in ["customer.subscription.updated", "invoice.paid", "checkout.session.completed"] {
        let user_id = Some(id('a', kind::USER, 1));
        let event = NewPaymentEvent { user_id, ..NewPaymentEvent::of(event) }.body(1, NOW / 1000).to_string();
        let path = valid_call(&routes::RECEIVE_PAYMENT_EVENT, 'a', ACME).path;
        data(&stack.answer(&signed(&path, demo_payment_secret('a'), event.into_bytes())).await);
    }
    let webhook: WebhookId = id('a', kind::WEBHOOK, 1).parse::<Uuid>().unwrap().into();
    let (table, now) = (acme(&stack), stack.gateway.service.clock.now());
    let failed = Observed { failures: 3, failing_since: Some(now), ..Observed::default() };
    delivery::health::keep(&table, &EndpointHealth::healthy(webhook.into()), &failed, now, now).await.unwrap();
    let entry = Audit {
        id: AuditId(Uuid::from_u128(1)),
        at: now,
        key_id: ApiKeyId(Uuid::from_u128(2)),
        operation: routes::CREATE_TAG.name.to_owned(),
        action: AuditAction::Created,
        record_type: "Tag".to_owned(),
        record_id: RecordId(Uuid::from_u128(3)),
        request_id: "a request".to_owned(),
    };
    audit::store(&table, [entry].into_iter(), 400).await.unwrap();
    data(&stack.answer(&valid_call(&routes::REPORT_USAGE, 'a', ACME)).await);
    data(&stack.answer(&valid_call(&routes::RECEIVE_MESSAGE, 'a', ACME)).await);
    let limited = (id('a', kind::WIDGET, 0).parse::<Uuid>().unwrap().into(), Limited::Send);
    rate_limit::reserve(&table, limited, 1, 10, now, now).await.unwrap();
    let agency: Agency = table.get(id('a', kind::AGENCY, 1).parse::<Uuid>().unwrap().into()).await.unwrap();
    let webhook = StoredPaymentWebhook {
        payment_webhook_id: "we_local_0001".into(),
        secret: Secret::from("whsec_local".to_owned()).into(),
        has_pointer: true,
    };
    let agency = Agency { payment_webhook: Some(webhook), ..agency };
    retired_webhook::retire(&table, &agency.retired_webhook(now).unwrap()).await.unwrap();
    everything(&stack).await
}

/// The stored form of the record `name`, its JSON, and the attributes that it requires.
fn sample(name: &str, mark: &str, reads: Reads, table: &[BTreeMap<String, AttributeValue>]) -> Value {
    let is_it = |item: &&BTreeMap<String, AttributeValue>| match item.get("record") {
        Some(record) => record.as_s().unwrap() == name,
        None => !mark.is_empty() && item["pk"].as_s().unwrap().contains(mark) && item["sk"].as_s().unwrap() != "HEAD",
    };
    let item: Item =
        table.iter().find(is_it).unwrap_or_else(|| panic!("no {name} is stored")).clone().into_iter().collect();
    let required: BTreeSet<&String> =
        item.keys().filter(|attribute| reads(&without(&item, attribute)).is_err()).collect();
    json!({"item": wire(&item), "reads_as": reads(&item).unwrap(), "required": required})
}

/// `read` without the fields that `wanted` lacks, at any depth.
fn known(read: &Value, wanted: &Value) -> Value {
    match wanted {
        Value::Object(fields) => fields.iter().map(|(name, of)| (name.clone(), known(&read[name], of))).collect(),
        _ => read.clone(),
    }
}

fn without(item: &Item, attribute: &str) -> Item {
    item.iter().filter(|(name, _)| *name != attribute).map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[tokio::test]
async fn every_stored_sample_can_still_be_read() {
    let folder = root().join("local/tests/stored");
    for (name, mark, reads) in records() {
        let file = folder.join(format!("{name}.v1.json"));
        if !file.exists() && generating() {
            let sample = sample(name, mark, reads, &full_table().await);
            write(
                &format!("local/tests/stored/{name}.v1.json"),
                &(serde_json::to_string_pretty(&sample).unwrap() + "\n"),
            );
        }
    }
    for file in names_in("local/tests/stored") {
        let name = file.split('.').next().unwrap();
        let (.., reads) =
            records().into_iter().find(|(record, ..)| *record == name).unwrap_or_else(|| panic!("{file}"));
        let sample: Value = serde_json::from_str(&std::fs::read_to_string(folder.join(&file)).unwrap()).unwrap();
        let (item, wanted) = (item_of(&sample["item"]), &sample["reads_as"]);
        // A newer field has its default, and an older one its old value.
        let read = reads(&item).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(&known(&read, wanted), wanted, "{file}");
        for attribute in item.keys() {
            let required = sample["required"].as_array().unwrap().contains(&json!(attribute));
            let read = reads(&without(&item, attribute));
            assert!(required || read.is_ok(), "{file}: without {attribute} it cannot be read: {read:?}");
        }
    }
    let samples: BTreeSet<_> =
        names_in("local/tests/stored").iter().map(|file| file.split('.').next().unwrap().to_owned()).collect();
    assert_eq!(samples, declared(), "each stored record has a sample: cargo generate writes it");
}

/// The names of all stored records, as their declarations have them.
fn declared() -> BTreeSet<String> {
    fn read(folder: &std::path::Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, names);
                continue;
            }
            for line in std::fs::read_to_string(&path).unwrap().lines().map(str::trim) {
                let word = |rest: &str| rest.chars().take_while(char::is_ascii_alphanumeric).collect::<String>();
                if let Some(rest) = line.strip_prefix("pub struct ").filter(|rest| rest.contains("): listed(")) {
                    names.insert(word(rest));
                }
                if let Some(rest) = line.strip_prefix("impl Single for ").or(line.strip_prefix("crate::single!(")) {
                    names.insert(word(rest));
                }
            }
        }
    }
    let mut names = BTreeSet::from(["ApiKeyRecord".to_owned()]);
    for room in ["payments", "records", "request"] {
        read(&root().join("shared/src").join(room), &mut names);
    }
    names
}

#[tokio::test]
async fn an_unreadable_item_is_left_out_of_its_page() {
    let stack = stack().await;
    spoil(&stack, "USER", 3, "email").await;
    spoil(&stack, "CONVERSATION", 0, "assistant_id").await;
    let list = async |path: &str, query: &str| get(&stack, &format!("{path}?{query}")).await;
    let users = list("/api/v1/user/get_agent_list/", "&size=10").await;
    let ids: Vec<&str> = users["items"].as_array().unwrap().iter().map(|user| user["id"].as_str().unwrap()).collect();
    let wanted: Vec<String> = (0..10).filter(|number| *number != 3).map(|number| id('a', kind::USER, number)).collect();
    assert_eq!((ids, &users["total"]), (wanted.iter().map(String::as_str).collect(), &json!(120)));
    let conversations = list("/api/v1/conversation", &format!("&assistant_id={}", id('a', kind::ASSISTANT, 1))).await;
    assert_eq!(conversations["items"].as_array().unwrap().len(), 1);
}
