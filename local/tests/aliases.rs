//! Tests of the aliases: a further path of an operation answers as its own path does.

use local::Stack;
use local::http::{Answer, Call};
use serde_json::json;
use shared::request::route::Route;
use shared::routes;

use crate::support::documented::DOCUMENT;
use crate::support::fixture::{
    ACME, ACME_READ_ONLY, call, data, demo_id, everything, failure, filled, get, id, kind, parameter, post, stack,
    streaming, valid_call,
};

/// Every alias, with its route.
fn aliases() -> impl Iterator<Item = (&'static Route, &'static str)> {
    routes::ALL.iter().flat_map(|route| route.aliases.iter().map(|alias| (*route, *alias)))
}

/// A path with the ids of the demo set, and its parameters that the route's own path lacks, as a query.
fn path_and_query(route: &Route, alias: &str) -> (String, String) {
    let value = |name: &str| demo_id('a', name);
    let further = alias.split('/').filter_map(parameter).filter(|name| route.parameters().all(|own| own != *name));
    (filled(alias, value), further.map(|name| format!("&{name}={}", value(name))).collect())
}

#[tokio::test]
async fn an_alias_answers_and_writes_what_its_operation_does() {
    let mut count = 0;
    for (route, alias) in aliases() {
        let (path, query) = path_and_query(route, alias);
        let own = valid_call(route, 'a', ACME);
        let own = Call { query: own.query.clone() + &query, ..own };
        for path in [path.clone(), format!("{path}/")] {
            let further = Call { path, ..valid_call(route, 'a', ACME) };
            let (first, second) = (stack().await, stack().await);
            let (wanted, answer) = (first.answer(&own).await, second.answer(&further).await);
            assert_eq!((wanted.status, answer.status), (route.success, route.success), "{alias}: {}", answer.body);
            assert_eq!(answer.body, wanted.body, "{alias}");
            assert_eq!(everything(&second).await, everything(&first).await, "{alias}");
        }
        count += 1;
    }
    assert_eq!(count, 7);
}

#[tokio::test]
async fn an_alias_requires_the_key_and_the_role_of_its_operation() {
    let stack = stack().await;
    for (route, alias) in aliases() {
        let (path, _) = path_and_query(route, alias);
        assert_eq!(stack.answer(&call(route.method, &path, "")).await.status, 401, "{alias}");
        let reader = Call { path, ..valid_call(route, 'a', ACME_READ_ONLY) };
        let wanted = if route.writes() { 403 } else { route.success };
        assert_eq!(stack.answer(&reader).await.status, wanted, "{alias}");
    }
}

#[tokio::test]
async fn an_alias_hides_no_other_operation() {
    let stack = stack().await;
    for (route, alias) in aliases() {
        let (path, _) = path_and_query(route, alias);
        assert_eq!(routes::find(route.method, &path), Some(route), "{alias}");
    }
    let contact = id('a', kind::CONTACT, 1);
    assert_eq!(get(&stack, &format!("/api/v1/contact/{contact}")).await["id"], json!(contact));
    assert_eq!(get(&stack, "/api/v1/contact").await, get(&stack, "/api/v1/contact/list").await);
    // The alias has one method.
    assert_eq!(stack.answer(&call("DELETE", "/api/v1/contact/list", ACME)).await.status, 422);
}

async fn widgets(stack: &Stack, assistant: &str, query: &str) -> Answer {
    stack.answer(&call("GET", &format!("/api/v1/assistant/{assistant}/widgets?{query}"), ACME)).await
}

#[tokio::test]
async fn the_widgets_of_an_assistant_are_listed_by_its_path() {
    let stack = Stack::start(streaming()).await.unwrap();
    let assistant = id('a', kind::ASSISTANT, 1);
    let page = data(&widgets(&stack, &assistant, "").await);
    assert_eq!((&page["total"], page["items"].as_array().unwrap().len()), (&json!(3), 3));
    assert!(page["items"].as_array().unwrap().iter().all(|widget| widget["assistant_id"] == assistant));
    // The path counts, not a parameter with the same name.
    let other = format!("assistant_id={}", id('a', kind::ASSISTANT, 0));
    assert_eq!(data(&widgets(&stack, &assistant, &other).await), page);
    let phone = data(&widgets(&stack, &assistant, "widget_type=phone").await);
    assert_eq!(phone["total"], 1);
    assert_eq!(data(&widgets(&stack, &id('b', kind::ASSISTANT, 1), "").await)["total"], 0);
    assert_eq!(
        failure(&widgets(&stack, "x", "").await),
        (422, vec![r#"["query","assistant_id"] uuid_parsing"#.into()])
    );
}

/// A repeat is the same request at the same path.
#[tokio::test]
async fn an_idempotency_key_belongs_to_one_path() {
    let stack = stack().await;
    let headers = [("idempotency-key".to_owned(), "one".to_owned())].into();
    let own = Call { headers, ..post(routes::UPSERT_CONTACT.path, ACME, r#"{"email":"new@acme.example"}"#) };
    let alias = Call { path: "/api/v1/contact".into(), ..own.clone() };
    let first = stack.answer(&alias).await;
    assert_eq!((first.status, stack.answer(&alias).await.body), (201, first.body));
    assert_eq!(stack.answer(&own).await.status, 422);
}

#[test]
fn the_document_has_each_alias_with_the_parameters_of_its_path() {
    for (route, alias) in aliases() {
        let operation = &DOCUMENT["paths"][alias][route.method.to_lowercase()];
        assert!(operation["description"].as_str().unwrap().contains(route.path), "{alias}");
        let in_path = operation["parameters"].as_array().unwrap().iter().filter(|parameter| parameter["in"] == "path");
        let names: Vec<_> = in_path.map(|parameter| format!("{{{}}}", parameter["name"].as_str().unwrap())).collect();
        assert_eq!(names.len(), alias.matches('{').count(), "{alias}");
        assert!(names.iter().all(|name| alias.contains(name)), "{alias}");
    }
}
