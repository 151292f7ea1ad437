//! Tests of the keys that customers manage: they are made, listed, changed, rotated and revoked.

use local::http::{Answer, Call};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::request::api_key::{ApiKey, ApiKeyRecord};
use shared::routes;
use shared::values::id::{ApiKeyId, OrgId};
use shared::values::limits::Limits;
use uuid::Uuid;

use crate::support::fixture::{
    ACME, ACME_FULL, ACME_READ_ONLY, acme, as_stored, call, data, everything, failure, get, id, kind, post, settings,
    stack, stack_with_clock,
};
use crate::support::records::{ACME_ORG, make_key};

const KEYS: &str = "/api/v1/api_key";
const TAGS: &str = "/api/v1/tag/list";

async fn send(stack: &Stack, method: &str, path: &str, key: &str, body: Value) -> Answer {
    stack.answer(&Call { body: body.to_string().into(), ..call(method, path, key) }).await
}

async fn status(stack: &Stack, key: &str) -> u16 {
    stack.answer(&call("GET", TAGS, key)).await.status
}

fn of(id: &str) -> String {
    format!("{KEYS}/{id}")
}

/// The listed key `id`.
async fn listed(stack: &Stack, id: &str) -> Value {
    let page = get(stack, &format!("{KEYS}?size=100")).await;
    page["items"].as_array().unwrap().iter().find(|key| key["id"] == id).cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_made_key_opens_its_organisation_and_is_shown_once() {
    let stack = stack().await;
    let (key, id) = make_key(&stack, ACME, &json!({"name": "Shop"})).await;
    assert_eq!(status(&stack, &key).await, 200);
    assert_eq!(data(&stack.answer(&call("GET", TAGS, &key)).await), get(&stack, TAGS).await);
    let shown = listed(&stack, &id).await;
    assert_eq!((&shown["prefix"], &shown["role"], &shown["scopes"]), (&json!(key[..7]), &json!("full"), &Value::Null));
    let page = stack.answer(&call("GET", KEYS, ACME)).await.body;
    assert!(!page.contains(&key) && !page.contains("hash"), "{page}");
    assert!(!format!("{:?}", everything(&stack).await).contains(&key), "the key is in the table");
}

#[tokio::test]
async fn only_a_key_with_the_role_admin_manages_keys() {
    let stack = stack().await;
    let before = everything(&stack).await;
    for key in [ACME_FULL, ACME_READ_ONLY] {
        for route in routes::ALL.iter().filter(|route| route.record == "key") {
            let path = route.path.replace("{api_key_id}", &id('a', kind::API_KEY, 2));
            let answer = send(&stack, route.method, &path, key, json!({"name": "x"})).await;
            assert_eq!(failure(&answer), (403, vec![r#"["query","api_key"] forbidden"#.into()]), "{}", route.name);
        }
    }
    assert_eq!(everything(&stack).await, before);
}

#[tokio::test]
async fn a_revoked_key_stops_within_5_seconds_and_costs_nothing_more() {
    let (stack, after) = stack_with_clock().await;
    let (key, id) = make_key(&stack, ACME, &json!({"name": "Shop"})).await;
    let cost = async || stack.answer(&call("GET", TAGS, &key)).await.cost;
    assert_eq!(status(&stack, &key).await, 200);
    let known = cost().await;
    let revoked = data(&stack.answer(&call("DELETE", &of(&id), ACME)).await);
    assert_eq!(revoked["revoked_at"], "2026-02-01T12:00:00.000Z");
    after(4999);
    assert_eq!((status(&stack, &key).await, cost().await), (200, known));
    after(5000);
    assert_eq!((status(&stack, &key).await, cost().await.calls), (401, 0), "an invalid key is remembered too");
    assert_eq!(listed(&stack, &id).await, Value::Null);
    let again = failure(&stack.answer(&call("DELETE", &of(&id), ACME)).await);
    assert_eq!(again, (404, vec![r#"["path","api_key_id"] not_found"#.into()]));
    assert!(!as_stored(&stack).iter().any(|item| item.get("id").is_some_and(|of| of.as_s() == Ok(&id))));
}

#[tokio::test]
async fn a_request_cannot_revoke_its_own_key() {
    let stack = stack().await;
    let before = everything(&stack).await;
    let own = id('a', kind::API_KEY, 1);
    let answer = stack.answer(&call("DELETE", &of(&own), ACME)).await;
    assert_eq!(failure(&answer), (409, vec![r#"["path","api_key_id"] own_api_key"#.into()]));
    assert_eq!(everything(&stack).await, before);
    // Another key of the role may.
    let (other, _) = make_key(&stack, ACME, &json!({"name": "Other", "role": "admin"})).await;
    assert_eq!(stack.answer(&call("DELETE", &of(&own), &other)).await.status, 200);
}

#[tokio::test]
async fn a_rotation_keeps_the_old_key_for_the_overlap() {
    let (stack, after) = stack_with_clock().await;
    let body = json!({"name": "Shop", "scopes": ["tag:read"], "user_id": id('a', kind::USER, 1), "requests_per_second": 40, "burst": 60,
        "expires_at": "2026-02-11T12:00:00Z"});
    let (old, old_id) = make_key(&stack, ACME, &body).await;
    after(86_400_000);
    let rotated =
        data(&send(&stack, "POST", &format!("{}/rotate", of(&old_id)), ACME, json!({"overlap_seconds": 60})).await);
    assert_eq!(
        (&rotated["replaced"]["id"], &rotated["replaced"]["expires_at"]),
        (&json!(old_id), &json!("2026-02-02T12:01:00.000Z"))
    );
    // It is valid for as long as the old one was meant to be.
    assert_eq!(rotated["expires_at"], "2026-02-12T12:00:00.000Z");
    let made = |key: &Value| key["created_at"].as_str().unwrap().to_owned();
    assert_eq!([made(&rotated["replaced"]), made(&rotated)], ["2026-02-01T12:00:00.000Z", "2026-02-02T12:00:00.000Z"]);
    for same in ["name", "role", "scopes", "user_id", "requests_per_second", "burst", "limits", "org_id"] {
        assert_eq!(rotated[same], rotated["replaced"][same], "{same}");
    }
    let new = rotated["api_key"].as_str().unwrap();
    assert_ne!(new, old);
    after(86_400_000 + 59_999);
    assert_eq!((status(&stack, &old).await, status(&stack, new).await), (200, 200));
    after(86_400_000 + 60_000);
    assert_eq!((status(&stack, &old).await, status(&stack, new).await), (401, 200));
    let again = failure(&send(&stack, "POST", &format!("{}/rotate", of(&old_id)), ACME, Value::Null).await);
    assert_eq!(again, (409, vec![r#"["path","api_key_id"] api_key_ended"#.into()]));
}

#[tokio::test]
async fn a_rotation_without_an_overlap_ends_the_old_key() {
    let (stack, after) = stack_with_clock().await;
    let (old, id) = make_key(&stack, ACME, &json!({"name": "Shop"})).await;
    assert_eq!(status(&stack, &old).await, 200);
    let rotated = send(&stack, "POST", &format!("{}/rotate", of(&id)), ACME, json!({"overlap_seconds": 0})).await;
    let rotated = data(&rotated);
    assert_eq!(
        (&rotated["expires_at"], &rotated["replaced"]["expires_at"]),
        (&Value::Null, &json!("2026-02-01T12:00:00.000Z"))
    );
    after(5000);
    assert_eq!((status(&stack, &old).await, status(&stack, rotated["api_key"].as_str().unwrap()).await), (401, 200));
    for overlap in [json!(-1), json!(604_801), json!("x")] {
        let answer =
            send(&stack, "POST", &format!("{}/rotate", of(&id)), ACME, json!({"overlap_seconds": overlap})).await;
        assert_eq!(answer.status, 422, "{overlap}");
    }
}

#[tokio::test]
async fn a_key_may_rotate_itself() {
    let stack = stack().await;
    let (admin, id) = make_key(&stack, ACME, &json!({"name": "Own", "role": "admin"})).await;
    let rotated = data(&send(&stack, "POST", &format!("{}/rotate", of(&id)), &admin, Value::Null).await);
    let new = rotated["api_key"].as_str().unwrap();
    assert_eq!(stack.answer(&call("DELETE", &of(&id), new)).await.status, 200);
}

#[tokio::test]
async fn an_update_changes_a_key_within_5_seconds() {
    let (stack, after) = stack_with_clock().await;
    let (key, id) = make_key(&stack, ACME, &json!({"name": "Shop", "scopes": ["tag:write"]})).await;
    assert_eq!(status(&stack, &key).await, 200);
    let before = listed(&stack, &id).await;
    let change = json!({"scopes": ["contact:read"], "expires_at": "2026-02-01T13:00:00Z", "user_id": self::id('a', kind::USER, 1)});
    let changed = data(&send(&stack, "PUT", &of(&id), ACME, change.clone()).await);
    for (name, value) in changed.as_object().unwrap() {
        let wanted = match name.as_str() {
            "expires_at" => &json!("2026-02-01T13:00:00.000Z"),
            name => change.get(name).unwrap_or(&before[name]),
        };
        assert_eq!(value, wanted, "{name}");
    }
    after(5000);
    assert_eq!(status(&stack, &key).await, 403);
    let reset = json!({"scopes": null, "expires_at": null, "user_id": null, "role": "admin"});
    let reset = data(&send(&stack, "PUT", &of(&id), ACME, reset).await);
    assert_eq!((&reset["scopes"], &reset["expires_at"], &reset["role"]), (&Value::Null, &Value::Null, &json!("full")));
    let past = send(&stack, "PUT", &of(&id), ACME, json!({"expires_at": "2026-02-01T12:00:00Z"})).await;
    assert_eq!(failure(&past), (422, vec![r#"["body","expires_at"] value_error"#.into()]));
    after(10_000);
    assert_eq!(status(&stack, &key).await, 200);
}

/// An operator's revocation holds: customers cannot undo it.
#[tokio::test]
async fn a_key_that_operators_revoked_stays_revoked() {
    let (stack, after) = stack_with_clock().await;
    let (key, id) = make_key(&stack, ACME, &json!({"name": "Shop"})).await;
    let named = json!({"org_id": ACME_ORG, "id": id}).to_string();
    stack.gateway.invoke_by_name("revoke-api-key", named.as_bytes()).await;
    let change = json!({"name": "Again", "expires_at": "2027-01-01T00:00:00Z"});
    assert_ne!(data(&send(&stack, "PUT", &of(&id), ACME, change).await)["revoked_at"], Value::Null);
    let rotated = failure(&send(&stack, "POST", &format!("{}/rotate", of(&id)), ACME, Value::Null).await);
    assert_eq!(rotated, (409, vec![r#"["path","api_key_id"] api_key_ended"#.into()]));
    after(5000);
    assert_eq!(status(&stack, &key).await, 401);
}

#[tokio::test]
async fn an_expired_key_is_listed_for_a_week_and_then_removed() {
    let stack = stack().await;
    let (_, id) = make_key(&stack, ACME, &json!({"name": "Fair", "expires_at": "2026-03-01T00:00:00Z"})).await;
    let ttls = async || {
        let items = as_stored(&stack).into_iter().filter(|item| item.get("id").is_some_and(|of| of.as_s() == Ok(&id)));
        items.map(|item| item.get("ttl").map(|ttl| ttl.as_n().unwrap().clone())).collect::<Vec<_>>()
    };
    let week_after = "2026-03-08T00:00:00Z".parse::<chrono::DateTime<chrono::Utc>>().unwrap().timestamp().to_string();
    assert_eq!(ttls().await, [Some(week_after.clone()), Some(week_after)]);
    data(&send(&stack, "PUT", &of(&id), ACME, json!({"expires_at": null})).await);
    assert_eq!(ttls().await, [None, None]);
}

#[tokio::test]
async fn an_organisation_has_a_hundred_valid_keys_at_most() {
    let stack = stack().await;
    let store = &stack.gateway.service.store;
    let org: Uuid = ACME_ORG.parse().unwrap();
    for number in 0..97_u8 {
        let record = json!({"id": Uuid::from_u128(number.into()), "org_id": ACME_ORG, "prefix": "in-", "name": "x",
            "role": "full", "created_at": "2026-01-01T00:00:00Z"});
        let record: ApiKeyRecord = serde_json::from_value(record).unwrap();
        assert_eq!(record.org_id, OrgId(org));
        store.add_api_key(&ApiKey::of_secret([number; 32]).hash(), &record).await.unwrap();
    }
    let before = everything(&stack).await;
    let full = (409, vec![r#"["body"] too_many_api_keys"#.to_owned()]);
    assert_eq!(failure(&send(&stack, "POST", KEYS, ACME, json!({"name": "x"})).await), full);
    let first = of(&ApiKeyId(Uuid::from_u128(0)).to_string());
    assert_eq!(failure(&send(&stack, "POST", &format!("{first}/rotate"), ACME, Value::Null).await), full);
    assert_eq!(everything(&stack).await, before);
    let page = get(&stack, &format!("{KEYS}?size=100")).await;
    assert_eq!((page["total"].as_u64(), page["items"].as_array().unwrap().len()), (Some(100), 100));
    // A key that ends at once makes room for its successor, and a revoked one for any other.
    data(&send(&stack, "POST", &format!("{first}/rotate"), ACME, json!({"overlap_seconds": 0})).await);
    data(&stack.answer(&call("DELETE", &of(&ApiKeyId(Uuid::from_u128(1)).to_string()), ACME)).await);
    assert_eq!(send(&stack, "POST", KEYS, ACME, json!({"name": "x"})).await.status, 201);
}

#[tokio::test]
async fn a_key_gets_no_higher_limits_than_its_maker_has() {
    let stack = Stack::start(Settings { key_limits: Limits::new(50, 100), ..settings() }).await.unwrap();
    let issue = json!({"name": "Small", "org_id": ACME_ORG, "role": "admin", "requests_per_second": 5, "burst": 10});
    let issued = stack.gateway.invoke_by_name("issue-api-key", issue.to_string().as_bytes()).await;
    let issued: Value = serde_json::from_str(&issued.body).unwrap();
    let admin = issued["api_key"].as_str().unwrap();
    let above = |name: &str| (422, vec![format!(r#"["body","{name}"] less_than_equal"#)]);
    for (limits, wanted) in [
        (json!({"name": "x", "requests_per_second": 6, "burst": 10}), above("requests_per_second")),
        (json!({"name": "x", "burst": 11}), above("burst")),
    ] {
        assert_eq!(failure(&send(&stack, "POST", KEYS, admin, limits.clone()).await), wanted, "{limits}");
    }
    let made = data(&send(&stack, "POST", KEYS, admin, json!({"name": "x"})).await);
    assert_eq!(made["limits"], json!({"requests_per_second": 5, "burst": 10}));
    let path = of(made["id"].as_str().unwrap());
    for limits in [json!({"requests_per_second": null, "burst": null}), json!({"burst": 11})] {
        assert_eq!(send(&stack, "PUT", &path, admin, limits.clone()).await.status, 422, "{limits}");
    }
    let lower = data(&send(&stack, "PUT", &path, admin, json!({"requests_per_second": 2, "burst": 2})).await);
    assert_eq!(lower["limits"], json!({"requests_per_second": 2, "burst": 2}));
    // A key may keep what an operator has given it.
    let own = of(issued["id"].as_str().unwrap());
    assert_eq!(send(&stack, "PUT", &own, ACME, json!({"requests_per_second": 4})).await.status, 200);
    let most = send(&stack, "POST", KEYS, ACME, json!({"name": "x", "requests_per_second": 1000, "burst": 1000})).await;
    assert_eq!(most.status, 422);
}

#[tokio::test]
async fn last_used_at_is_the_day_of_the_last_request() {
    let (stack, after) = stack_with_clock().await;
    let (key, id) = make_key(&stack, ACME, &json!({"name": "Shop"})).await;
    assert_eq!(listed(&stack, &id).await["last_used_at"], Value::Null);
    let written = async || stack.answer(&call("GET", TAGS, &key)).await.cost.write_units;
    assert_eq!((written().await, written().await), (1.0, 0.0), "a process notes a use once");
    assert_eq!(listed(&stack, &id).await["last_used_at"], "2026-02-01");
    after(6000);
    assert_eq!((written().await, written().await), (0.0, 0.0), "it remembers that when it reads the key again");
    after(12 * 3_600_000);
    assert_eq!((written().await, written().await), (1.0, 0.0));
    assert_eq!(listed(&stack, &id).await["last_used_at"], "2026-02-02");
}

#[tokio::test]
async fn the_user_of_a_key_is_the_creator_of_its_links() {
    let stack = stack().await;
    let user = id('a', kind::USER, 1);
    let (key, _) = make_key(&stack, ACME, &json!({"name": "Shop", "user_id": user})).await;
    let link = |entity: u32| {
        let body = json!({"tag_id": id('a', kind::TAG, 0), "entity_type": "widget", "entity_id": id('a', kind::WIDGET, entity)});
        post("/api/v1/link_tag_entity", &key, body.to_string())
    };
    assert_eq!(data(&stack.answer(&link(1)).await)["created_by_id"], json!(user));
    // A key goes on without its user.
    data(&stack.answer(&call("DELETE", &format!("/api/v1/user/{user}"), ACME)).await);
    assert_eq!(data(&stack.answer(&link(2)).await)["created_by_id"], json!(user));
}

/// A request that is sent again after a crash makes no key a second time, even if the first one was revoked meanwhile.
#[tokio::test]
async fn a_key_that_an_earlier_attempt_made_is_not_made_again() {
    let stack = stack().await;
    let (_, id) = make_key(&stack, ACME, &json!({"name": "Shop"})).await;
    let (table, id) = (acme(&stack), ApiKeyId(id.parse().unwrap()));
    let held = table.api_key(id).await.unwrap();
    let origin = Some(Uuid::from_u128(7));
    table.issue_api_key(origin, &held, None).await.unwrap();
    table.remove_api_key(&held).await.unwrap();
    table.issue_api_key(origin, &held, None).await.unwrap();
    assert!(table.api_key(id).await.is_err());
}

#[tokio::test]
async fn the_user_of_a_key_is_read_and_a_key_without_one_gets_404() {
    let stack = stack().await;
    let own = async |key: &str| stack.answer(&call("GET", routes::READ_OWN_USER.path, key)).await;
    let user = id('a', kind::USER, 2);
    let (with, _) = make_key(&stack, ACME, &json!({"name": "Shop", "user_id": user, "scopes": ["user:read"]})).await;
    let (without, _) = make_key(&stack, ACME, &json!({"name": "Shop"})).await;
    assert_eq!(data(&own(&with).await), get(&stack, &format!("/api/v1/user/{user}")).await);
    let missing = (404, vec![r#"["query","api_key"] not_found"#.to_owned()]);
    assert_eq!(failure(&own(&without).await), missing);
    data(&stack.answer(&call("DELETE", &format!("/api/v1/user/{user}"), ACME)).await);
    assert_eq!(failure(&own(&with).await), missing);
}
