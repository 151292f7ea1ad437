//! Reads the public documents and the page of the API.

use std::collections::BTreeMap;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use local::http::{Answer, Call};
use local::openapi::{KEY_SCHEME, VERSION};
use local::{Settings, Stack};
use repository::{read, root};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use shared::routes;

use crate::support::fixture::{ACME, settings, stack};

async fn get(stack: &Stack, path: &str, known: &str) -> Answer {
    let headers = BTreeMap::from([("if-none-match".to_owned(), known.to_owned())]);
    stack.answer(&Call { method: "GET".into(), path: path.into(), headers, ..Call::default() }).await
}

/// The page's program, as a browser unpacks it.
fn program(page: &str) -> String {
    let (_, rest) = page.split_once(r#"<script id="program" type="application/gzip">"#).unwrap();
    let packed = STANDARD.decode(rest.split_once('<').unwrap().0).unwrap();
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    text
}

async fn page(stack: &Stack) -> Answer {
    get(stack, routes::READ_DOCS.path, "").await
}

#[tokio::test]
async fn an_unchanged_document_is_answered_304() {
    let stack = stack().await;
    for route in routes::DOCUMENTS {
        let answer = get(&stack, route.path, "").await;
        assert_eq!(answer.status, 200, "{}", route.name);
        assert_eq!(answer.headers["cache-control"], "public, max-age=300");
        let etag = &answer.headers["etag"];
        for (known, status) in [(etag.clone(), 304), (format!("\"x\", W/{etag}"), 304), ("\"x\"".to_owned(), 200)] {
            let again = get(&stack, &format!("{}/", route.path), &known).await;
            assert_eq!(again.status, status, "{} {known}", route.name);
            assert_eq!(again.body, if status == 304 { "" } else { &answer.body });
            let headers = |answer: &Answer| {
                let headers = answer.headers.iter().filter(|(name, _)| *name != "x-request-id");
                headers.map(|(name, value)| (name.clone(), value.clone())).collect::<BTreeMap<_, _>>()
            };
            assert_eq!(headers(&again), headers(&answer));
            assert_ne!(again.headers["x-request-id"], answer.headers["x-request-id"]);
        }
    }
}

#[tokio::test]
async fn the_page_allows_only_its_own_scripts_and_host() {
    let answer = page(&stack().await).await;
    let script = |rest: &str| format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, rest.as_bytes())));
    let ends = answer.body.match_indices("</script>").count();
    let scripts: Vec<_> =
        answer.body.split("<script>").skip(1).map(|rest| rest.split_once("</script>").unwrap().0).collect();
    // The third one is no script, but the program as data.
    assert_eq!((scripts.len(), ends), (2, 3));
    let program = program(&answer.body);
    let hashes: Vec<_> = scripts.into_iter().chain([program.as_str()]).map(script).collect();
    let policy = format!(
        "default-src 'none'; base-uri 'none'; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; img-src 'self' data:; \
         style-src 'unsafe-inline'; script-src {}",
        hashes.join(" ")
    );
    let wanted = [
        ("content-security-policy", policy.as_str()),
        ("content-type", "text/html; charset=utf-8"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ];
    for (name, value) in wanted {
        assert_eq!(answer.headers[name], value);
    }
    assert!(program.len() > 1_000_000 && program.contains("createApiReference"), "the page is without Scalar");
    // A browser would change these characters before it hashes a script, or end the script there.
    assert!(!answer.body.contains('\r') && !answer.body.contains('\0') && !answer.body.contains("<!--"));
    assert_eq!(answer.body.to_lowercase().matches("<script").count(), 3);
}

#[test]
fn the_page_and_the_document_have_one_title_and_one_scheme() {
    let (page, document) = (read("functions/document/docs.html"), read("openapi.json"));
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["info"]["title"], routes::TITLE);
    assert_eq!(document["info"]["version"], VERSION);
    assert!(routes::ALL.iter().all(|route| route.path.starts_with(&format!("/api/{VERSION}/"))));
    assert!(page.contains(&format!("<title>{}</title>", routes::TITLE)));
    let scheme = &document["components"]["securitySchemes"][KEY_SCHEME];
    for (member, value) in [("type", "http"), ("scheme", "bearer"), ("bearerFormat", "API key")] {
        assert_eq!(scheme[member], value);
    }
    assert_eq!(page.matches(&format!("\"{KEY_SCHEME}\"")).count(), 2);
}

#[tokio::test]
async fn the_page_names_no_host() {
    let body = page(&stack().await).await.body;
    // Scalar's program, which is packed, names hosts of its own: `.ci/page` shows that it calls none of them.
    let (before, rest) = body.split_once(r#"type="application/gzip">"#).unwrap();
    let own = [before, rest.split_once('<').unwrap().1].concat();
    let named: Vec<_> =
        own.lines().filter(|line| line.contains("//") && !line.trim_start().starts_with("// ")).collect();
    assert!(named.is_empty(), "{named:?}");
    for setting in ["persistAuth: false", "proxyUrl: \"\"", "telemetry: false", "withDefaultFonts: false"] {
        assert!(own.contains(setting), "{setting}");
    }
}

#[tokio::test]
async fn the_page_has_only_the_key_of_the_demo_set() {
    let filled = |answer: &Answer| {
        let (_, rest) = answer.body.split_once("data-key=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    // A deployed service has no demo set either.
    let without = page(&stack().await).await;
    assert_eq!(filled(&without), "");
    assert!(!without.body.contains(ACME));
    let demo = Stack::start(Settings { demo: Some(root().join("local/demo.yaml")), ..settings() }).await.unwrap();
    assert_eq!(filled(&page(&demo).await), ACME);
    assert!(!read("functions/document/docs.html").contains("in-demo"));
}

#[tokio::test]
async fn the_page_is_small_whatever_its_reader_accepts() {
    let answer = page(&stack().await).await;
    let (sent, unpacked) = (serde_json::to_string(&answer.body).unwrap().len(), program(&answer.body).len());
    assert!(sent < unpacked / 2, "the function sends {sent} bytes for a program of {unpacked}");
    assert!(
        sent < 3_000_000,
        "the function sends {sent} bytes to anybody who asks: see docs/adr/0024-the-page-of-the-api.md"
    );
}
