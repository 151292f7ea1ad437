//! The delete of a record deletes the records that it owns, despite faults of the stream and the table.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use local::Stack;
use local::database::request;
use local::faults::Fault;
use local::http::Call;
use serde_json::{Value, json};
use shared::records::datasource::DatasourceFile;
use shared::records::delivery;
use shared::records::delivery::{Delivery, NewDelivery};
use shared::records::event::{EventId, EventKind};
use shared::records::tag::{EntityType, Tag};
use shared::records::webhook::Webhook;
use shared::table::cascade::{self, Owner as _};
use shared::table::stored::Listed;
use shared::values::id::{AgencyId, AssistantId, DatasourceFileId, DatasourceId, EndpointId, TagId, WebhookId};
use uuid::Uuid;

use crate::support::crashes::unreliable_stream;
use crate::support::fixture::{
    ACME, acme, call, data, everything, failure, faulty_acme, few, get, handle, id, kind, make, post, put_items, spoil,
    streaming, with_faults,
};
use crate::support::owners::{
    OWNERS, Owned, captured_form, captured_intent, contacts, datasource_link, file, fill, intent_link, link, owner,
    plan, time,
};
use crate::support::records::{conflict, detail};
use crate::support::sender::counts;
use crate::support::sending::{Setup, id_of};
use crate::support::sweep::cases;

/// The number of owned records: more than one step deletes, or fewer.
const MANY: u32 = 260;
const FEW: u32 = 20;

type Row = BTreeMap<String, AttributeValue>;

/// The items that name one of these ids in a key or a value, without markers, which expire.
async fn naming(stack: &Stack, ids: &BTreeSet<Uuid>) -> Vec<Row> {
    let names = |item: &Row| {
        let text = format!("{item:?}");
        ids.iter().any(|id| text.contains(&id.to_string()))
    };
    let all = everything(stack).await.into_iter();
    all.filter(|item| item.contains_key("record") || !item.contains_key("ttl")).filter(names).collect()
}

/// The totals of the lists of links and of captured intents.
async fn totals(stack: &Stack) -> Vec<Value> {
    let mut totals = Vec::new();
    for list in ["link_tag_entity/list", "capturedintent"] {
        totals.push(get(stack, &format!("/api/v1/{list}")).await["total"].clone());
    }
    for number in 0..2 {
        let assistant = id('a', kind::ASSISTANT, number);
        for of_it in ["data_source", "intent"] {
            totals.push(get(stack, &format!("/api/v1/assistant/{assistant}/{of_it}")).await["total"].clone());
        }
    }
    totals
}

/// Has the webhook of the demo set hear of nothing: the delivery of an event names its record, and stays with the webhook.
async fn silence(stack: &Stack) {
    let body = json!({"events": ["user.updated"]}).to_string();
    let path = format!("/api/v1/outbound_webhook/{}", id('a', kind::WEBHOOK, 1));
    data(&stack.answer(&Call { body: body.into(), ..call("PUT", &path, ACME) }).await);
    stack.settle().await.unwrap();
}

