//! The addresses of webhooks and connectors: every operation refuses the same ones, and a read-only key sees no query.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use local::functions::{OPERATIONS, describe};
use local::http::Call;
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::network::address::Reach;
use shared::network::{Lookup, Network};
use shared::records::webhook::Webhook;
use shared::request::http::HttpRequest;
use shared::request::route::Access;
use shared::routes;
use shared::values::id::WebhookId;
use uuid::Uuid;

use crate::support::fixture::{
    ACME, ACME_READ_ONLY, acme, call, data, fields, id, kind, post, settings, stack, streaming, valid_body, valid_call,
};
use crate::support::records::{changes, detail, items, nothing, wrong};

/// The gateway's own name for the API of the local stack, whose id is `local`.
const GATEWAY: &str = "local.execute-api.eu-central-1.amazonaws.com";

/// A name service with some names.
#[derive(Debug)]
struct Names;

impl Lookup for Names {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let addresses: &[&str] = match host {
            "public.example" => &["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
            // A custom domain of the API, its gateway, and the gateway of another API.
            "api.example" | "localhost" | GATEWAY | "other.execute-api.eu-central-1.amazonaws.com" => {
                &["93.184.215.14"]
            }
            "private.example" => &["10.0.0.1"],
            "mixed.example" => &["93.184.215.14", "127.0.0.1"],
            _ => return Box::pin(ready(Err(io::Error::other("no such name")))),
        };
        Box::pin(ready(Ok(addresses.iter().map(|address| address.parse().unwrap()).collect())))
    }
}

/// A stack whose events have this `reach`.
async fn reaching(reach: Reach) -> Stack {
    let network = Network::new(reach, Arc::new(Names), Duration::from_secs(1));
    Stack::start(Settings { network, ..settings() }).await.unwrap()
}

/// The addresses that a deployed service refuses, with the type and the message of each refusal.
fn refused() -> Vec<(String, &'static str, &'static str)> {
    const TEXT: &str = "Input should be a valid URL, without white space, control characters and backslashes";
    const RELATIVE: &str = "Input should be a valid URL, relative URL without a base";
    const SCHEME: (&str, &str) = ("url_scheme", "URL scheme should be 'https'");
    const USER: (&str, &str) = ("value_error", "URL should have no user name and no password");
    const NAME: (&str, &str) = ("value_error", "URL should have a host that can be resolved");
    const PRIVATE: (&str, &str) = ("value_error", "URL should lead to a public address");
    const OWN: (&str, &str) = ("value_error", "URL should lead to a server of yours, and not to this API");
    let gateway = format!("https://{GATEWAY}/prod/api/v1/tag?api_key=x");
    let long = format!("https://93.184.215.14/{}", "x".repeat(2048));
    [
        (long.as_str(), ("url_too_long", "URL should have at most 2048 characters")),
        ("https://93.184.215.14/a b", ("url_parsing", TEXT)),
        ("https:\\\\93.184.215.14", ("url_parsing", TEXT)),
        ("", ("url_parsing", RELATIVE)),
        ("/hooks", ("url_parsing", RELATIVE)),
        ("http://93.184.215.14/hooks", SCHEME),
        ("http://127.0.0.1/hooks", SCHEME),
        ("ftp://93.184.215.14/hooks", SCHEME),
        ("https://me@93.184.215.14/", USER),
        ("https://:secret@public.example/", USER),
        ("https://127.0.0.1/", PRIVATE),
        ("https://2130706433/", PRIVATE),
        ("https://[::1]/", PRIVATE),
        ("https://10.0.0.1/", PRIVATE),
        ("https://169.254.169.254/latest", PRIVATE),
        ("https://[::ffff:93.184.215.14]/", PRIVATE),
        ("https://private.example/", PRIVATE),
        ("https://mixed.example/", PRIVATE),
        ("https://unknown.example/", NAME),
        // The host of the request, and the gateway's own name.
        ("https://localhost/api/v1/outbound_webhook", OWN),
        ("https://LOCALHOST./", OWN),
        (gateway.as_str(), OWN),
    ]
    .map(|(address, (kind, msg))| (address.to_owned(), kind, msg))
    .into()
}

#[tokio::test]
async fn every_operation_refuses_addresses_that_are_not_public_https() {
    let mut given = Vec::new();
    for route in routes::ALL.iter().filter(|route| describe(route.name).body.is_some()) {
        let names: Vec<String> = fields(route).into_iter().map(|(name, _)| name).collect();
        let Some(field) =
            ["endpoint", "connector_url"].into_iter().find(|field| names.iter().any(|name| name == field))
        else {
            continue;
        };
        let stack = reaching(Reach::Public).await;
        let before = items(&stack).await;
        let with = |address: &str| {
            let mut body: Value = serde_json::from_str(&valid_body(route, 'a')).unwrap();
            body[field] = address.into();
            Call { body: body.to_string().into(), ..valid_call(route, 'a', ACME) }
        };
        // A webhook without an address is a subscription that is only read.
        let is_refused = |address: &str| field != "endpoint" || !address.is_empty();
        for (address, kind, msg) in refused().into_iter().filter(|(address, ..)| is_refused(address)) {
            let answer = stack.answer(&with(&address)).await;
            assert_eq!(detail(&answer), wrong(field, kind, msg), "{} {address}", route.name);
        }
        assert_eq!(changes(&stack, &before).await, nothing(), "{}", route.name);
        for address in [
            "https://public.example/hooks?a=1#b",
            "https://93.184.215.14:8443",
            "HTTPS://Public.example",
            "https://other.execute-api.eu-central-1.amazonaws.com/hooks",
        ] {
            assert_eq!(data(&stack.answer(&with(address)).await)[field], address, "{}", route.name);
        }
        given.push(route.name);
    }
    assert_eq!(given, ["create-webhook", "update-webhook", "create-widget", "update-widget"]);
}

