//! Tests of the rules that hold for every operation, with calls of every route.

use local::functions::describe;
use local::http::{Answer, Call};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::request::api_key::{ApiKey, Role};
use shared::request::route::{Access, Route};
use shared::routes::{self, MCP};

use crate::support::agents::{STATELESS, request};
use crate::support::fixture::{
    ACME, ACME_FULL, ACME_READ_ONLY, GLOBEX, call, demo_id, failure, fields, json, key_of, not_null, path, settings,
    stack, valid_body, valid_call,
};
use crate::support::sweep::cases;

fn takes_body(route: &Route) -> bool {
    describe(route.name).body.is_some()
}

/// Whether a request must have a body.
fn needs_body(route: &Route) -> bool {
    describe(route.name).body.is_some_and(|(_, required)| required)
}

/// Checks the form of an answer, good or bad.
fn well_formed(answer: &Answer, route: &Route) {
    assert_eq!(answer.headers["content-type"], "application/json", "{}", route.name);
    assert!(!answer.headers["x-request-id"].is_empty(), "{}", route.name);
    let body = json(answer);
    let keys: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    if answer.status < 300 {
        assert!(answer.body.starts_with(r#"{"message":""#), "{}", answer.body);
        assert_eq!(keys, ["data", "message", "meta"], "{}", route.name);
        return;
    }
    assert_eq!(keys, ["detail"], "{}", route.name);
    for issue in body["detail"].as_array().unwrap() {
        let keys: Vec<_> = issue.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["loc", "msg", "type"], "{}", route.name);
    }
}

#[tokio::test]
async fn a_valid_call_succeeds_with_each_slash_form_and_key_place() {
    for route in cases(routes::ALL) {
        let bare = valid_call(route, 'a', ACME);
        let bare = Call { path: bare.path.trim_end_matches('/').to_owned(), ..bare };
        let slash = Call { path: format!("{}/", bare.path), ..bare.clone() };
        let key = key_of(&bare);
        let bearer = Call {
            query: bare.query.replace(&format!("api_key={key}"), ""),
            headers: [("authorization".to_owned(), format!("Bearer {key}"))].into(),
            ..bare.clone()
        };
        for form in [bare, slash, bearer] {
            let answer = stack().await.answer(&form).await;
            assert_eq!(answer.status, route.success, "{} {}", form.path, answer.body);
            well_formed(&answer, route);
        }
    }
}

#[tokio::test]
async fn the_allowed_origin_may_read_every_answer() {
    let origin = "https://pages.example";
    let settings = Settings { cors_allow_origin: Some(origin.to_owned()), ..settings() };
    let [with, without] = [Stack::start(settings).await.unwrap(), stack().await];
    let documents = routes::DOCUMENTS.iter().map(|route| (route.success, call(route.method, route.path, "")));
    let refused = routes::ALL.iter().map(|route| (401, call(route.method, &path(route, |_| "x".into()), "")));
    let good = routes::ALL.iter().filter(|route| route.method == "GET");
    let good = good.map(|route| (route.success, valid_call(route, 'a', ACME)));
    let wrong = [(405, call("GET", MCP.path, ACME)), (401, call("POST", MCP.path, ""))];
    for (status, call) in documents.chain(refused).chain(good).chain(wrong) {
        let (answer, closed) = (with.answer(&call).await, without.answer(&call).await);
        assert_eq!((answer.status, closed.status), (status, status), "{}", call.path);
        assert_eq!(answer.headers["access-control-allow-origin"], origin, "{}", call.path);
        assert_eq!(answer.headers["access-control-expose-headers"], "*", "{}", call.path);
        assert!(closed.headers.keys().all(|name| !name.starts_with("access-control")), "{}", call.path);
    }
}

#[tokio::test]
async fn a_bad_key_is_refused_before_any_other_check() {
    let stack = stack().await;
    let unknown = ApiKey::of_secret([9; 32]).expose().to_owned();
    let missing = (401, vec![r#"["query","api_key"] missing"#.to_owned()]);
    let invalid = (401, vec![r#"["query","api_key"] invalid_api_key"#.to_owned()]);
    for route in routes::ALL {
        let bodies = [
            (String::new(), &missing),
            ("api_key=".into(), &missing),
            ("api_key=in-short".into(), &invalid),
            (format!("api_key=xx-{}", &ACME[3..]), &invalid),
            (format!("api_key={unknown}"), &invalid),
            ("api_key=%00%ff%F0%9F%92%A9".into(), &invalid),
        ];
        for (query, wanted) in bodies {
            // Path and body are invalid too, and the answer mentions neither.
            let wrong = Call { query, body: b"{".to_vec(), ..call(route.method, &path(route, |_| "x".into()), "") };
            let answer = stack.answer(&wrong).await;
            assert_eq!(&failure(&answer), wanted, "{} {}", route.name, wrong.query);
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
            well_formed(&answer, route);
        }
    }
}

#[tokio::test]
async fn two_different_keys_in_one_request_are_refused() {
    let stack = stack().await;
    let with = |header: &str, query: &str| Call {
        query: query.to_owned(),
        headers: [("authorization".to_owned(), header.to_owned())].into(),
        ..call("GET", "/api/v1/user/get_agent_list/", "")
    };
    let own = format!("Bearer {ACME}");
    let refused = (401, vec![r#"["query","api_key"] different_api_keys"#.to_owned()]);
    for other in ["in-bad", ACME_READ_ONLY, GLOBEX] {
        for both in
            [with(&own, &format!("api_key={other}")), with(&format!("Bearer {other}"), &format!("api_key={ACME}"))]
        {
            let answer = stack.answer(&both).await;
            assert_eq!(
                (failure(&answer), answer.headers["www-authenticate"].as_str()),
                (refused.clone(), "Bearer"),
                "{other}"
            );
        }
    }
    // The same key twice is one key. An empty parameter, an empty token and another scheme are none.
    for (header, query) in [
        (own.as_str(), format!("api_key={ACME}")),
        (own.as_str(), "api_key=".to_owned()),
        (own.as_str(), format!("api_key=in-bad&api_key={ACME}")),
        ("Bearer ", format!("api_key={ACME}")),
        ("Basic YTpi", format!("api_key={ACME}")),
    ] {
        assert_eq!(stack.answer(&with(header, &query)).await.status, 200, "{header} {query}");
    }
}

#[tokio::test]
async fn every_answer_has_the_headers_of_security() {
    let stack = stack().await;
    let (keyed, documents) = (routes::ALL.iter(), routes::DOCUMENTS);
    let good = keyed.clone().map(|route| valid_call(route, 'a', ACME));
    let refused = keyed.map(|route| valid_call(route, 'a', "in-bad"));
    let signed = routes::SIGNED.iter().map(|route| valid_call(route, 'a', ""));
    let forged = signed.clone().map(|call| Call { body: b"{}".into(), ..call });
    let tools = [request(STATELESS, ACME, "server/discover", json!({})), request(STATELESS, "", "ping", json!({}))];
    let unknown = [call("GET", "/api/v1/nothing", ACME)];
    let private = good.chain(refused).chain(signed).chain(forged).chain(tools).chain(unknown);
    let public = documents.iter().map(|route| call(route.method, route.path, ""));
    for (kept, call) in private.map(|call| ("no-store", call)).chain(public.map(|call| ("public, max-age=300", call))) {
        let answer = stack.answer(&call).await;
        let seen = |name: &str| answer.headers.get(name).map(String::as_str);
        assert_eq!(seen("cache-control"), Some(kept), "{} {}", call.method, call.path);
        assert_eq!(seen("strict-transport-security"), Some("max-age=31536000"), "{} {}", call.method, call.path);
        assert_eq!(seen("x-content-type-options"), Some("nosniff"), "{} {}", call.method, call.path);
    }
}

#[tokio::test]
async fn a_key_can_do_what_its_role_allows() {
    for (key, role) in [(ACME_READ_ONLY, Role::ReadOnly), (ACME_FULL, Role::Full)] {
        for route in cases(routes::ALL) {
            let stack = stack().await;
            let answer = stack.answer(&valid_call(route, 'a', key)).await;
            well_formed(&answer, route);
            let allowed = match route.access {
                Access::Read => true,
                Access::Write => role == Role::Full,
                Access::Admin => false,
                Access::Public | Access::Signed => panic!("{} has a key", route.name),
            };
            if allowed {
                assert_eq!(answer.status, route.success, "{}", route.name);
                continue;
            }
            assert_eq!(failure(&answer), (403, vec![r#"["query","api_key"] forbidden"#.into()]), "{}", route.name);
            let again = stack.answer(&valid_call(route, 'a', ACME)).await;
            assert_eq!(again.status, route.success, "{}: the refused call had an effect", route.name);
        }
    }
}

#[tokio::test]
async fn all_invalid_path_parameters_are_reported_at_once() {
    let stack = stack().await;
    for route in routes::ALL {
        let parameters: Vec<_> = route.parameters().collect();
        if parameters.is_empty() {
            continue;
        }
        let bad = Call {
            body: valid_body(route, 'a').into(),
            ..call(route.method, &path(route, |_| "not-a-uuid".into()), ACME)
        };
        let answer = stack.answer(&bad).await;
        let wanted = parameters.iter().map(|name| format!(r#"["path","{name}"] uuid_parsing"#)).collect();
        assert_eq!(failure(&answer), (422, wanted), "{}", route.name);
        well_formed(&answer, route);
    }
}

#[tokio::test]
async fn a_path_accepts_every_form_of_an_id() {
    for form in [
        |id: &str| id.to_uppercase(),
        |id: &str| id.replace('-', ""),
        |id: &str| format!("%7B{id}%7D"),
        |id: &str| format!("urn:uuid:{id}"),
    ] {
        let stack = stack().await;
        let target = path(&routes::DELETE_TAG, |name| form(&demo_id('a', name)));
        assert_eq!(stack.answer(&call("DELETE", &target, ACME)).await.status, 200, "{target}");
    }
}

#[tokio::test]
async fn only_operations_with_a_body_refuse_an_unusable_body() {
    for route in cases(routes::ALL) {
        // A request that changes nothing leaves the stack to the next one.
        let stays = if needs_body(route) || route.method == "GET" { Some(stack().await) } else { None };
        for (body, wanted) in [
            (&b"{"[..], r#"["body",1] json_invalid"#),
            (b"{\"a\": nope}", r#"["body",6] json_invalid"#),
            (b"\xff\xfe", r#"["body",0] json_invalid"#),
            (b"", r#"["body"] missing"#),
            (b"null", r#"["body"] missing"#),
            (b"[]", r#"["body"] model_attributes_type"#),
            (b"12", r#"["body"] model_attributes_type"#),
        ] {
            let fresh = if stays.is_none() { Some(stack().await) } else { None };
            let stack = stays.as_ref().or(fresh.as_ref()).unwrap();
            let answer = stack.answer(&Call { body: body.to_vec(), ..valid_call(route, 'a', ACME) }).await;
            well_formed(&answer, route);
            if matches!(body, b"" | b"null") && **route == routes::UPSERT_CONTACT {
                // All its fields may be in the query instead.
                assert_eq!(failure(&answer), (422, vec![r#"["body","email"] missing"#.to_owned()]));
            } else if takes_body(route) && (needs_body(route) || !matches!(body, b"" | b"null")) {
                assert_eq!(failure(&answer), (422, vec![wanted.to_owned()]), "{} {body:?}", route.name);
            } else {
                assert_eq!(answer.status, route.success, "{} {body:?}", route.name);
            }
        }
    }
}

#[tokio::test]
async fn invalid_json_is_reported_without_other_issues() {
    let stack = stack().await;
    for route in routes::ALL.iter().filter(|route| takes_body(route)) {
        let wrong = Call { body: b"{".to_vec(), ..call(route.method, &path(route, |_| "x".into()), ACME) };
        assert_eq!(
            failure(&stack.answer(&wrong).await),
            (422, vec![r#"["body",1] json_invalid"#.into()]),
            "{}",
            route.name
        );
    }
}

#[tokio::test]
async fn every_field_refuses_a_value_of_another_type() {
    let stack = stack().await;
    for route in routes::ALL.iter().filter(|route| takes_body(route)) {
        let fields = fields(route);
        // An array is a wrong value of every field but an array.
        let wrong = |schema: &Value| if not_null(schema)["type"] == "array" { json!({}) } else { json!([{}]) };
        let body: serde_json::Map<_, _> = fields.iter().map(|(name, schema)| (name.clone(), wrong(schema))).collect();
        let wrong = Call { body: serde_json::to_vec(&body).unwrap(), ..valid_call(route, 'a', ACME) };
        let answer = stack.answer(&wrong).await;
        well_formed(&answer, route);
        let (status, issues) = failure(&answer);
        assert_eq!(status, 422, "{}", route.name);
        assert_eq!(issues.len(), fields.len(), "{}: {issues:?}", route.name);
        for (name, _) in &fields {
            assert!(
                issues.iter().any(|issue| issue.contains(&format!("\"{name}\""))),
                "{} {name}: {issues:?}",
                route.name
            );
        }
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_413() {
    for route in cases(routes::ALL) {
        let stack = stack().await;
        let padded = |size: usize| {
            let mut body = valid_body(route, 'a').into_bytes();
            body.resize(size.max(body.len()), b' ');
            Call { body, ..valid_call(route, 'a', ACME) }
        };
        let over = stack.answer(&padded(route.body_limit + 1)).await;
        assert_eq!(failure(&over), (413, vec![r#"["body"] payload_too_large"#.into()]), "{}", route.name);
        well_formed(&over, route);
        let at = stack.answer(&padded(route.body_limit)).await;
        assert_eq!(at.status, route.success, "{} {}", route.name, at.body);
    }
}

#[tokio::test]
async fn a_function_answers_its_own_route_only() {
    let stack = stack().await;
    let tag = valid_call(&routes::DELETE_TAG, 'a', ACME);
    for route in routes::ALL.iter().filter(|route| route.name != "delete-tag") {
        let endpoint = local::gateway::endpoint(route.name).unwrap();
        let event = stack.gateway.event(&tag, "a request");
        let answer = stack.gateway.invoke(endpoint, event).await;
        assert_eq!(failure(&answer), (404, vec![r#"["path"] not_found"#.into()]), "{}", route.name);
    }
}

#[tokio::test]
async fn an_unknown_route_or_method_answers_404() {
    let stack = stack().await;
    for (method, target) in
        [("GET", "/"), ("GET", "/api/v1/nothing"), ("PATCH", "/api/v1/tag/x"), ("GET", "/api/v2/assistant")]
    {
        let answer = stack.answer(&call(method, target, ACME)).await;
        assert_eq!(failure(&answer), (404, vec![r#"["path"] not_found"#.into()]), "{method} {target}");
        assert!(!answer.headers["x-request-id"].is_empty());
    }
}