/// Deletes a record of each kind with its number of owned records, while the stream and the table have faults.
async fn delete_all(kinds: &[(&str, u32)], seed: usize) {
    let (stack, faults) = with_faults(streaming()).await;
    silence(&stack).await;
    let before = totals(&stack).await;
    let mut owners = Vec::new();
    for (kind_of, many) in kinds {
        owners.push(owner(&stack, kind_of, *many).await);
    }
    stack.settle().await.unwrap();
    let ids: BTreeSet<Uuid> = owners.iter().map(|owner| owner.id).collect();
    let owned: Vec<String> = naming(&stack, &ids).await.iter().map(|item| format!("{item:?}")).collect();
    for (Owned { id, .. }, (kind_of, many)) in owners.iter().zip(kinds) {
        let found = owned.iter().filter(|item| item.contains(&id.to_string())).count();
        assert!(found > *many as usize, "{kind_of} has only {found} items");
    }

    for Owned { path, .. } in &owners {
        data(&stack.answer(&call("DELETE", path, ACME)).await);
    }
    stack.stream.set_faults(&unreliable_stream(seed as u64, 0.3, 0.1));
    faults.plan(move |_, number| match (number + seed) % 40 {
        0 => Fault::Throttle,
        1 => Fault::Conflict,
        2 => Fault::ThrottledTransaction,
        3 => Fault::Unprocessed,
        4 => Fault::ServerError,
        _ => Fault::None,
    });
    stack.settle().await.unwrap();
    faults.end();
    // A tick deletes the health of a deleted endpoint.
    for _ in 0..2 {
        let clock = &stack.gateway.service.clock;
        clock.set(clock.now().plus_seconds(3600));
        stack.minute().await.unwrap();
    }
    assert_eq!(stack.stream.given_up(), Vec::<Value>::new(), "seed {seed}");
    assert_eq!(naming(&stack, &ids).await, Vec::<Row>::new(), "seed {seed}");
    assert_eq!(totals(&stack).await, before, "seed {seed}");
    // A finished cascade leaves no record of its progress.
    let removals = everything(&stack).await.into_iter().filter(|item| item["pk"].as_s().unwrap().contains("#REMOVAL#"));
    assert_eq!(removals.count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owned_records_are_deleted_despite_faults() {
    for seed in cases(0..2) {
        // Each kind is large in one of the cases, because large deletes are slow.
        let large = cases(OWNERS.into_iter().skip(seed).step_by(2));
        let kinds = OWNERS.map(|kind_of| (kind_of, if large.contains(&kind_of) { MANY } else { FEW }));
        Box::pin(delete_all(&kinds, seed)).await;
    }
}

#[tokio::test]
async fn belongings_of_records_that_are_deleted_together_are_deleted() {
    let stack = Stack::start(streaming()).await.unwrap();
    silence(&stack).await;
    for kind_of in ["tag", "conversation", "form"] {
        let owners = [owner(&stack, kind_of, FEW).await, owner(&stack, kind_of, FEW).await];
        stack.settle().await.unwrap();
        let ids = json!({format!("{kind_of}_ids"): owners.each_ref().map(|owner| owner.id)}).to_string();
        let many = call("DELETE", &format!("/api/v1/{kind_of}/multiple"), ACME);
        let answer = data(&stack.answer(&Call { body: ids.into(), ..many }).await);
        assert_eq!([0, 1].map(|index| answer["items"][index]["outcome"].clone()), ["deleted", "deleted"]);
        stack.settle().await.unwrap();
        let left = naming(&stack, &owners.iter().map(|owner| owner.id).collect()).await;
        assert_eq!(left, Vec::<Row>::new(), "{kind_of}");
    }
}

#[tokio::test]
async fn a_record_made_during_the_delete_of_its_owner_is_deleted() {
    let stack = Stack::start(streaming()).await.unwrap();
    silence(&stack).await;
    let before = totals(&stack).await;
    let mut gone = BTreeMap::new();
    for kind_of in OWNERS {
        let Owned { path, id } = owner(&stack, kind_of, 1).await;
        data(&stack.answer(&call("DELETE", &path, ACME)).await);
        gone.insert(kind_of, id);
    }
    stack.settle().await.unwrap();
    // A request that has read the owner before its delete writes a moment later.
    fill(&stack, AgencyId(gone["agency"]), 2, plan(AgencyId(gone["agency"]))).await;
    fill(&stack, DatasourceId(gone["datasource"]), 2, file(DatasourceId(gone["datasource"]))).await;
    let uuid = |kind, number| id('a', kind, number).parse::<Uuid>().unwrap();
    for (datasource, assistant) in
        [(gone["datasource"], uuid(kind::ASSISTANT, 0)), (uuid(kind::DATASOURCE, 0), gone["assistant"])]
    {
        fill(&stack, AssistantId(assistant), 1, datasource_link(|_| datasource)).await;
    }
    for (intent, assistant) in [(gone["intent"], uuid(kind::ASSISTANT, 0)), (uuid(kind::INTENT, 0), gone["assistant"])]
    {
        fill(&stack, AssistantId(assistant), 1, intent_link(|_| intent)).await;
    }
    for (form, conversation) in
        [(gone["form"], uuid(kind::CONVERSATION, 0)), (uuid(kind::FORM, 0), gone["conversation"])]
    {
        fill(&stack, (), 1, captured_form(form, conversation)).await;
    }
    for (intent, conversation) in
        [(gone["intent"], uuid(kind::CONVERSATION, 0)), (uuid(kind::INTENT, 0), gone["conversation"])]
    {
        fill(&stack, (), 1, captured_intent(intent, conversation)).await;
    }
    fill(&stack, (), 1, link(|_| gone["tag"], EntityType::Form, |_| id('a', kind::FORM, 0))).await;
    for entity in OWNERS {
        let Some(entity_type) = EntityType::from_word(entity) else { continue };
        let of = gone[entity];
        fill(&stack, (), 1, link(|_| uuid(kind::TAG, 0), entity_type, move |_| of.to_string())).await;
    }
    let ids: BTreeSet<Uuid> = gone.into_values().collect();
    assert!(naming(&stack, &ids).await.len() > 2 * OWNERS.len());
    stack.settle().await.unwrap();
    assert_eq!(naming(&stack, &ids).await, Vec::<Row>::new());
    assert_eq!(totals(&stack).await, before);
}

#[tokio::test]
async fn a_batch_makes_one_step_of_a_long_cascade() {
    let stack = Stack::start(streaming()).await.unwrap();
    let Owned { path, id: tag } = owner(&stack, "tag", MANY).await;
    stack.settle().await.unwrap();
    let row = acme(&stack).key::<Tag>(TagId(tag));
    let deleted = data(&stack.answer(&call("DELETE", &path, ACME)).await);
    let text = |text: &Value| json!({"S": text});
    let images = json!({
        "Keys": {"pk": {"S": row.pk}, "sk": {"S": row.sk}},
        "OldImage": {
            "record": {"S": "Tag"}, "id": text(&deleted["id"]), "name": text(&deleted["name"]),
            "created_at": text(&deleted["created_at"]), "updated_at": text(&deleted["updated_at"]),
        },
        "SequenceNumber": "1",
    });
    let removal = json!({"eventName": "REMOVE", "dynamodb": images});
    let left = async || get(&stack, "/api/v1/link_tag_entity/list").await["total"].as_u64().unwrap();
    let before = left().await;
    const { assert!(MANY > 250, "one step would be enough") };
    handle(&stack, &[removal]).await;
    assert_eq!(before - left().await, 250, "a batch makes one step, so that later changes wait for one step only");
    stack.settle().await.unwrap();
    assert_eq!(before - left().await, u64::from(MANY));
}

#[tokio::test]
async fn undelivered_contacts_of_a_deleted_widget_fail_with_a_reason() {
    let stack = Stack::start(streaming()).await.unwrap();
    let widget = json!({
        "widget_type": "chat", "assistant_id": id('a', kind::ASSISTANT, 1), "opening_message": "Hello",
        "connector_url": "http://127.0.0.1:1/",
    });
    let widget = make(&stack, "/api/v1/widget", widget).await;
    // More contacts than one step handles.
    let contacts = contacts(&stack, MANY).await;
    let run = format!("/api/v1/campaign/run/{widget}");
    let run = data(&stack.answer(&post(&run, ACME, json!({"contact_ids": contacts}).to_string())).await);
    stack.tick("send-campaigns").await.unwrap();
    data(&stack.answer(&call("DELETE", &format!("/api/v1/widget/{widget}"), ACME)).await);
    stack.stream.drain_for("record-changed").await.unwrap();
    let path = format!("/api/v1/campaign/contact/list/{}", run["campaign_id"].as_str().unwrap());
    let listed = get(&stack, &path).await;
    assert_eq!(listed["total"], MANY);
    for contact in listed["items"].as_array().unwrap() {
        assert_eq!((&contact["status"], &contact["error"]), (&json!("failed"), &json!("the widget is gone")));
    }
    let path = format!("/api/v1/campaign/get/{}", run["campaign_id"].as_str().unwrap());
    assert_eq!(get(&stack, &path).await["status"], "completed");
    stack.settle().await.unwrap();
    let rows = Delivery::list(EndpointId(widget));
    assert!(!format!("{:?}", everything(&stack).await).contains(&rows), "deliveries are left");
}

#[tokio::test]
async fn a_delivery_made_during_the_delete_of_its_endpoint_is_deleted() {
    let stack = Stack::start(streaming()).await.unwrap();
    for (kind, event) in [("outbound_webhook", EventKind::WEBHOOK_TEST), ("widget", EventKind::CALL_REQUESTED)] {
        let Owned { path, id } = owner(&stack, kind, 1).await;
        data(&stack.answer(&call("DELETE", &path, ACME)).await);
        stack.settle().await.unwrap();
        let late = NewDelivery { event, ..NewDelivery::test(EventId(Uuid::now_v7()), time()) };
        delivery::enqueue(&acme(&stack), EndpointId(id), &[late], time()).await.unwrap();
        let list = Delivery::list(EndpointId(id));
        let left = async || {
            let items = everything(&stack).await.into_iter();
            items.filter(|item| item["pk"].as_s().unwrap().contains(&list)).collect::<Vec<Row>>()
        };
        assert_ne!(left().await, Vec::<Row>::new());
        stack.settle().await.unwrap();
        assert_eq!(left().await, Vec::<Row>::new(), "{kind}");
    }
}

#[tokio::test]
async fn an_unreadable_link_is_deleted_with_its_tag() {
    let stack = Stack::start(streaming()).await.unwrap();
    let Owned { id, .. } = owner(&stack, "tag", FEW).await;
    let left = async || {
        let rows = naming(&stack, &BTreeSet::from([id])).await.into_iter();
        let text = |item: &Row, name: &str| item[name].as_s().unwrap().clone();
        let keys = rows.map(|item| (text(&item, "pk"), text(&item, "sk")));
        keys.filter(|(pk, _)| pk.ends_with("#LIST#LINK#ROWS") || pk.contains("#TAG_LINKS#")).collect::<Vec<_>>()
    };
    let before = left().await;
    assert_eq!(before.len(), 2 * FEW as usize);
    let (_, ordinal) = before.iter().find(|(pk, _)| pk.ends_with("#ROWS")).unwrap();
    spoil(&stack, "LINK", ordinal.parse().unwrap(), "entity_type").await;
    acme(&stack).remove::<Tag>(TagId(id)).await.unwrap();
    cascade::begin(&acme(&stack), "Tag", Tag::STEPS, id, time()).await.unwrap();
    assert_eq!(left().await, []);
}

#[tokio::test]
async fn the_rows_of_a_long_list_are_deleted_in_every_partition() {
    const ROWS: usize = 2200;
    let setup = Setup::start().await;
    let org = setup.org().await;
    let webhook = setup.webhook(&org, "/webhook").await;
    let (id, now): (Uuid, _) = (id_of(&webhook).parse().unwrap(), setup.clock.now());
    let new: Vec<_> = (0..ROWS).map(|_| NewDelivery::test(EventId(Uuid::now_v7()), now)).collect();
    delivery::enqueue(&org.table, id.into(), &new, now).await.unwrap();
    assert_eq!(setup.outbox(&org, &webhook).await.len(), ROWS);
    let list = Delivery::list(id.into());
    let left = async || {
        let items = everything(&setup.stack).await;
        let partitions = items.into_iter().map(|item| item["pk"].as_s().unwrap().clone());
        partitions.filter(|partition| partition.contains(&list)).collect::<Vec<_>>()
    };
    let is_row = |item: &Row| item["pk"].as_s().unwrap().contains(&format!("{list}#ROWS"));
    let rows: Vec<Row> = everything(&setup.stack).await.into_iter().filter(is_row).collect();
    assert_eq!(rows.len(), ROWS);
    let partitions: BTreeSet<_> = rows.iter().map(|item| &item["pk"].as_s().unwrap()[..]).collect();
    assert_eq!(partitions.len(), 9, "the first partition and eight others");
    org.table.remove::<Webhook>(WebhookId(id)).await.unwrap();
    let remove_some = async || {
        let mut none_left = true;
        for step in Webhook::STEPS {
            none_left = none_left && step(&org.table, id, now).await.unwrap();
        }
        none_left
    };
    let mut steps = 1;
    while !remove_some().await {
        steps += 1;
    }
    assert_eq!((steps, left().await), (ROWS.div_ceil(250), vec![]));
    // Rows that are written after the delete of the head are found as well. One more than a step deletes is left.
    let (first, late) = (rows.iter().take(250), rows.iter().next_back());
    put_items(&setup.stack, first.chain(late).map(|item| item.clone().into_iter().collect())).await;
    assert_eq!((remove_some().await, left().await.len()), (false, 1));
    assert_eq!((remove_some().await, left().await), (true, vec![]));
}

/// Another process deletes a file after the step has read it.
#[tokio::test]
async fn a_step_that_lost_a_row_to_another_process_is_repeated() {
    let (stack, faults) = with_faults(few()).await;
    let id = make(&stack, "/api/v1/datasource", json!({"ds_type": "pdf"})).await;
    let mut files = Vec::new();
    for _ in 0..3 {
        let path = format!("/api/v1/datasource/{id}/file");
        files.push(make(&stack, &path, json!({"name": "x", "size_bytes": 1})).await);
    }
    let key = acme(&stack).key::<DatasourceFile>(DatasourceFileId(files[0]));
    let (database, mut done) = (stack.database.clone(), false);
    faults.plan(move |action, _| {
        if action == "TransactWriteItems" && !std::mem::replace(&mut done, true) {
            let key = json!({"Key": {"pk": {"S": key.pk}, "sk": {"S": key.sk}}});
            database.delete_item(request(key).unwrap()).unwrap();
        }
        Fault::None
    });
    let table = faulty_acme(&stack);
    let step = async || cascade::rows::<DatasourceFile>(&table, id, time()).await.unwrap();
    assert_eq!((step().await, step().await), (false, true));
    faults.end();
    assert_eq!(get(&stack, &format!("/api/v1/datasource/{id}/data_source_files")).await["total"], 0);
}

#[tokio::test]
async fn a_contact_deleted_before_its_turn_fails_with_a_reason() {
    let stack = Stack::start(streaming()).await.unwrap();
    let contacts = contacts(&stack, 3).await;
    let run = format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 1));
    let run = data(&stack.answer(&post(&run, ACME, json!({"contact_ids": contacts}).to_string())).await);
    data(&stack.answer(&call("DELETE", &format!("/api/v1/contact/{}", contacts[1].as_str().unwrap()), ACME)).await);
    stack.tick("send-campaigns").await.unwrap();
    let path = format!("/api/v1/campaign/contact/list/{}", run["campaign_id"].as_str().unwrap());
    let listed = get(&stack, &path).await;
    let outcomes: Vec<_> =
        listed["items"].as_array().unwrap().iter().map(|one| (one["status"].clone(), one["error"].clone())).collect();
    let stored = (json!("stored"), Value::Null);
    assert_eq!(outcomes, [stored.clone(), (json!("failed"), json!("the contact is gone")), stored]);
    let path = format!("/api/v1/campaign/get/{}", run["campaign_id"].as_str().unwrap());
    let read = get(&stack, &path).await;
    assert_eq!(read["counts"], counts([("stored", 2), ("failed", 1)]));
}

