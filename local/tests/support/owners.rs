//! Makes records of every kind that owns other records, with the owned records.

use local::Stack;
use serde_json::{Value, json};
use shared::records::agency::BillingPlan;
use shared::records::assistant::Assistant;
use shared::records::captured_form::CapturedForm;
use shared::records::captured_intent::CapturedIntent;
use shared::records::datasource::{Datasource, DatasourceFile, DatasourceLink, DatasourceType};
use shared::records::delivery;
use shared::records::delivery::NewDelivery;
use shared::records::event::EventId;
use shared::records::intent::{Intent, IntentLink};
use shared::records::tag::{EntityType, Link, Tag};
use shared::table::rows::INSERT_LIMIT;
use shared::table::stored::{Listed, Stored};
use shared::table::version::Version;
use shared::values::id::{
    AgencyId, AssistantId, BillingPlanId, CapturedFormId, CapturedIntentId, DatasourceFileId, DatasourceId, EndpointId,
    Id, IntentId, LinkId, TagId,
};
use shared::values::json::JsonObject;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::fixture::{ACME, NOW, acme, data, id, kind, make, post, tenant};

/// A record that owns others.
pub struct Owned {
    /// The path that deletes it.
    pub path: String,
    pub id: Uuid,
}

pub fn time() -> Timestamp {
    Timestamp::from_unix_millis(NOW)
}

/// Inserts `count` rows into a list.
pub async fn fill<R: Listed>(stack: &Stack, of: R::Of, count: u32, row: impl Fn(u32, R::Id) -> R + Sync) -> Vec<R> {
    let (table, numbers, mut rows) = (acme(stack), (0..count).collect::<Vec<_>>(), Vec::new());
    for numbers in numbers.chunks(INSERT_LIMIT) {
        let fresh =
            |number: &u32| Uuid::from_u128(0x0190_0000_0000_7000_8000_d000_0000_0000 | u128::from(*number) << 36);
        let ids: Vec<Uuid> = numbers.iter().map(fresh).collect();
        rows.extend(table.insert_all::<R>(of, &ids, |index, id| row(numbers[index], id)).await.unwrap());
    }
    rows
}

/// Inserts `count` rows with these members into a list of the organisation, and returns their ids.
async fn some<R: Listed<Of = (), Id: Id>>(stack: &Stack, count: u32, members: Value) -> Vec<Uuid> {
    let row = |_, id: R::Id| {
        let mut row = json!({"id": id, "org_id": tenant().org(), "created_at": time(), "updated_at": time()});
        row.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        serde_json::from_value(row).unwrap()
    };
    let rows: Vec<R> = fill(stack, (), count, row).await;
    rows.iter().map(|row| json!(row)["id"].as_str().unwrap().parse().unwrap()).collect()
}

pub fn plan(agency_id: AgencyId) -> impl Fn(u32, (AgencyId, BillingPlanId)) -> BillingPlan + Sync {
    let row = json!({
        "name": "Pro", "description": "All of it", "bots_count": 5, "queries_count": 1000, "words_count": 50000,
        "voice_seconds": 3600, "premium_support": true, "agency_id": agency_id,
    });
    move |_, (_, id)| {
        let mut row = row.clone();
        row["id"] = json!(id);
        serde_json::from_value(row).unwrap()
    }
}

pub fn file(datasource_id: DatasourceId) -> impl Fn(u32, DatasourceFileId) -> DatasourceFile + Sync {
    move |number, id| DatasourceFile {
        id,
        datasource_id,
        name: Some(format!("{number}.pdf").into()),
        description: None,
        ds_type: DatasourceType::Pdf,
        size_bytes: 1,
        attributes: JsonObject::default(),
        org_id: tenant().org(),
        // So old that its upload address has expired.
        created_at: time().plus_seconds(-7 * 86_400),
        updated_at: time(),
        version: Version::default(),
    }
}

