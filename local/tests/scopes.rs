//! Tests of scopes: a key with scopes calls the operations that they name, and gives other keys no more.

use std::collections::BTreeSet;

use local::Stack;
use serde_json::{Value, json};
use shared::keys::Scopes;
use shared::request::route::{Access, Route};
use shared::request::scope::KeyScope;
use shared::routes;

use crate::support::agents::{STATELESS, request};
use crate::support::fixture::{ACME, call, data, everything, failure, id, json, kind, post, stack, valid_call};
use crate::support::records::make_key;
use crate::support::sweep::cases;

/// A key with these scopes that has the role for `route`.
async fn key_for(stack: &Stack, route: &Route, scopes: &[KeyScope]) -> String {
    let role = if route.access == Access::Admin { "admin" } else { "full" };
    let user = id('a', kind::USER, 1);
    make_key(stack, ACME, &json!({"name": "Scoped", "role": role, "scopes": scopes, "user_id": user})).await.0
}

#[tokio::test]
async fn a_key_calls_exactly_the_operations_of_its_scopes() {
    for route in cases(routes::ALL) {
        let (stack, scope) = (stack().await, route.scope());
        let others: Vec<_> = Scopes::all().iter().filter(|other| !other.covers(&scope)).cloned().collect();
        let other = key_for(&stack, route, &others).await;
        // An export is also about the records in it.
        let exported = [routes::CREATE_EXPORT.name, routes::READ_EXPORT.name].contains(&route.name);
        let scopes: Vec<_> = exported.then(|| KeyScope::read("contact")).into_iter().chain([scope.clone()]).collect();
        let own = key_for(&stack, route, &scopes).await;
        let before = everything(&stack).await;
        let refused = stack.answer(&valid_call(route, 'a', &other)).await;
        assert_eq!(failure(&refused), (403, vec![r#"["query","api_key"] forbidden"#.into()]), "{}", route.name);
        assert_eq!(json(&refused)["detail"][0]["msg"], format!("The API key needs the scope {scope}"));
        assert_eq!(everything(&stack).await, before, "{}: the refused call had an effect", route.name);
        let answer = stack.answer(&valid_call(route, 'a', &own)).await;
        // A key with scopes may not manage one that may do everything.
        let is_of_others = route.record == "key" && !route.path.ends_with("/api_key");
        let is_wider = is_of_others || route.name == routes::CREATE_KEY.name;
        let wanted = if is_wider { 403 } else { route.success };
        assert_eq!(answer.status, wanted, "{} {}", route.name, answer.body);
    }
}

#[tokio::test]
async fn a_scope_to_write_includes_to_read_and_never_exceeds_the_role() {
    let stack = stack().await;
    let scopes = json!(["key:write", "tag:write"]);
    let status = async |key: &str, route: &Route| stack.answer(&valid_call(route, 'a', key)).await.status;
    for (role, wanted) in [("read_only", [200, 403, 403]), ("full", [200, 201, 403]), ("admin", [200, 201, 200])] {
        let (key, _) = make_key(&stack, ACME, &json!({"name": role, "role": role, "scopes": scopes})).await;
        let routes = [&routes::LIST_TAGS, &routes::CREATE_TAG, &routes::LIST_KEYS];
        for (route, wanted) in routes.into_iter().zip(wanted) {
            assert_eq!(status(&key, route).await, wanted, "{role} {}", route.name);
        }
    }
}

#[tokio::test]
async fn a_key_with_a_scope_to_read_sees_addresses_masked() {
    let stack = stack().await;
    let body = json!({"endpoint": "http://127.0.0.1:1/hooks?token=hidden"});
    let webhook = data(&stack.answer(&post("/api/v1/outbound_webhook", ACME, body.to_string())).await)["id"].clone();
    let path = format!("/api/v1/outbound_webhook/{}", webhook.as_str().unwrap());
    for (scope, wanted) in
        [("webhook:read", "http://127.0.0.1:1/hooks?…"), ("webhook:write", "http://127.0.0.1:1/hooks?token=hidden")]
    {
        let (key, _) = make_key(&stack, ACME, &json!({"name": "x", "scopes": [scope]})).await;
        assert_eq!(data(&stack.answer(&call("GET", &path, &key)).await)["endpoint"], wanted, "{scope}");
    }
}

#[tokio::test]
async fn an_unknown_scope_is_refused_at_its_place() {
    let stack = stack().await;
    let before = everything(&stack).await;
    let key = format!("/api/v1/api_key/{}", id('a', kind::API_KEY, 2));
    for (scopes, wanted) in [
        (json!(["tag:read", "tags:read"]), r#"["body","scopes",1] enum"#),
        (json!(["tag"]), r#"["body","scopes",0] enum"#),
        (json!(["mcp:read"]), r#"["body","scopes",0] enum"#),
        (json!([7]), r#"["body","scopes",0] enum"#),
        (json!("tag:read"), r#"["body","scopes"] list_type"#),
        (json!([]), r#"["body","scopes"] too_short"#),
        (json!(vec!["tag:read"; 1000]), r#"["body","scopes"] too_long"#),
    ] {
        let body = json!({"name": "x", "scopes": scopes}).to_string();
        for (method, path) in [("POST", routes::CREATE_KEY.path), ("PUT", key.as_str())] {
            let answer =
                stack.answer(&local::http::Call { body: body.clone().into(), ..call(method, path, ACME) }).await;
            assert_eq!(failure(&answer), (422, vec![wanted.to_owned()]), "{body}");
        }
    }
    assert_eq!(everything(&stack).await, before);
    let twice = json!({"name": "x", "scopes": ["tag:write", "tag:read", "tag:write"]}).to_string();
    let made = data(&stack.answer(&post(routes::CREATE_KEY.path, ACME, twice)).await);
    assert_eq!(made["scopes"], json!(["tag:read", "tag:write"]));
}

#[tokio::test]
async fn a_key_gives_no_scope_that_it_lacks() {
    let stack = stack().await;
    let (admin, _) =
        make_key(&stack, ACME, &json!({"name": "A", "role": "admin", "scopes": ["key:write", "tag:write"]})).await;
    let (_, wider) = make_key(&stack, ACME, &json!({"name": "B", "scopes": ["tag:read", "contact:read"]})).await;
    let (_, within) = make_key(&stack, ACME, &json!({"name": "C", "scopes": ["tag:read"]})).await;
    let before = everything(&stack).await;
    let send = async |method: &str, path: &str, body: Value| {
        let body = body.to_string().into_bytes();
        failure(&stack.answer(&local::http::Call { body, ..call(method, path, &admin) }).await)
    };
    let refused = |place: &str| (403, vec![format!("{place} forbidden")]);
    for scopes in [Value::Null, json!(["contact:read"]), json!(["tag:read", "contact:write"])] {
        let body = json!({"name": "x", "scopes": scopes});
        assert_eq!(send("POST", "/api/v1/api_key", body.clone()).await, refused(r#"["body","scopes"]"#), "{body}");
        let path = format!("/api/v1/api_key/{within}");
        assert_eq!(send("PUT", &path, body.clone()).await, refused(r#"["body","scopes"]"#), "{body}");
    }
    for other in [wider, id('a', kind::API_KEY, 1), id('a', kind::API_KEY, 2)] {
        let path = format!("/api/v1/api_key/{other}");
        let place = refused(r#"["path","api_key_id"]"#);
        assert_eq!(send("PUT", &path, json!({"scopes": ["tag:read"]})).await, place);
        assert_eq!(send("POST", &format!("{path}/rotate"), json!({})).await, place);
        assert_eq!(send("DELETE", &path, Value::Null).await, place);
    }
    assert_eq!(everything(&stack).await, before);
    for (method, path, status) in [
        ("POST", "/api/v1/api_key".to_owned(), 201),
        ("PUT", format!("/api/v1/api_key/{within}"), 200),
        ("POST", format!("/api/v1/api_key/{within}/rotate"), 200),
        ("DELETE", format!("/api/v1/api_key/{within}"), 200),
    ] {
        let body = if path.ends_with("/rotate") { json!({}) } else { json!({"name": "x", "scopes": ["tag:write"]}) };
        assert_eq!(send(method, &path, body).await, (status, Vec::new()), "{method} {path}");
    }
}

#[tokio::test]
async fn a_key_with_scopes_sees_only_their_tools() {
    let stack = stack().await;
    let (key, _) = make_key(&stack, ACME, &json!({"name": "x", "scopes": ["tag:write", "contact:read"]})).await;
    let listed = json(&stack.answer(&request(STATELESS, &key, "tools/list", json!({}))).await);
    let shown: BTreeSet<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let wanted = routes::ALL
        .iter()
        .filter(|route| route.record == "tag" || (route.record == "contact" && route.access == Access::Read));
    assert_eq!(shown, wanted.map(|route| route.name).collect());
    let tool = json!({"name": "list-assistants", "arguments": {}});
    let refused = json(&stack.answer(&request(STATELESS, &key, "tools/call", tool)).await);
    assert_eq!(refused["result"]["structuredContent"]["detail"][0]["type"], "forbidden", "{refused}");
}
