//! Tests that every port of `cargo local` refuses pages of other sites, before a request has an effect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use local::database::TABLE_NAME;
use local::{Settings, Stack, database};
use repository::root;
use reqwest::header::HeaderMap;
use rustls::RootCertStore;
use serde_json::{Value, json};
use shared::routes;
use shared::runtime::http_client;
use shared::values::time::Clock;

use crate::support::fixture::{ACME, everything, http_client as client, id, kind, path, settings, stack, streaming};
use crate::support::records::ACME_ORG;

const EVIL: &str = "https://evil.example";
/// The answer of the guard. An unsigned request for an object of S3 is answered 403 too, and in XML.
const REFUSED: (u16, bool) = (403, true);

/// A request to a port, and the status of its answer.
struct PortRequest {
    method: &'static str,
    /// The address of the port.
    url: String,
    path: String,
    headers: &'static [(&'static str, &'static str)],
    body: String,
    status: u16,
}

/// Status, headers, and whether the guard has refused it: only the guard answers with one `error` and this status.
async fn ask(asked: &PortRequest, method: &str, headers: &[(&str, &str)]) -> ((u16, bool), HeaderMap) {
    let address = format!("{}{}", asked.url, asked.path);
    let request = client().request(method.parse().unwrap(), address);
    let all = asked.headers.iter().chain(headers);
    let request = all.fold(request, |request, (name, value)| request.header(*name, *value));
    let answer = request.body(asked.body.clone()).send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let body: Value = answer.json().await.unwrap_or_default();
    ((status, status == 403 && body["error"].is_string()), headers)
}

/// A request for every kind of route of every port. Each of them works without further headers.
fn every_port(stack: &Stack) -> Vec<PortRequest> {
    let asked = |method, url: &str, path: &str, headers, body: Value, status| PortRequest {
        method,
        url: url.to_owned(),
        path: path.to_owned(),
        headers,
        body: if body.is_null() { String::new() } else { body.to_string() },
        status,
    };
    let (api, dynamodb, s3, kms) = (&stack.url, &stack.dynamodb_url, &stack.s3_url, &stack.kms_url);
    let provider = &stack.payment_url;
    let key = format!("?api_key={ACME}");
    let invocations = "/2015-03-31/functions/IssueApiKeyFunction/invocations";
    let calls = &[("x-amz-target", "DynamoDB_20120810.PutItem"), ("content-type", "application/x-amz-json-1.0")];
    let item = json!({"TableName": TABLE_NAME, "Item": {"pk": {"S": "KEY#page"}, "sk": {"S": "KEY"}}});
    let data_key = json!({"KeyId": local::kms::KEY, "EncryptionContext": {"organisation": ACME_ORG}});
    vec![
        asked("GET", api, &(routes::LIST_TAGS.path.to_owned() + &key), &[], Value::Null, 200),
        asked("POST", api, &(routes::CREATE_TAG.path.to_owned() + &key), &[], json!({"name": "page"}), 201),
        asked("POST", api, invocations, &[], json!({"org_id": ACME_ORG, "name": "page"}), 200),
        asked("GET", api, "/", &[], Value::Null, 200),
        asked("POST", api, "/console/time", &[], json!({"seconds": 1}), 200),
        asked("PUT", api, "/inbox/answers", &[], json!({"count": 1}), 200),
        asked("POST", api, "/inbox/events/page", &[], json!({"page": 1}), 200),
        asked("GET", api, routes::READ_DOCS.path, &[], Value::Null, 200),
        asked("GET", api, "/no/such/path", &[], Value::Null, 404),
        asked("POST", dynamodb, "/", calls, item, 200),
        asked("GET", s3, "/assistants-local-files/page", &[], Value::Null, 403),
        asked("PUT", s3, "/assistants-local-files/page", &[], json!({}), 403),
        asked("POST", kms, "/", &[("x-amz-target", "TrentService.GenerateDataKey")], data_key, 200),
        asked("POST", provider, "/v1/webhook_endpoints", &[("authorization", "Bearer sk_1")], json!({}), 200),
        // No webhook wants this event.
        asked("POST", provider, "/send", &[], json!({"type": "invoice.paid"}), 409),
    ]
}

