//! `GET /api/v1/datasource/datasourcefile/{datasourcefile_id}`: reads a file with the address of its download.

use local::faults::Fault;
use local::http::Call;
use serde_json::{Value, json};
use shared::prelude::{DatasourceFile, DatasourceFileId};
use shared::routes::{ADD_DATASOURCE_TEXT_BLOB, CREATE_DATASOURCE_FILE, READ_DATASOURCE_FILE};

use crate::support::fixture::{
    ACME, acme, data, failure, get, http_client, send, settings, stack_of_today, tenant, valid_call, with_faults,
};

#[tokio::test]
async fn a_download_address_reads_one_object_and_expires() {
    let (stack, clock) = stack_of_today(settings()).await;
    let file = data(&stack.answer(&valid_call(&ADD_DATASOURCE_TEXT_BLOB, 'a', ACME)).await);
    let path = format!("/api/v1/datasource/datasourcefile/{}", file["id"].as_str().unwrap());
    let read = async || get(&stack, &path).await["download_url"].as_str().unwrap().to_owned();
    let url = read().await;
    assert!(url.contains("X-Amz-Expires=900&X-Amz-SignedHeaders=host&"), "{url}");
    let status = async |method: &str, url: &str| send(method, url, &json!({}), b"").await.0;
    assert_eq!(status("GET", &url).await, 200);
    assert_eq!(status("PUT", &url).await, 403);
    assert_eq!(status("DELETE", &url).await, 403);
    assert_eq!(status("GET", url.split('?').next().unwrap()).await, 403);
    assert_eq!(status("GET", &url.replace("900", "901")).await, 403);
    clock.set(clock.now().plus_seconds(-901));
    assert_eq!(status("GET", &read().await).await, 403);
}

#[tokio::test]
async fn a_failing_bucket_gets_three_attempts_and_then_gives_503() {
    let (stack, faults) = with_faults(settings()).await;
    let call = valid_call(&READ_DATASOURCE_FILE, 'a', ACME);
    for (failures, wanted) in [(1, 200), (2, 200), (3, 503)] {
        let mut asked = 0;
        faults.plan(move |action, _| {
            asked += usize::from(action == "GetObject");
            if action == "GetObject" && asked <= failures { Fault::ServerError } else { Fault::None }
        });
        let answer = stack.answer(&call).await;
        assert_eq!(answer.status, wanted, "{failures} {}", answer.body);
        let asked = faults.requests().iter().filter(|action| *action == "GetObject").count();
        assert_eq!(asked, 3.min(failures + 1), "{failures}");
        if wanted == 503 {
            assert_eq!(failure(&answer), (503, vec!["[] unavailable".into()]));
        }
    }
}

/// An empty object replaces deleted bytes. After a restore of the table, a file may have such an object.
#[tokio::test]
async fn an_empty_object_does_not_count_as_uploaded() {
    let (stack, _) = stack_of_today(settings()).await;
    let call = valid_call(&READ_DATASOURCE_FILE, 'a', ACME);
    let file = data(&stack.answer(&call).await);
    let (table, id) = (acme(&stack), DatasourceFileId(file["id"].as_str().unwrap().parse().unwrap()));
    let key = table.get::<DatasourceFile>(id).await.unwrap().object(&tenant());
    stack.gateway.service.bucket.close(&key).await.unwrap();
    assert_eq!(stack.objects.objects().unwrap().len(), 1);
    let read = data(&stack.answer(&call).await);
    assert_eq!((&read["uploaded"], &read["content_type"]), (&json!(false), &json!(null)));
    assert_eq!(read["download_url"], json!(null));
}

/// Uploads `bytes` as `content_type` under `name`. Returns the answer about the file, and that of its download: status,
/// type, disposition and bytes.
async fn downloaded(name: &str, content_type: &str, bytes: &[u8]) -> (Value, (u16, String, String, Vec<u8>)) {
    let (stack, _) = stack_of_today(settings()).await;
    let new = json!({"name": name, "size_bytes": bytes.len(), "content_type": content_type});
    let call = valid_call(&CREATE_DATASOURCE_FILE, 'a', ACME);
    let file = data(&stack.answer(&Call { body: new.to_string().into(), ..call }).await);
    let upload = &file["upload"];
    assert_eq!(send("PUT", upload["url"].as_str().unwrap(), &upload["headers"], bytes).await.0, 200);
    let read = get(&stack, &format!("/api/v1/datasource/datasourcefile/{}", file["id"].as_str().unwrap())).await;
    let url = read["download_url"].as_str().unwrap();
    let response = http_client().get(url).send().await.unwrap();
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    let (status, kind, disposition) =
        (response.status().as_u16(), header("content-type"), header("content-disposition"));
    // The signature covers the headers that S3 answers.
    let inline = url.replace("attachment", "inline");
    assert_ne!(inline, url);
    assert_eq!(send("GET", &inline, &json!({}), b"").await.0, 403);
    (read, (status, kind, disposition, response.bytes().await.unwrap().to_vec()))
}

#[tokio::test]
async fn a_browser_saves_a_download_under_a_safe_name() {
    let name = "../Menü\u{202e}\"\r\n.html";
    let (_, download) = downloaded(name, "text/html", b"<!DOCTYPE html><p>Hi</p>").await;
    let disposition = "attachment; filename=\"_Men_____.html\"; filename*=UTF-8''_Men%C3%BC____.html";
    let wanted = (200, "text/html".to_owned(), disposition.to_owned(), b"<!DOCTYPE html><p>Hi</p>".to_vec());
    assert_eq!(download, wanted);
}

#[tokio::test]
async fn a_file_of_another_type_than_named_is_downloaded_as_bytes() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    // Only the first bytes are looked at.
    let long = [png.as_slice(), &[b' '; 10_000]].concat();
    for (declared, bytes, wanted) in [
        ("image/png", png.as_slice(), "image/png"),
        ("image/png", &long, "image/png"),
        ("image/png", b"<script>alert(1)</script>", "application/octet-stream"),
        ("text/plain; charset=utf-8", "Crème".as_bytes(), "text/plain; charset=utf-8"),
        ("text/plain", png, "application/octet-stream"),
    ] {
        let (read, (status, kind, _, got)) = downloaded("a", declared, bytes).await;
        assert_eq!((status, kind.as_str(), got.as_slice()), (200, wanted, bytes), "{declared}");
        assert_eq!((&read["uploaded"], &read["content_type"]), (&json!(true), &json!(wanted)), "{declared}");
    }
}