#[tokio::test]
async fn a_delete_of_a_campaign_in_progress_is_refused() {
    let stack = Stack::start(streaming()).await.unwrap();
    let contacts = contacts(&stack, 2).await;
    let body = json!({"contact_ids": contacts}).to_string();
    let run = post(&format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 1)), ACME, body.clone());
    let campaign = data(&stack.answer(&run).await)["campaign_id"].as_str().unwrap().to_owned();
    let delete = call("DELETE", &format!("/api/v1/campaign/{campaign}"), ACME);
    let busy = conflict("campaign_id", "campaign_in_progress", "The campaign is being sent");
    assert_eq!(detail(&stack.answer(&delete).await), busy);
    stack.tick("send-campaigns").await.unwrap();
    let deleted = data(&stack.answer(&delete).await);
    assert_eq!((&deleted["status"], &deleted["counts"]["stored"]), (&json!("completed"), &json!(2)));
    assert_eq!(failure(&stack.answer(&delete).await).0, 404);
    // The same request starts a new campaign, because the first one is deleted.
    let again = data(&stack.answer(&run).await);
    assert_ne!(again["campaign_id"], campaign);
}

#[tokio::test]
async fn a_delete_of_an_open_conversation_is_refused() {
    let stack = Stack::start(streaming()).await.unwrap();
    let conversation = id('a', kind::CONVERSATION, 1);
    let delete = call("DELETE", &format!("/api/v1/conversation/{conversation}"), ACME);
    let open = conflict("conversation_id", "conversation_open", "The conversation is open");
    assert_eq!(detail(&stack.answer(&delete).await), open);
    data(&stack.answer(&post(&format!("/api/v1/conversation/{conversation}/close"), ACME, "")).await);
    assert_eq!(data(&stack.answer(&delete).await)["id"], conversation);
    assert_eq!(failure(&stack.answer(&delete).await).0, 404);
}

