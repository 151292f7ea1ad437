//! The console of `cargo local`, over HTTP: it shows what happened as text, and shows it to no page of another host.

use local::Stack;
use serde_json::json;

use crate::fixture::{ACME, http_client, streaming};

const HOSTILE: &str = "<script>alert(1)</script>";

async fn text(stack: &Stack, path: &str) -> String {
    let answer = http_client().get(format!("{}{path}", stack.url)).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    let policy = answer.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    answer.text().await.unwrap()
}

#[tokio::test]
async fn requests_are_shown_with_their_issues_and_without_their_queries() {
    let stack = Stack::start(streaming()).await.unwrap();
    assert!(text(&stack, "/").await.contains("None yet."));
    let tag = format!("{}/api/v1/tag?api_key={ACME}", stack.url);
    let wrong = http_client().post(&tag).json(&json!({"name": 1})).send().await.unwrap();
    assert_eq!(wrong.status(), 422);
    let made = http_client().post(&tag).json(&json!({"name": HOSTILE})).send().await.unwrap();
    assert_eq!(made.status(), 201);
    for path in ["/", "/console/requests"] {
        let shown = text(&stack, path).await;
        assert_eq!(shown.matches("POST /api/v1/tag").count(), 2, "{shown}");
        assert!(shown.contains("Input should be a valid string") && shown.contains(">422<"), "{shown}");
        assert!(!shown.contains(ACME) && !shown.contains("api_key="), "{shown}");
    }
}

#[tokio::test]
async fn what_an_event_says_is_text() {
    let stack = Stack::start(streaming()).await.unwrap();
    let event = json!({"event": HOSTILE, "data": HOSTILE});
    let to = format!("{}/inbox/events/%3Cscript%3E", stack.url);
    http_client().post(to).header("x-from", HOSTILE).json(&event).send().await.unwrap().error_for_status().unwrap();
    for path in ["/", "/console/events"] {
        let shown = text(&stack, path).await;
        assert_eq!(shown.matches("&lt;script&gt;").count(), 5, "{shown}");
        assert_eq!(shown.matches("<script").count(), usize::from(path == "/"), "{shown}");
    }
}

#[tokio::test]
async fn a_page_of_another_host_sees_nothing_of_it() {
    let stack = Stack::start(streaming()).await.unwrap();
    for path in ["/", "/console/requests", "/console/events", "/console/changes", "/inbox", "/inbox/answers"] {
        for (name, value) in [("host", "rebound.example"), ("origin", "http://page.example"), ("origin", "null")] {
            let request = http_client().get(format!("{}{path}", stack.url)).header(name, value);
            assert_eq!(request.send().await.unwrap().status(), 403, "{path} {name}");
        }
    }
}

#[tokio::test]
async fn each_change_is_told_and_the_first_one_at_once() {
    let stack = Stack::start(streaming()).await.unwrap();
    let mut changes = http_client().get(format!("{}/console/changes", stack.url)).send().await.unwrap();
    let mut told = String::new();
    for _ in 0..3 {
        let before = told.matches("data: ").count();
        while told.matches("data: ").count() == before {
            told += std::str::from_utf8(&changes.chunk().await.unwrap().unwrap()).unwrap();
        }
        http_client().get(format!("{}/api/v1/nothing", stack.url)).send().await.unwrap();
    }
    assert!(told.starts_with("data: 0\n\ndata: 1\n\n"), "{told}");
}
