//! Tests that organisations take turns in what is due: one that has much of it does not make others wait.

use local::database::TABLE_NAME;
use serde_json::{Value, json};
use shared::records::delivery::{self, EndpointHealth, Observed};
use shared::records::due::Due;
use shared::table::keys::Key;
use shared::table::meter::Meter;
use shared::values::id::{EndpointId, OrgId, with_ordinal};
use uuid::Uuid;

use crate::support::sender::Sender;
use crate::support::sending::{Org, Setup, id_of};

/// More than a tick takes from a partition of the index, and when all of these are due: before everything else.
const CROWD: usize = 250;
const EARLY: &str = "2026-02-01T11:00:00.000Z";

/// The only item in the index whose partition begins with `kind`.
fn due_item(setup: &Setup, kind: &str) -> Value {
    let mut found = setup.find(Some("Due"), "begins_with(due_pk, :kind)", &json!({":kind": {"S": kind}}));
    assert_eq!(found.len(), 1);
    let key = json!({":pk": found[0]["pk"], ":sk": found[0]["sk"]});
    found = setup.find(None, "pk = :pk AND sk = :sk", &key);
    found.remove(0)
}

/// Stores a copy of `item` with other values.
fn put(setup: &Setup, item: &Value, values: &Value) {
    let mut item = item.clone();
    item.as_object_mut().unwrap().extend(values.as_object().unwrap().clone());
    let request = json!({"TableName": TABLE_NAME, "Item": item});
    setup.stack.database.put_item(serde_json::from_value(request).unwrap()).unwrap();
}

/// Fills the partition of the index in which `item` is with endpoints of `org`.
fn crowd_of_endpoints(setup: &Setup, item: &Value, org: OrgId, count: usize, due_at: &str) {
    for _ in 0..count {
        let id = Uuid::now_v7();
        let pk = format!("ORG#{org}#ENDPOINT_HEALTH#{id}");
        put(setup, item, &json!({"pk": {"S": pk}, "id": {"S": id}, "due_at": {"S": due_at}}));
    }
}

/// A webhook whose circuit is open, with a deferred delivery.
async fn deferring(setup: &Setup, org: &Org) -> Value {
    let (webhook, now) = (setup.webhook(org, "/hook").await, setup.clock.now());
    let healthy = EndpointHealth::healthy(EndpointId(id_of(&webhook).parse().unwrap()));
    let failed = Observed { failures: 3, failing_since: Some(now), ..Observed::default() };
    delivery::health::keep(&org.table, &healthy, &failed, now, now).await.unwrap();
    setup.post(org, &format!("/api/v1/outbound_webhook/{}/test", id_of(&webhook)), Value::Null).await;
    setup.settle().await;
    assert_eq!(setup.receiver.count("/hook"), 0, "it is deferred");
    webhook
}

#[tokio::test]
async fn a_campaign_behind_those_of_another_organisation_begins_at_once() {
    let sender = Sender::new(false, 1).await;
    let setup = &sender.setup;
    let (other, id) = (setup.org().await, sender.run(json!({"message": "Hello"})).await);
    let item = due_item(setup, "CAMPAIGN#");
    for place in 0..CROWD {
        let (pk, sk) = (format!("ORG#{}#LIST#CAMPAIGN#ROWS", other.id), format!("{place:010}"));
        let id = with_ordinal(Uuid::now_v7(), place as u64);
        let due = json!({"pk": {"S": pk}, "sk": {"S": sk}, "id": {"S": id}, "due_at": {"S": EARLY}});
        put(setup, &item, &due);
    }
    setup.stack.tick("send-campaigns").await.unwrap();
    assert_eq!(sender.outcome(&id).await, sender.done(1));
    let waiting = setup.find(Some("Due"), "due_at = :early", &json!({":early": {"S": EARLY}}));
    assert_eq!(waiting.len(), CROWD - 99, "the tick has taken as many as before");
}

#[tokio::test]
async fn a_deferred_delivery_behind_those_of_another_organisation_is_sent() {
    let setup = Setup::start().await;
    let (org, other) = (setup.org().await, setup.org().await);
    deferring(&setup, &org).await;
    crowd_of_endpoints(&setup, &due_item(&setup, "ENDPOINT#"), other.id, CROWD, EARLY);
    setup.stack.tick("send-delivery").await.unwrap();
    assert_eq!(setup.receiver.count("/hook"), 1);
}

#[tokio::test]
async fn due_items_alternate_between_organisations() {
    const LIMIT: i32 = 100;
    let setup = Setup::start().await;
    let orgs = [setup.org().await, setup.org().await, setup.org().await];
    deferring(&setup, &orgs[0]).await;
    let (item, now) = (due_item(&setup, "ENDPOINT#"), setup.clock.now());
    let read = async || {
        let meter = Meter::default();
        let due =
            setup.stack.gateway.service.store.metered(meter.clone()).due(Due::Endpoint, now, LIMIT).await.unwrap();
        (due, meter.cost().calls, meter.cost().read_units)
    };
    let (_, calls, units) = read().await;
    assert_eq!((calls, units), (16, 8.0), "a query of each partition");
    crowd_of_endpoints(&setup, &item, orgs[1].id, CROWD, EARLY);
    crowd_of_endpoints(&setup, &item, orgs[2].id, 2, "2026-02-01T11:30:00.000Z");
    let (due, calls, units) = read().await;
    let place = |key: &Key| orgs.iter().position(|org| key.pk.contains(&org.id.to_string()));
    let places: Vec<_> = due.iter().filter_map(place).collect();
    assert_eq!(places[..5], [1, 2, 0, 1, 2], "one of each, then the next ones");
    assert!(places[5..].iter().all(|place| *place == 1));
    assert_eq!((due.len(), calls, units), (100, 17, 12.5), "one page more of the full partition");
}
