//! Tests that `openapi.json` is complete and up to date. Other tests compare their answers and events with it.

use std::collections::BTreeSet;

use local::client_names;
use local::collections::{BRUNO, Collections};
use local::openapi::{EVENTS, alias_name, operation_id};
use repository::{names_in, root};
use serde_json::{Value, json};
use shared::records::event::EventKind;
use shared::records::widget::WidgetType;
use shared::routes;

use crate::support::documented::{DOCUMENT, compare, escaped};
use crate::support::fixture::{call, stack};
use crate::support::generated::generated;
use crate::support::sender::Sender;
use crate::support::sending::{Setup, id_of};

/// Records an event of each kind that comes without a subscription, as its endpoint received it.
#[tokio::test]
async fn an_event_of_each_kind_is_recorded() {
    let mut received = Vec::new();
    for kind in [WidgetType::Whatsapp, WidgetType::Phone] {
        let sender = Sender::of(Setup::start().await, kind, true, 1).await;
        let campaign = sender.run(json!({"message": "We open an hour earlier this week."})).await;
        sender.minute(&[&campaign]).await;
        let (setup, org) = (&sender.setup, &sender.org);
        if kind == WidgetType::Whatsapp {
            setup.close(org, &sender.conversations().await[0]).await;
            let webhooks = setup.get(org, "/api/v1/outbound_webhook/list").await;
            let test = format!("/api/v1/outbound_webhook/{}/test", id_of(&webhooks["items"][0]));
            setup.post(org, &test, Value::Null).await;
        }
        let (path, body) = if kind.calls() {
            ("call", json!({"to": "+49 151 2345678", "prompt_dynamic_variables": {"name": "Ada", "table": 7}}))
        } else {
            ("messaging", json!({"to": "+49 151 2345678", "message": "Your table is ready."}))
        };
        setup.post(org, &format!("/api/v1/{path}/{}", sender.widget.id), body).await;
        setup.settle().await;
        received.extend(setup.receiver.all());
    }
    let mut kinds = BTreeSet::new();
    for one in received {
        let body: Value = serde_json::from_slice(&one.body).unwrap();
        let kind = body["event"].as_str().unwrap().to_owned();
        generated(&format!("{EVENTS}/{kind}.json"), &(serde_json::to_string_pretty(&body).unwrap() + "\n"));
        assert!(kinds.insert(kind), "{kinds:?}");
    }
    let closed_and_test = [EventKind::CONVERSATION_CLOSED, EventKind::WEBHOOK_TEST];
    let known = EventKind::OF_CONNECTORS.iter().chain(&closed_and_test).map(ToString::to_string).collect();
    assert_eq!(kinds, known);
}

#[tokio::test]
async fn the_document_is_served_without_a_key() {
    let stack = stack().await;
    let answer = stack.answer(&call("GET", routes::READ_OPENAPI.path, "")).await;
    assert_eq!((answer.status, answer.headers["content-type"].as_str()), (200, "application/json"));
    let file = std::fs::read_to_string(root().join("openapi.json")).unwrap();
    let server = |url: &str| format!("\"url\": \"{url}\"");
    // Without `assert_eq`, which would print both documents.
    assert!(answer.body == file.replacen(&server("/"), &server(&stack.url), 1), "another document is served");
    assert!(answer.body != file, "the document names no server");
}

#[test]
fn the_document_is_up_to_date() {
    generated("openapi.json", &(serde_json::to_string_pretty(&*DOCUMENT).unwrap() + "\n"));
}

#[test]
fn every_example_of_the_document_matches_its_schema() {
    let mut compared = 0;
    for (path, operations) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let mut contents = vec!["requestBody".to_owned()];
            contents
                .extend(operation["responses"].as_object().unwrap().keys().map(|status| format!("responses/{status}")));
            for place in contents {
                let pointer = format!("/paths/{}/{method}/{place}/content/application~1json", escaped(path));
                let Some(content) = DOCUMENT.pointer(&pointer) else { continue };
                for (case, example) in content["examples"].as_object().into_iter().flatten() {
                    // A request may have more than is documented.
                    compare(&format!("{pointer}/schema"), &example["value"], &format!("{method} {path} {case}"));
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > routes::ALL.len(), "{compared}");
}

#[test]
fn the_document_has_each_operation_once_and_no_unused_schema() {
    let operations: Vec<&str> = DOCUMENT["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|operations| operations.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let names = routes::ALL.iter().chain(routes::SIGNED).flat_map(|route| {
        let aliases = route.aliases.iter().map(|path| alias_name(route, path));
        [route.name.to_owned()].into_iter().chain(aliases)
    });
    let known: BTreeSet<String> = names.map(|name| operation_id(&name)).collect();
    assert_eq!(operations.len(), known.len());
    assert_eq!(operations.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), known);
    let text = DOCUMENT.to_string();
    for name in DOCUMENT["components"]["schemas"].as_object().unwrap().keys() {
        assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "{name} is used nowhere");
    }
    // A schema with a title should be a component, so a title here shows one that was inlined.
    assert!(!text.contains("\"title\":\"New") && !text.contains("$comment"));
}