#[tokio::test]
async fn loopback_reach_also_accepts_addresses_of_the_machine() {
    let stack = reaching(Reach::Loopback).await;
    let create = async |address: &str| {
        stack.answer(&post("/api/v1/outbound_webhook", ACME, json!({"endpoint": address}).to_string())).await
    };
    for address in ["http://127.0.0.1:9/hooks", "http://[::1]/", "https://127.0.0.1", "https://mixed.example/"] {
        assert_eq!(create(address).await.status, 201, "{address}");
    }
    let private = wrong("endpoint", "value_error", "URL should lead to a public address");
    for address in ["https://10.0.0.1/", "http://private.example/"] {
        assert_eq!(detail(&create(address).await), private, "{address}");
    }
}

#[tokio::test]
async fn the_configured_address_of_the_api_is_refused() {
    let stack = reaching(Reach::Public).await;
    let mut service = stack.gateway.service.in_another_process();
    service.network = service.network.of_service(Some("https://api.example/base"));
    let create = async |address: &str| {
        let call = post("/api/v1/outbound_webhook", ACME, json!({"endpoint": address}).to_string());
        let event = serde_json::from_value(stack.gateway.event(&call, "r")).unwrap();
        let operation = OPERATIONS.iter().find(|operation| operation.handler.route.name == "create-webhook").unwrap();
        let answer = operation.handler.answer(&service, &HttpRequest::from_event(event, "")).await;
        (answer.status_code, answer.body.contains("not to this API"))
    };
    assert_eq!(create("https://api.example/hooks").await, (422, true));
    assert_eq!(create("https://public.example/hooks").await, (201, false));
}

#[tokio::test]
async fn the_local_api_is_refused_but_its_inbox_is_not() {
    let stack = stack().await;
    let create = async |path: &str| {
        let endpoint = format!("{}{path}", stack.url);
        stack.answer(&post("/api/v1/outbound_webhook", ACME, json!({"endpoint": endpoint}).to_string())).await
    };
    let own = wrong("endpoint", "value_error", "URL should lead to a server of yours, and not to this API");
    assert_eq!(detail(&create("/api/v1/tag?api_key=x").await), own);
    assert_eq!(create("/inbox/events").await.status, 201);
}

#[tokio::test]
async fn no_attempt_is_made_to_an_older_webhook_at_the_api() {
    let stack = Stack::start(streaming()).await.unwrap();
    let webhook = WebhookId(id('a', kind::WEBHOOK, 1).parse().unwrap());
    // It was stored before its address was refused.
    let tags = format!("{}/api/v1/tag?api_key={ACME}", stack.url);
    let point = |webhook: &mut Webhook| webhook.endpoint = tags.clone();
    acme(&stack).change(webhook, Uuid::max(), point).await.unwrap();
    let path = format!("/api/v1/outbound_webhook/{webhook}");
    data(&stack.answer(&post(&format!("{path}/test"), ACME, "")).await);
    stack.settle().await.unwrap();
    let logs = data(&stack.answer(&call("GET", &format!("{path}/logs"), ACME)).await);
    let delivery = logs["items"].as_array().unwrap().last().unwrap();
    assert_eq!((&delivery["attempts"], &delivery["status"]), (&json!(1), &Value::Null), "{logs}");
    assert_eq!(delivery["error"], "address not allowed");
}

/// The beginning of the addresses of this test, and the rest, which a read-only key does not see.
const SHOWN: &str = "https://93.184.215.14/hooks?";
const HIDDEN: &str = "token=canary-of-the-query#canary";

#[tokio::test]
async fn a_read_only_key_sees_no_query_of_an_address() {
    let stack = stack().await;
    let address = format!("{SHOWN}{HIDDEN}");
    let masked = format!("{SHOWN}…");
    for (path, field) in [
        (format!("/api/v1/outbound_webhook/{}", id('a', kind::WEBHOOK, 1)), "endpoint"),
        (format!("/api/v1/widget/{}", id('a', kind::WIDGET, 1)), "connector_url"),
    ] {
        let put = async |sent: &str| {
            let body = json!({ field: sent }).to_string();
            data(&stack.answer(&Call { body: body.into(), ..call("PUT", &path, ACME) }).await)[field].clone()
        };
        let read = async |key: &str| data(&stack.answer(&call("GET", &path, key)).await)[field].clone();
        assert_eq!(put(&address).await, address);
        assert_eq!((read(ACME).await, read(ACME_READ_ONLY).await), (json!(address), json!(masked)));
        // What a read-only key has read, sent back with another key, changes nothing.
        assert_eq!(put(&masked).await, address);
        assert_eq!(put("https://93.184.215.14/other?…").await, "https://93.184.215.14/other?…");
        assert_eq!(put(&address).await, address);
    }
    // No operation shows it.
    let mut shown = Vec::new();
    for route in routes::ALL.iter().filter(|route| route.access == Access::Read) {
        let answer = stack.answer(&valid_call(route, 'a', ACME_READ_ONLY)).await;
        assert!(!answer.body.contains("canary"), "{}: {}", route.name, answer.body);
        shown.extend(answer.body.contains(&masked).then_some(route.name));
    }
    shown.sort_unstable();
    assert_eq!(shown, ["list-webhooks", "list-widgets", "read-webhook", "read-widget"]);
}
