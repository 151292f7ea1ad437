//! `POST /api/v1/datasource/{datasource_id}/text_blob`: stores the text of the body as a new file.

use local::Stack;
use local::faults::{Fault, Faults};
use local::http::Call;
use serde_json::{Value, json};
use shared::routes::{ADD_DATASOURCE_TEXT_BLOB, LIST_DATASOURCE_FILES};

use crate::support::fixture::{
    ACME, data, everything, failure, get, send, settings, stack, stack_of_today, valid_call,
};
use crate::support::records::{ACME_ORG, TEST_TIME};

const LARGEST: usize = 1_048_576;

fn add(query: &str, body: &str) -> Call {
    let call = valid_call(&ADD_DATASOURCE_TEXT_BLOB, 'a', ACME);
    Call { query: call.query + query, body: body.into(), ..call }
}

async fn files(stack: &Stack) -> u64 {
    data(&stack.answer(&valid_call(&LIST_DATASOURCE_FILES, 'a', ACME)).await)["total"].as_u64().unwrap()
}

#[tokio::test]
async fn stores_the_text_as_a_downloadable_file() {
    let (stack, _) = stack_of_today(settings()).await;
    let query = format!("&ds_type=text_image&name=Menu&description=Of%20today&org_id={ACME_ORG}");
    let text = "Crème brûlée \u{1f36e}\n\"\u{0}";
    let file = data(&stack.answer(&add(&query, &json!({"content": text}).to_string())).await);
    for (field, wanted) in [
        ("name", json!("Menu")),
        ("description", json!("Of today")),
        ("ds_type", json!("text_image")),
        ("size_bytes", json!(text.len())),
        ("uploaded", json!(true)),
        ("org_id", json!(ACME_ORG)),
    ] {
        assert_eq!(file[field], wanted, "{field}");
    }
    let path = format!("/api/v1/datasource/datasourcefile/{}", file["id"].as_str().unwrap());
    let read = get(&stack, &path).await;
    assert_eq!(read["uploaded"], true);
    let (status, kind, bytes) = send("GET", read["download_url"].as_str().unwrap(), &json!({}), b"").await;
    assert_eq!((status, kind.as_str(), bytes.as_slice()), (200, "text/plain; charset=utf-8", text.as_bytes()));
}

#[tokio::test]
async fn a_request_without_a_query_makes_an_unnamed_text_blob() {
    let stack = stack().await;
    let mut file = data(&stack.answer(&add("", r#"{"content":"x"}"#)).await);
    file["id"] = Value::Null;
    let wanted = json!({
        "id": null,
        "datasource_id": "01900000-0000-7000-8000-a00400000001",
        "name": null,
        "description": null,
        "ds_type": "text_blob",
        "size_bytes": 1,
        "uploaded_at": null,
        "attributes": {},
        "org_id": ACME_ORG,
        "created_at": TEST_TIME,
        "updated_at": TEST_TIME,
        "uploaded": true,
    });
    assert_eq!(file, wanted);
}

#[tokio::test]
async fn accepts_the_largest_text_in_any_encoding_and_refuses_more() {
    let stack = stack().await;
    // One to four bytes of the text, in several encodings of JSON.
    for (written, bytes) in [("x", 1), ("\\n", 1), ("é", 2), ("\\u0434", 2), ("\\u20ac", 3), ("\\ud83d\\ude00", 4)] {
        let body = |count: usize| format!(r#"{{"content":"{}"}}"#, written.repeat(count));
        let answer = stack.answer(&add("", &body(LARGEST / bytes))).await;
        assert_eq!(data(&answer)["size_bytes"], LARGEST / bytes * bytes, "{written}");
        let refused = (422, vec![r#"["body","content"] string_too_long"#.to_owned()]);
        assert_eq!(failure(&stack.answer(&add("", &body(LARGEST / bytes + 1))).await), refused, "{written}");
    }
}

#[tokio::test]
async fn refuses_an_invalid_text_and_stores_nothing() {
    let stack = stack().await;
    let before = everything(&stack).await;
    let other = "&org_id=01900000-0000-7000-8000-b00000000001";
    for (query, body, wanted) in [
        ("", "{}", (422, r#"["body","content"] missing"#)),
        ("", r#"{"content":""}"#, (422, r#"["body","content"] string_too_short"#)),
        ("", r#"{"content":null}"#, (422, r#"["body","content"] string_type"#)),
        ("", r#"{"content":"\ud800"}"#, (422, r#"["body","content"] string_unicode"#)),
        ("&ds_type=x", r#"{"content":"x"}"#, (422, r#"["query","ds_type"] enum"#)),
        ("&org_id=x", r#"{"content":"x"}"#, (422, r#"["query","org_id"] uuid_parsing"#)),
        (other, r#"{"content":"x"}"#, (403, r#"["query","org_id"] forbidden"#)),
    ] {
        let answer = failure(&stack.answer(&add(query, body)).await);
        assert_eq!(answer, (wanted.0, vec![wanted.1.to_owned()]), "{query} {body}");
    }
    assert_eq!(everything(&stack).await, before);
    assert_eq!(stack.objects.objects().unwrap(), []);
}

#[tokio::test]
async fn a_repeat_after_a_crash_or_a_failure_of_the_bucket_leaves_one_file() {
    for fault in [Fault::LoseRequest, Fault::LoseAnswer, Fault::Throttle] {
        let faults = Faults::default();
        let (stack, clock) = stack_of_today(local::Settings { faults: faults.clone(), ..settings() }).await;
        let before = files(&stack).await;
        let headers = [("idempotency-key".to_owned(), "again".to_owned())].into();
        let call = Call { headers, ..add("", r#"{"content":"Once"}"#) };
        faults.plan(move |action, _| if action == "PutObject" { fault } else { Fault::None });
        if fault == Fault::Throttle {
            assert_eq!(failure(&stack.answer(&call).await), (503, vec!["[] unavailable".into()]));
            assert_eq!(stack.objects.objects().unwrap(), []);
        } else {
            // The claim of a crashed request expires after 30 seconds.
            assert!(faults.kill(stack.answer(&call)).await, "{fault:?}");
            clock.set(clock.now().plus_seconds(30));
        }
        faults.end();
        let file = data(&stack.answer(&call).await);
        assert_eq!(file["uploaded"], true, "{fault:?}");
        let key = format!("{ACME_ORG}/{}", file["id"].as_str().unwrap());
        assert_eq!(stack.objects.objects().unwrap(), [(key, b"Once".to_vec())], "{fault:?}");
        assert_eq!(files(&stack).await, before + 1, "{fault:?}");
    }
}
