//! Tests of what follows when the bytes of a file arrive: the time in the file, and the event.

use local::Stack;
use local::faults::Fault;
use serde_json::{Value, json};

use crate::support::fixture::{
    ACME, call, data, demo_id, everything, get, post, send, stack, stack_of_today, streaming,
};
use crate::support::records::{ACME_ORG, NOBODYS};
use crate::support::sending::{Org, Setup, id_of};
use crate::support::template::TEMPLATE;

/// Notifies `note-upload` of an object, and returns its answer.
async fn notify(stack: &Stack, object: &Value) -> Value {
    let answer = stack.gateway.invoke_by_name("NoteUploadFunction", object.to_string().as_bytes()).await;
    assert!(!answer.headers.contains_key("x-amz-function-error"), "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// An object of a file of Acme, which was put at this second of a minute.
fn object(file: &str, second: u32) -> Value {
    let key = format!("{ACME_ORG}/{file}");
    json!({"key": key, "size_bytes": 12, "put_at": format!("2026-02-01T12:00:{second:02}Z")})
}

async fn uploaded_at(stack: &Stack, file: &str) -> Value {
    get(stack, &format!("/api/v1/datasource/datasourcefile/{file}")).await["uploaded_at"].clone()
}

/// An organisation with a webhook for uploads at `/hook`, and a data source.
async fn listening() -> (Setup, Org, String) {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let hook = json!({"endpoint": format!("{}/hook", setup.receiver.url), "events": ["datasource_file.*"]});
    setup.post(&org, "/api/v1/outbound_webhook", hook).await;
    let source = setup.post(&org, "/api/v1/datasource", json!({"name": "Handbook", "ds_type": "pdf"})).await;
    let text = format!("/api/v1/datasource/{}/text_blob?name=Menu", id_of(&source));
    (setup, org, text)
}

fn received(setup: &Setup) -> Vec<Value> {
    setup.receiver.received("/hook").iter().map(|one| serde_json::from_slice(&one.body).unwrap()).collect()
}

fn kinds(events: &[Value]) -> Vec<String> {
    let mut kinds: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    kinds.sort_unstable();
    kinds
}

#[tokio::test]
async fn an_upload_to_a_signed_address_is_noted() {
    let (stack, clock) = stack_of_today(streaming()).await;
    let path = format!("/api/v1/datasource/{}/file", demo_id('a', "datasource_id"));
    let new = json!({"name": "prices.csv", "size_bytes": 12, "content_type": "text/csv"}).to_string();
    let file = data(&stack.answer(&post(&path, ACME, new)).await);
    stack.settle().await.unwrap();
    assert_eq!((&file["uploaded_at"], uploaded_at(&stack, id_of(&file)).await), (&Value::Null, Value::Null));
    clock.set(clock.now().plus_seconds(60));
    let how = &file["upload"];
    let put = send("PUT", how["url"].as_str().unwrap(), &how["headers"], b"some,prices\n").await;
    assert_eq!(put.0, 200);
    stack.settle().await.unwrap();
    assert_eq!(uploaded_at(&stack, id_of(&file)).await, json!(clock.now()));
}

#[tokio::test]
async fn the_bytes_of_a_request_emit_the_event_of_an_upload() {
    let (setup, org, path) = listening().await;
    let file = setup.post(&org, &path, json!({"content": "Soup"})).await;
    assert_eq!(file["uploaded_at"], Value::Null);
    setup.pass(1);
    setup.settle().await;
    let events = received(&setup);
    assert_eq!(kinds(&events), ["datasource_file.created", "datasource_file.uploaded"]);
    let event = events.iter().find(|event| event["event"] == "datasource_file.uploaded").unwrap();
    assert_eq!(event["previous"]["uploaded_at"], Value::Null);
    assert!(event["previous"].get("name").is_none());
    assert_eq!((&event["data"]["id"], event["data"]["uploaded_at"].is_string()), (&file["id"], true));
    // The same file again brings no second event.
    let object = json!({
        "key": format!("{}/{}", org.id, id_of(&file)), "size_bytes": 4, "put_at": event["data"]["uploaded_at"],
    });
    let again = notify(&setup.stack, &object).await;
    assert_eq!(again, json!({"datasourcefile_id": file["id"], "changed": false}));
    setup.settle().await;
    assert_eq!(received(&setup).len(), 2);
}

#[tokio::test]
async fn the_later_of_two_uploads_counts_in_any_order() {
    let (stack, file) = (stack().await, demo_id('a', "datasourcefile_id"));
    for (second, changed, wanted) in [(10, true, 10), (10, false, 10), (5, false, 10), (20, true, 20), (10, false, 20)]
    {
        let answer = notify(&stack, &object(&file, second)).await;
        assert_eq!(answer, json!({"datasourcefile_id": file, "changed": changed}), "{second}");
        let at = format!("2026-02-01T12:00:{wanted:02}.000Z");
        assert_eq!(uploaded_at(&stack, &file).await, at, "{second}");
    }
}

#[tokio::test]
async fn an_object_of_no_file_changes_nothing() {
    let (stack, file) = (stack().await, demo_id('a', "datasourcefile_id"));
    let before = everything(&stack).await;
    let keys = ["", "x", "x/y", ACME_ORG, &format!("{ACME_ORG}/{NOBODYS}"), &format!("{NOBODYS}/{file}")];
    let mut objects: Vec<Value> =
        keys.iter().map(|key| json!({"key": key, "size_bytes": 1, "put_at": "2026-02-01T12:00:00Z"})).collect();
    objects.push(json!({"key": format!("{ACME_ORG}/{}", demo_id('b', "datasourcefile_id")), "size_bytes": 1, "put_at": "2026-02-01T12:00:00Z"}));
    // An empty object blocks a late upload.
    objects.push(json!({"key": format!("{ACME_ORG}/{file}"), "size_bytes": 0, "put_at": "2026-02-01T12:00:00Z"}));
    for object in objects {
        assert_eq!(notify(&stack, &object).await, json!({"datasourcefile_id": null, "changed": false}), "{object}");
    }
    assert_eq!(everything(&stack).await, before);
    data(&stack.answer(&call("DELETE", &format!("/api/v1/datasource/datasourcefile/{file}"), ACME)).await);
    let of_deleted = notify(&stack, &object(&file, 1)).await;
    assert_eq!(of_deleted, json!({"datasourcefile_id": null, "changed": false}));
}

#[tokio::test]
async fn an_upload_that_was_given_up_is_redriven() {
    let (setup, org, path) = listening().await;
    let file = setup.post(&org, &path, json!({"content": "Soup"})).await;
    setup.faults.plan(|action, _| if action == "GetItem" { Fault::ServerError } else { Fault::None });
    setup.stack.notified.drain().await.unwrap();
    setup.faults.end();
    assert_eq!(setup.stack.objects.failed_records().unwrap().len(), 1);
    setup.settle().await;
    assert_eq!(kinds(&received(&setup)), ["datasource_file.created"]);
    let ran = setup.stack.gateway.invoke_by_name("RedriveFunction", br"{}").await;
    let ran: Value = serde_json::from_str(&ran.body).unwrap();
    assert_eq!(ran, json!({"handled": 1, "failed": 0, "left": 0}));
    assert_eq!(setup.stack.objects.failed_records().unwrap(), []);
    setup.settle().await;
    assert_eq!(kinds(&received(&setup)), ["datasource_file.created", "datasource_file.uploaded"]);
    let read = setup.get(&org, &format!("/api/v1/datasource/datasourcefile/{}", id_of(&file))).await;
    assert!(read["uploaded_at"].is_string());
}

/// The local bucket makes the same event as the rule of the template.
#[tokio::test]
async fn the_rule_passes_on_what_the_function_reads() {
    let resources = &TEMPLATE["Resources"];
    let notifies = &resources["FilesBucket"]["Properties"]["NotificationConfiguration"];
    assert_eq!(notifies["EventBridgeConfiguration"]["EventBridgeEnabled"], true);
    let rule = &resources["NoteUploadFunction"]["Properties"]["Events"]["Uploaded"]["Properties"];
    let pattern = &rule["Pattern"];
    assert_eq!((&pattern["source"], &pattern["detail-type"]), (&json!(["aws.s3"]), &json!(["Object Created"])));
    assert_eq!(pattern["detail"]["bucket"]["name"], json!([{"!Ref": "FilesBucket"}]));
    assert_eq!(pattern["detail"]["object"]["size"], json!([{"numeric": [">", 0]}]));
    // An event of S3, as its documentation shows it.
    let event = json!({
        "source": "aws.s3",
        "detail-type": "Object Created",
        "time": "2026-02-01T12:00:10Z",
        "detail": {"object": {"key": format!("{ACME_ORG}/{}", demo_id('a', "datasourcefile_id")), "size": 12}},
    });
    let transformer = &rule["InputTransformer"];
    let mut input = transformer["InputTemplate"].as_str().unwrap().to_owned();
    for (name, path) in transformer["InputPathsMap"].as_object().unwrap() {
        let pointer = path.as_str().unwrap().replace('$', "").replace('.', "/");
        input = input.replace(&format!("<{name}>"), &event.pointer(&pointer).unwrap().to_string());
    }
    let input: Value = serde_json::from_str(&input).unwrap();
    assert_eq!(input, object(&demo_id('a', "datasourcefile_id"), 10));
    assert_eq!(notify(&stack().await, &input).await["changed"], true);
}
