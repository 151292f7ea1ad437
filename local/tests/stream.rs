//! What follows from a change: the functions on the table's stream, by Lambda's rules.

use local::faults::{Fault, Faults};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::model::id::{LinkId, OrgId, TagId, with_ordinal};
use shared::model::tag::{EntityType, Link};
use shared::model::time::Timestamp;
use shared::routes;
use shared::stream::StreamEvent;
use shared::table::Table;
use shared::tenant::Tenant;
use uuid::Uuid;

use crate::fixture::{ACME, GLOBEX, NOW, call, data, everything, id, kind, streaming, valid_call};

async fn links(stack: &Stack, key: &str) -> Value {
    data(&stack.answer(&call("GET", "/api/v1/link_tag_entity/list", key)).await)
}

/// Gives the newsletter tag a link of its own, behind the 250 of the VIP tag.
async fn one_more_link(stack: &Stack) -> Vec<Link> {
    let uuid = |text: &str| text.parse::<Uuid>().unwrap();
    let org = OrgId(uuid("01900000-0000-7000-8000-a00000000001"));
    #[expect(clippy::disallowed_methods, reason = "no operation makes links")]
    let acme = Table::new(stack.gateway.service.store.clone(), Tenant::operator(org));
    let link = |place| Link {
        id: LinkId(with_ordinal(uuid(&id('a', kind::TAG, 99)), place)),
        entity_id: "a form".into(),
        entity_type: EntityType::Form,
        tag_id: TagId(uuid(&id('a', kind::TAG, 2))),
        created_at: Timestamp::from_unix_millis(NOW),
        updated_at: Timestamp::from_unix_millis(NOW),
        created_by_id: None,
    };
    acme.append(1, link).await.unwrap()
}

#[tokio::test]
async fn a_deleted_tag_s_links_leave_the_list_and_no_others() {
    let stack = Stack::start(streaming()).await.unwrap();
    let kept = one_more_link(&stack).await;
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
    stack.settle().await.unwrap();
    let left = links(&stack, ACME).await;
    assert_eq!((&left["total"], &left["items"]), (&json!(1), &json!(kept)));
    assert_eq!(links(&stack, GLOBEX).await["total"], 2);
    assert!(!format!("{:?}", everything(&stack).await).contains("TAG#01900000-0000-7000-8000-a00100000001"));
    assert_eq!(stack.stream.given_up().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_record_that_comes_twice_changes_nothing_more() {
    let stack = Stack::start(streaming()).await.unwrap();
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
    stack.settle().await.unwrap();
    let (once, kept) = (everything(&stack).await, one_more_link(&stack).await);
    let key = json!({"pk": {"S": "ORG#01900000-0000-7000-8000-a00000000001#TAG#01900000-0000-7000-8000-a00100000001"}, "sk": {"S": "TAG"}});
    let record = json!({"eventName": "REMOVE", "dynamodb": {"Keys": key, "SequenceNumber": "1"}});
    let event: StreamEvent = serde_json::from_value(json!({"Records": [record, record]})).unwrap();
    let outcome = local::endpoints::CONSUMERS[0].handle(&stack.gateway.service, &event).await;
    assert!(outcome.batch_item_failures.is_empty());
    assert_eq!(links(&stack, ACME).await["items"], json!(kept));
    assert_eq!(everything(&stack).await.len(), once.len() + 2, "the link and what points to it");
}

#[tokio::test]
async fn what_fails_half_way_goes_on_where_it_stopped() {
    let faults = Faults::default();
    let stack = Stack::start(Settings { faults: faults.clone(), ..streaming() }).await.unwrap();
    let kept = one_more_link(&stack).await;
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
    // Of every ten requests three fail for good: each attempt of the batch gets some links further.
    faults.plan(|_, number| if number % 10 < 3 { Fault::Throttle } else { Fault::None });
    stack.settle().await.unwrap();
    faults.end();
    assert_eq!(links(&stack, ACME).await["items"], json!(kept));
    assert_eq!(stack.stream.given_up().await, Vec::<Value>::new());
}

#[tokio::test]
async fn what_keeps_failing_is_given_up_and_told_and_the_rest_goes_on() {
    let faults = Faults::default();
    let stack = Stack::start(Settings { faults: faults.clone(), ..streaming() }).await.unwrap();
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
    faults.plan(|_, _| Fault::Throttle);
    stack.settle().await.unwrap();
    faults.end();
    let given_up = stack.stream.given_up().await;
    assert_eq!(given_up.len(), 1);
    assert_eq!(given_up[0]["eventName"], "REMOVE");
    assert_eq!(links(&stack, ACME).await["total"], 250);
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'b', GLOBEX)).await);
    stack.settle().await.unwrap();
    assert_eq!(links(&stack, GLOBEX).await["total"], 0);
}