pub fn link(
    tag: impl Fn(u32) -> Uuid + Sync,
    entity_type: EntityType,
    entity: impl Fn(u32) -> String + Sync,
) -> impl Fn(u32, LinkId) -> Link + Sync {
    move |number, id| Link {
        id,
        entity_id: entity(number).into(),
        entity_type,
        tag_id: TagId(tag(number)),
        created_at: time(),
        updated_at: time(),
        created_by_id: None,
        version: Version::default(),
    }
}

/// Links `many` tags to an entity.
async fn tag_it(stack: &Stack, entity_type: EntityType, entity: Uuid, many: u32) {
    let tags = some::<Tag>(stack, many, json!({"name": "One of many"})).await;
    fill(stack, (), many, link(|number| tags[number as usize], entity_type, |_| entity.to_string())).await;
}

pub fn datasource_link(
    datasource: impl Fn(u32) -> Uuid + Sync,
) -> impl Fn(u32, <DatasourceLink as Stored>::Id) -> DatasourceLink + Sync {
    move |number, (assistant_id, id)| DatasourceLink::new(id, DatasourceId(datasource(number)), assistant_id, time())
}

pub fn intent_link(
    intent: impl Fn(u32) -> Uuid + Sync,
) -> impl Fn(u32, <IntentLink as Stored>::Id) -> IntentLink + Sync {
    move |number, (assistant_id, id)| IntentLink::new(id, IntentId(intent(number)), assistant_id, time())
}

/// What was filled into a form in a conversation.
pub fn captured_form(form: Uuid, conversation: Uuid) -> impl Fn(u32, CapturedFormId) -> CapturedForm + Sync {
    move |_, id| {
        let row = json!({
            "id": id, "form_id": form, "conversation_id": conversation, "assistant_id": Uuid::nil(), "field_values": {},
            "created_at": time(), "updated_at": time(),
        });
        serde_json::from_value(row).unwrap()
    }
}

/// An intent that was recognised in a conversation.
pub fn captured_intent(intent: Uuid, conversation: Uuid) -> impl Fn(u32, CapturedIntentId) -> CapturedIntent + Sync {
    move |_, id| {
        let row = json!({
            "id": id, "intent_id": intent, "conversation_id": conversation, "assistant_id": Uuid::nil(),
            "created_at": time(),
        });
        serde_json::from_value(row).unwrap()
    }
}

/// A record of the demo set.
pub fn of_demo(kind: u8) -> Uuid {
    id('a', kind, 1).parse().unwrap()
}

/// A record of a kind that owns others, with `many` records of each owned kind.
pub async fn owner(stack: &Stack, kind_of: &str, many: u32) -> Owned {
    let id = if kind_of == "campaign" { cancelled_campaign(stack, many).await } else { alone(stack, kind_of).await };
    match kind_of {
        "agency" => drop(fill(stack, AgencyId(id), many, plan(AgencyId(id))).await),
        "assistant" => {
            let datasources = some::<Datasource>(stack, many, json!({"ds_type": "pdf"})).await;
            let intents = some::<Intent>(stack, many, json!({"name": "One of many"})).await;
            fill(stack, AssistantId(id), many, datasource_link(|number| datasources[number as usize])).await;
            fill(stack, AssistantId(id), many, intent_link(|number| intents[number as usize])).await;
        }
        "conversation" => {
            let path = format!("/api/v1/conversation/{id}");
            for number in 0..many {
                let body = json!({"sender_type": "user", "text": format!("{number}")}).to_string();
                data(&stack.answer(&post(&format!("{path}/message"), ACME, body)).await);
            }
            data(&stack.answer(&post(&format!("{path}/close"), ACME, "")).await);
            fill(stack, (), many, captured_form(of_demo(kind::FORM), id)).await;
            fill(stack, (), many, captured_intent(of_demo(kind::INTENT), id)).await;
        }
        "form" => drop(fill(stack, (), many, captured_form(id, of_demo(kind::CONVERSATION))).await),
        "datasource" => {
            fill(stack, DatasourceId(id), many, file(DatasourceId(id))).await;
            for assistant in some::<Assistant>(stack, many, json!({})).await {
                fill(stack, AssistantId(assistant), 1, datasource_link(|_| id)).await;
            }
        }
        "intent" => {
            for assistant in some::<Assistant>(stack, many, json!({})).await {
                fill(stack, AssistantId(assistant), 1, intent_link(|_| id)).await;
            }
            fill(stack, (), many, captured_intent(id, of_demo(kind::CONVERSATION))).await;
        }
        "tag" => {
            let entity = |number: u32| format!("text {number}");
            fill(stack, (), many, link(|_| id, EntityType::Form, entity)).await;
        }
        "outbound_webhook" | "widget" => deliver(stack, EndpointId(id), many).await,
        // The other kinds own only links of tags.
        _ => {}
    }
    if let Some(entity_type) = EntityType::from_word(kind_of) {
        tag_it(stack, entity_type, id, many).await;
    }
    Owned { path: format!("/api/v1/{kind_of}/{id}"), id }
}