/// Sizes as customers have them. `cargo test --test stack -- --ignored cascades` runs these tests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it takes twenty minutes"]
async fn ten_thousand_owned_records_of_each_kind_are_deleted() {
    Box::pin(delete_all(&OWNERS.map(|kind_of| (kind_of, 10_000)), 7)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it takes an hour and a half of a processor"]
async fn a_hundred_thousand_links_are_deleted_with_their_tag() {
    Box::pin(delete_all(&[("tag", 100_000)], 3)).await;
}

/// An agency with a webhook at the payment provider.
async fn agency_with_webhook(stack: &Stack) -> Uuid {
    let agency =
        make(stack, "/api/v1/agency", json!({"billing_plan": {"payment_api_key": "sk_demo_of_this_test"}})).await;
    get(stack, &format!("/api/v1/agency/billing/{agency}/setup_payment_webhook")).await;
    agency
}

#[tokio::test]
async fn the_provider_webhook_of_a_deleted_agency_is_deleted_after_failures() {
    let stack = Stack::start(streaming()).await.unwrap();
    let kept = agency_with_webhook(&stack).await;
    let agency = agency_with_webhook(&stack).await;
    assert_eq!(stack.payment_provider.endpoints().len(), 2);
    data(&stack.answer(&call("DELETE", &format!("/api/v1/agency/{agency}"), ACME)).await);
    stack.settle().await.unwrap();
    let clock = &stack.gateway.service.clock;
    // Each attempt asks the provider twice.
    for minutes in [0, 2, 4] {
        clock.set(clock.now().plus_seconds(minutes * 60));
        stack.payment_provider.fail(&[503, 503]);
        stack.minute().await.unwrap();
        assert_eq!(stack.payment_provider.endpoints().len(), 2);
    }
    clock.set(clock.now().plus_seconds(7 * 60));
    stack.minute().await.unwrap();
    assert_eq!(stack.payment_provider.endpoints().len(), 2, "the backoff did not grow");
    clock.set(clock.now().plus_seconds(60));
    stack.minute().await.unwrap();
    assert_eq!(stack.payment_provider.endpoints().len(), 1);
    assert_eq!(naming(&stack, &BTreeSet::from([agency])).await, Vec::<Row>::new());
    let of_kept = format!("/api/v1/agency/billing/{kept}/check_payment_webhook");
    assert_eq!(get(&stack, &of_kept).await["configured"], true);
}

#[tokio::test]
async fn a_webhook_made_during_the_delete_of_its_agency_is_deleted() {
    let stack = Stack::start(streaming()).await.unwrap();
    let agency =
        make(&stack, "/api/v1/agency", json!({"billing_plan": {"payment_api_key": "sk_demo_of_this_test"}})).await;
    stack.payment_provider.delay(Duration::from_millis(300));
    let path = format!("/api/v1/agency/billing/{agency}/setup_payment_webhook");
    let (answer, ()) = tokio::join!(async { stack.answer(&call("GET", &path, ACME)).await }, async {
        while stack.payment_provider.requests() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        data(&stack.answer(&call("DELETE", &format!("/api/v1/agency/{agency}"), ACME)).await);
    });
    assert_eq!(failure(&answer).0, 404);
    assert_eq!(stack.payment_provider.endpoints().len(), 1);
    stack.settle().await.unwrap();
    stack.minute().await.unwrap();
    assert_eq!(stack.payment_provider.endpoints().len(), 0);
    assert_eq!(naming(&stack, &BTreeSet::from([agency])).await, Vec::<Row>::new());
}