/// A stack whose clock can skip time.
async fn skipping() -> Stack {
    Stack::start(Settings { clock: Clock::Ahead(Arc::default()), ..settings() }).await.unwrap()
}

/// What a page could change: the table, the requests of the provider, the events of the inbox, and the journal.
async fn state(stack: &Stack) -> (Vec<BTreeMap<String, AttributeValue>>, usize, usize, usize) {
    let received = stack.inbox.newest(usize::MAX).len();
    (everything(stack).await, stack.payment_provider.requests(), received, stack.journal.newest(1).len())
}

#[tokio::test]
async fn no_port_answers_a_foreign_host_or_a_foreign_origin() {
    let stack = skipping().await;
    let before = state(&stack).await;
    for asked in every_port(&stack) {
        let port = asked.url.rsplit(':').next().unwrap();
        let hosts = ["evil.example", "127.0.0.1.evil.example", "192.168.0.2"].map(|host| format!("{host}:{port}"));
        let (rebound, neighbour) = (format!("http://{}", hosts[0]), "http://127.0.0.1:1".to_owned());
        let mut cases: Vec<Vec<(&str, &str)>> = hosts.iter().map(|host| vec![("host", host.as_str())]).collect();
        cases.extend([EVIL, "null", "", &neighbour, &rebound].map(|origin| vec![("origin", origin)]));
        cases.push(vec![("host", &hosts[0]), ("origin", &rebound)]);
        cases.extend(["cross-site", "same-site"].map(|site| vec![("sec-fetch-site", site)]));
        for headers in cases {
            // `no-cors` requests and simple forms come without a preflight.
            for kind in [asked.headers, &[("content-type", "text/plain")]] {
                let simple = PortRequest {
                    headers: kind,
                    body: asked.body.clone(),
                    path: asked.path.clone(),
                    url: asked.url.clone(),
                    ..asked
                };
                let (answered, answer) = ask(&simple, asked.method, &headers).await;
                assert_eq!(answered, REFUSED, "{} {} {headers:?}", asked.method, asked.path);
                assert!(answer.keys().all(|name| !name.as_str().starts_with("access-control")), "{answer:?}");
            }
        }
        let wanted = [("origin", EVIL), ("access-control-request-method", asked.method)];
        let (answered, answer) = ask(&asked, "OPTIONS", &wanted).await;
        assert_eq!(answered, REFUSED, "preflight of {}", asked.path);
        assert!(answer.keys().all(|name| !name.as_str().starts_with("access-control")), "{answer:?}");
    }
    assert_eq!(state(&stack).await, before);
}