#[test]
fn the_collections_have_the_recorded_request_of_every_operation() {
    let collections = Collections::read(&root()).unwrap();
    generated("clients/api.http", &collections.http());
    let files = collections.bruno();
    for (path, text) in &files {
        generated(&format!("{BRUNO}/{path}"), text);
    }
    let folders = names_in(BRUNO).into_iter().filter(|name| root().join(BRUNO).join(name).is_dir());
    let names = folders.flat_map(|folder| {
        names_in(&format!("{BRUNO}/{folder}")).into_iter().map(move |name| format!("{folder}/{name}"))
    });
    let left: Vec<String> = names.filter(|path| !files.contains_key(path)).collect();
    assert_eq!(left, Vec::<String>::new(), "these files belong to no operation");
}

/// The fewest words of a description: fewer do not say what something is for.
const FEWEST_WORDS: usize = 5;

#[test]
fn every_tag_operation_and_event_has_a_description_of_its_own() {
    let operations = |part: &str| {
        let operations =
            DOCUMENT[part].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
        operations.map(|one| (&one["operationId"], &one["description"])).collect::<Vec<_>>()
    };
    let tags = DOCUMENT["tags"].as_array().unwrap().iter().map(|tag| (&tag["name"], &tag["description"]));
    let mut known = BTreeSet::new();
    for (name, description) in tags.chain(operations("paths")).chain(operations("webhooks")) {
        let says = description.as_str().unwrap();
        assert!(says.split(' ').count() >= FEWEST_WORDS, "{name} says too little: {says}");
        assert!(says.ends_with('.') && !says.starts_with(|first: char| first.is_lowercase()), "{name}: {says}");
        assert!(known.insert(says), "{name} says the same as another one: {says}");
    }
    let few = known.iter().filter(|says| says.split(' ').count() < 2 * FEWEST_WORDS).count();
    assert!(few * 5 < known.len(), "{few} of {} descriptions are very short", known.len());
}

#[test]
fn every_summary_reads_like_english() {
    let mut known = BTreeSet::new();
    for operation in DOCUMENT["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values())
    {
        let summary = operation["summary"].as_str().unwrap();
        assert!(known.insert(summary), "two operations are called {summary}");
        let words: Vec<&str> = summary.split(' ').collect();
        assert!(summary.starts_with(char::is_uppercase) && !summary.ends_with('.'), "{summary}");
        // A single record has an article; records and their fields have none.
        let last = words.iter().take_while(|word| **word != "at").last().unwrap();
        let has_article = words.iter().any(|word| ["a", "an", "the"].contains(word));
        assert!(has_article || last.ends_with('s') || *last == "usage", "{summary}");
    }
}

#[test]
fn the_names_of_the_clients_are_up_to_date() {
    generated(client_names::FILE, &client_names::file());
}

#[test]
fn the_packages_of_the_clients_have_the_version_of_the_service() {
    for (file, key) in
        [("clients/typescript/package.json", "\"version\": "), ("clients/python/pyproject.toml", "version = ")]
    {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let wanted = format!("{key}\"{}\"", env!("CARGO_PKG_VERSION"));
        assert!(text.contains(&wanted), "{file} has another version than Cargo.toml: {wanted}");
    }
}

#[test]
fn fields_that_nothing_sets_are_documented_as_constants() {
    let user = &DOCUMENT["components"]["schemas"]["User"]["properties"];
    for (name, value) in [("is_superuser", json!(false)), ("follower_count", json!(0)), ("following_count", json!(0))] {
        assert_eq!(user[name]["const"], value, "{name}");
        assert!(user[name]["description"].as_str().unwrap().starts_with("Always "), "{name}");
    }
}
