//! `POST /api/v1/suppression/import`: creates up to 500 suppressions.

use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, data, failure, get, post, stack};

const PATH: &str = "/api/v1/suppression";

async fn import(stack: &Stack, suppressions: Value) -> Answer {
    stack.answer(&post(&format!("{PATH}/import"), ACME, json!({"suppressions": suppressions}).to_string())).await
}

/// The outcomes of an import.
fn outcomes(answer: &Answer) -> Vec<String> {
    let items = data(answer)["items"].as_array().unwrap().clone();
    assert!(items.iter().enumerate().all(|(place, item)| item["index"] == place));
    items.iter().map(|item| item["outcome"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_succeeds_or_fails_by_itself() {
    let stack = stack().await;
    let wanted = json!([
        {"phone_number": "+49 151 2345678", "channel": "call"},
        {"phone_number": "0151"},
        {"phone_number": "+491512345678", "channel": "message", "reason": "By letter"},
        {"email": "gone@ACME.example"},
        {"email": "ada@example.com", "phone_number": "+491512345679"},
        "nothing",
        {"email": "ada@example.com", "org_id": "01900000-0000-7000-8000-b00000000001"},
    ]);
    let first = import(&stack, wanted.clone()).await;
    assert_eq!(first.status, 200);
    assert_eq!(outcomes(&first), ["created", "failed", "updated", "updated", "failed", "failed", "failed"]);
    let items = data(&first)["items"].clone();
    assert_eq!(items[0]["id"], items[2]["id"], "the same number has one suppression");
    assert_eq!(items[4]["issues"][0]["loc"], json!(["body", "suppressions", 4, "email"]));
    let made = get(&stack, &format!("{PATH}/{}", items[0]["id"].as_str().unwrap())).await;
    assert_eq!((&made["channel"], &made["reason"]), (&json!("all"), &json!("By letter")));
    let widened = get(&stack, &format!("{PATH}?email=gone@acme.example")).await;
    assert_eq!(widened["items"][0]["channel"], "all");

    let before = get(&stack, PATH).await;
    let again = import(&stack, wanted).await;
    assert_eq!(outcomes(&again)[0], "updated");
    assert_eq!(get(&stack, PATH).await, before, "a repeat changes nothing");
}

#[tokio::test]
async fn five_hundred_are_imported_and_more_are_refused() {
    let stack = stack().await;
    let numbers = |count: usize| (0..count).map(|n| json!({"phone_number": format!("+4915{n:08}")})).collect();
    let most = import(&stack, numbers(500)).await;
    assert!(outcomes(&most).iter().all(|outcome| outcome == "created"));
    assert_eq!(get(&stack, PATH).await["total"], 502);
    for count in [0, 501] {
        assert_eq!(failure(&import(&stack, numbers(count)).await).0, 422);
    }
}
