//! `DELETE /api/v1/datasource/datasourcefile/{datasourcefile_id}`: deletes a file and, later, its bytes.

use local::faults::{Fault, Faults};
use local::http::Call;
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::prelude::{DatasourceFile, DatasourceFileId};
use shared::routes::{ADD_DATASOURCE_TEXT_BLOB, CREATE_DATASOURCE_FILE};
use uuid::Uuid;

use crate::support::crashes::unreliable_stream;
use crate::support::fixture::{ACME, acme, call, data, get, id, kind, send, stack_of_today, streaming, valid_call};
use crate::support::records::{ACME_ORG, DEMO_TIME, deletes};
use crate::support::sweep::cases;

/// The seconds after which a file cannot get bytes any more.
const DAY_AND_HOUR: i64 = 25 * 60 * 60;

#[tokio::test]
async fn deletes_only_the_file_and_answers_it() {
    for (number, name, size) in [(1, "handbook.pdf", 48213), (2, "prices.pdf", 9120)] {
        let file = id('a', kind::DATASOURCE_FILE, number);
        let record = json!({
            "id": file,
            "datasource_id": id('a', kind::DATASOURCE, 1),
            "name": name,
            "description": null,
            "ds_type": "pdf",
            "size_bytes": size,
            "uploaded_at": null,
            "attributes": {},
            "org_id": ACME_ORG,
            "created_at": DEMO_TIME,
            "updated_at": DEMO_TIME,
        });
        let path = format!("/api/v1/datasource/datasourcefile/{file}");
        deletes(&path, record, "DATASOURCE_FILE#0000000001", number, "datasourcefile_id").await;
    }
}

const TEXT: &[u8] = b"We open at nine.";

/// An uploaded file: its path, its upload request and its download address.
async fn uploaded(stack: &Stack) -> (String, Value, String) {
    let body = json!({"name": "a.txt", "size_bytes": TEXT.len()}).to_string();
    let call_of = valid_call(&CREATE_DATASOURCE_FILE, 'a', ACME);
    let file = data(&stack.answer(&Call { body: body.into(), ..call_of }).await);
    let path = format!("/api/v1/datasource/datasourcefile/{}", file["id"].as_str().unwrap());
    let how = file["upload"].clone();
    assert_eq!(send("PUT", how["url"].as_str().unwrap(), &how["headers"], TEXT).await.0, 200);
    let read = get(stack, &path).await;
    (path, how, read["download_url"].as_str().unwrap().to_owned())
}

/// The bytes of every object.
fn bytes(stack: &Stack) -> Vec<Vec<u8>> {
    stack.objects.objects().unwrap().into_iter().map(|(_, bytes)| bytes).collect()
}

#[tokio::test]
async fn deletes_the_bytes_of_an_old_file() {
    let (stack, clock) = stack_of_today(streaming()).await;
    let (kept, ..) = uploaded(&stack).await;
    let (gone, _, download) = uploaded(&stack).await;
    data(&stack.answer(&call("DELETE", &gone, ACME)).await);
    assert_eq!(bytes(&stack).len(), 2, "the request itself has deleted the bytes");
    clock.set(clock.now().plus_seconds(DAY_AND_HOUR));
    stack.settle().await.unwrap();
    assert_eq!(bytes(&stack), [TEXT]);
    assert_eq!(send("GET", &download, &json!({}), b"").await.0, 404);
    assert_eq!(get(&stack, &kept).await["uploaded"], true);
    assert_eq!(stack.stream.given_up(), Vec::<Value>::new());
}

/// An address for an upload outlives the file that it is for.
#[tokio::test]
async fn an_upload_after_the_delete_is_refused() {
    let (stack, _) = stack_of_today(streaming()).await;
    let (path, how, download) = uploaded(&stack).await;
    let late = data(&stack.answer(&valid_call(&CREATE_DATASOURCE_FILE, 'a', ACME)).await);
    for path in [path, format!("/api/v1/datasource/datasourcefile/{}", late["id"].as_str().unwrap())] {
        data(&stack.answer(&call("DELETE", &path, ACME)).await);
    }
    stack.settle().await.unwrap();
    for (how, text) in [(&how, TEXT.to_vec()), (&late["upload"], vec![b'x'; 9120])] {
        assert_eq!(send("PUT", how["url"].as_str().unwrap(), &how["headers"], &text).await.0, 412);
    }
    assert_eq!(bytes(&stack), [b"", b""], "an object has other bytes than the empty marker");
    assert_eq!(send("GET", &download, &json!({}), b"").await.2, b"");
}

#[tokio::test]
async fn a_repeat_after_the_delete_does_not_restore_the_text() {
    let faults = Faults::default();
    let (stack, clock) = stack_of_today(Settings { faults: faults.clone(), ..streaming() }).await;
    let headers = [("idempotency-key".to_owned(), "again".to_owned())].into();
    let add = Call { headers, ..valid_call(&ADD_DATASOURCE_TEXT_BLOB, 'a', ACME) };
    // The process crashes after the upload of the text, before it stores the answer.
    faults.plan(|action, _| if action == "PutObject" { Fault::LoseAnswer } else { Fault::None });
    assert!(faults.kill(stack.answer(&add)).await);
    faults.end();
    let (key, _) = stack.objects.objects().unwrap().remove(0);
    let path = format!("/api/v1/datasource/datasourcefile/{}", key.split('/').nth(1).unwrap());
    data(&stack.answer(&call("DELETE", &path, ACME)).await);
    stack.settle().await.unwrap();
    clock.set(clock.now().plus_seconds(DAY_AND_HOUR - 3601));
    assert_eq!(stack.answer(&add).await.status, 201);
    assert_eq!(bytes(&stack), [b""]);
}

#[tokio::test]
async fn a_failed_delete_of_bytes_is_retried_until_it_succeeds() {
    let faults = Faults::default();
    let (stack, clock) = stack_of_today(Settings { faults: faults.clone(), ..streaming() }).await;
    let (path, ..) = uploaded(&stack).await;
    data(&stack.answer(&call("DELETE", &path, ACME)).await);
    clock.set(clock.now().plus_seconds(DAY_AND_HOUR));
    let mut asked = 0;
    faults.plan(move |action, _| {
        asked += usize::from(action == "DeleteObject");
        if action == "DeleteObject" && asked <= 5 { Fault::ServerError } else { Fault::None }
    });
    stack.settle().await.unwrap();
    assert_eq!(faults.requests().iter().filter(|action| *action == "DeleteObject").count(), 6);
    assert_eq!(bytes(&stack), Vec::<Vec<u8>>::new());
    assert_eq!(stack.stream.given_up(), Vec::<Value>::new());
}

#[tokio::test]
async fn bytes_are_deleted_despite_faults_of_the_stream() {
    for seed in cases(0..3) {
        let (stack, clock) = stack_of_today(streaming()).await;
        stack.stream.set_faults(&unreliable_stream(seed, 0.5, 0.2));
        let mut ids: Vec<DatasourceFileId> = Vec::new();
        for _ in 0..5 {
            let (path, ..) = uploaded(&stack).await;
            ids.push(path.rsplit('/').next().unwrap().parse::<Uuid>().unwrap().into());
        }
        for id in ids {
            acme(&stack).remove::<DatasourceFile>(id).await.unwrap();
        }
        clock.set(clock.now().plus_seconds(DAY_AND_HOUR));
        stack.settle().await.unwrap();
        assert_eq!(bytes(&stack), Vec::<Vec<u8>>::new(), "seed {seed}");
        assert_eq!(stack.stream.given_up(), Vec::<Value>::new(), "seed {seed}");
    }
}