#[tokio::test]
async fn every_port_answers_programs_and_its_own_pages() {
    let stack = skipping().await;
    for asked in every_port(&stack) {
        let port = asked.url.rsplit(':').next().unwrap();
        let hosts = ["localhost", "127.0.0.1", "127.0.0.2", "[::1]", "host.docker.internal"];
        for host in hosts.map(|host| format!("{host}:{port}")) {
            let own = format!("http://{host}");
            for headers in [vec![], vec![("origin", own.as_str())], vec![("sec-fetch-site", "same-origin")]] {
                let headers: Vec<_> = headers.into_iter().chain([("host", host.as_str())]).collect();
                let (answered, answer) = ask(&asked, asked.method, &headers).await;
                assert_eq!(answered, (asked.status, false), "{} {} {headers:?}", asked.method, asked.path);
                assert!(answer.keys().all(|name| !name.as_str().starts_with("access-control")), "{answer:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_link_of_another_site_opens_pages_and_calls_nothing() {
    let stack = stack().await;
    let setup = path(&routes::SETUP_PAYMENT_WEBHOOK, |_| id('a', kind::AGENCY, 1)) + "?api_key=" + ACME;
    let before = state(&stack).await;
    let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    let frame = [link[0], link[1], ("sec-fetch-dest", "iframe")];
    let image = [link[0], ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")];
    let get = |path: &str| PortRequest {
        method: "GET",
        url: stack.url.clone(),
        path: path.to_owned(),
        headers: &[],
        body: String::new(),
        status: 200,
    };
    for page in ["/", routes::READ_DOCS.path, routes::READ_OPENAPI.path] {
        assert_eq!(ask(&get(page), "GET", &link).await.0, (200, false), "{page}");
        assert_eq!(ask(&get(page), "GET", &frame).await.0, REFUSED, "{page}");
    }
    for headers in [link, frame, image] {
        assert_eq!(ask(&get(&setup), "GET", &headers).await.0, REFUSED, "{headers:?}");
    }
    let invocation = get("/2015-03-31/functions/SendCampaignsFunction/invocations");
    assert_eq!(ask(&invocation, "GET", &link).await.0, (405, false));
    assert_eq!(ask(&get("/"), "POST", &link).await.0, REFUSED);
    let after = state(&stack).await;
    assert_eq!((after.0, after.1), (before.0, before.1));
}

#[tokio::test]
async fn the_allowed_origin_may_call_the_api_and_nothing_else() {
    let origin = "http://localhost:5173";
    let stack = Stack::start(Settings { cors_allow_origin: Some(origin.to_owned()), ..settings() }).await.unwrap();
    let template = std::fs::read_to_string(root().join("template.yaml")).unwrap();
    for asked in every_port(&stack) {
        let allowed = asked.path.starts_with("/api/");
        let (answered, answer) = ask(&asked, asked.method, &[("origin", origin)]).await;
        assert_eq!(answered, if allowed { (asked.status, false) } else { REFUSED }, "{}", asked.path);
        assert_eq!(answer.get("access-control-allow-origin").is_some_and(|value| value == origin), allowed);
        let wanted = [("origin", origin), ("access-control-request-method", asked.method)];
        let (answered, answer) = ask(&asked, "OPTIONS", &wanted).await;
        assert_eq!(answered, if allowed { (200, false) } else { REFUSED }, "preflight of {}", asked.path);
        for name in ["access-control-allow-headers", "access-control-allow-methods", "access-control-max-age"] {
            let value = answer.get(name).map(|value| value.to_str().unwrap());
            assert_eq!(value.is_some_and(|value| template.contains(&format!("\"'{value}'\""))), allowed, "{name}");
        }
        assert_eq!(ask(&asked, asked.method, &[("origin", EVIL)]).await.0, REFUSED, "{}", asked.path);
    }
}

#[tokio::test]
async fn the_sdk_calls_the_database_at_its_port() {
    let stack = Stack::start(streaming()).await.unwrap();
    let http = http_client::client(http_client::connector(RootCertStore::empty()));
    let client = database::client(&stack.dynamodb_url, http, Duration::from_secs(30));
    let tables = client.list_tables().send().await.unwrap();
    assert_eq!(tables.table_names(), [TABLE_NAME]);
    let table = client.describe_table().table_name(TABLE_NAME).send().await.unwrap().table.unwrap();
    assert_eq!(table.global_secondary_indexes().len(), 1);
    let key = |name: &str| AttributeValue::S(name.to_owned());
    let put = client.put_item().table_name(TABLE_NAME).item("pk", key("A")).item("sk", key("B"));
    put.clone().send().await.unwrap();
    let read = client.get_item().table_name(TABLE_NAME).key("pk", key("A")).key("sk", key("B"));
    assert_eq!(read.send().await.unwrap().item.unwrap().len(), 2);
    let again = put.condition_expression("attribute_not_exists(pk)").send().await.unwrap_err().into_service_error();
    assert!(again.is_conditional_check_failed_exception(), "{again:?}");
}