/// A record of this kind that owns nothing.
async fn alone(stack: &Stack, kind_of: &str) -> Uuid {
    let body = match kind_of {
        "agency" | "assistant" => json!({}),
        "contact" => json!({"email": "someone@acme.example"}),
        "conversation" => json!({"assistant_id": id('a', kind::ASSISTANT, 0)}),
        "datasource" => json!({"ds_type": "pdf"}),
        "form" => json!({"name": "A form", "form_type": "simple"}),
        "intent" | "tag" => json!({"name": "One that owns"}),
        "outbound_webhook" => json!({"endpoint": "http://127.0.0.1:1/"}),
        "widget" => json!({"widget_type": "chat"}),
        other => panic!("nothing here makes a {other}"),
    };
    let path = if kind_of == "contact" { "contact/upsert" } else { kind_of };
    make(stack, &format!("/api/v1/{path}"), body).await
}

/// A cancelled campaign to `count` contacts, none of which was sent.
async fn cancelled_campaign(stack: &Stack, count: u32) -> Uuid {
    let body = json!({"contact_ids": contacts(stack, count).await}).to_string();
    let run = format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 1));
    let run = data(&stack.answer(&post(&run, ACME, body)).await);
    let id = run["campaign_id"].as_str().unwrap();
    data(&stack.answer(&post(&format!("/api/v1/campaign/{id}/cancel"), ACME, "")).await);
    id.parse().unwrap()
}

/// Gives an endpoint `count` deliveries.
async fn deliver(stack: &Stack, endpoint: EndpointId, count: u32) {
    let event = |number: u32| EventId(Uuid::from_u128(endpoint.0.as_u128() ^ u128::from(number) << 64));
    let new: Vec<NewDelivery> = (0..count).map(|number| NewDelivery::test(event(number), time())).collect();
    delivery::enqueue(&acme(stack), endpoint, &new, time()).await.unwrap();
}

/// The ids of `count` new contacts.
pub async fn contacts(stack: &Stack, count: u32) -> Vec<Value> {
    let mut ids = Vec::new();
    for first in (0..count).step_by(500) {
        let one = |number| json!({"email": format!("{number}@somewhere.example")});
        let some: Vec<Value> = (first..count.min(first + 500)).map(one).collect();
        let body = json!({"contacts": some}).to_string();
        let made = data(&stack.answer(&post("/api/v1/contact/import", ACME, body)).await);
        ids.extend(made["items"].as_array().unwrap().iter().map(|item| item["id"].clone()));
    }
    ids
}

/// The kinds of records that own others.
pub const OWNERS: [&str; 11] = [
    "agency",
    "assistant",
    "campaign",
    "contact",
    "conversation",
    "datasource",
    "form",
    "intent",
    "outbound_webhook",
    "tag",
    "widget",
];
