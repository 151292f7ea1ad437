//! `GET /api/v1/datasource/datasourcefile/{datasourcefile_id}`: reads a file with the address of its download.

use local::faults::Fault;
use serde_json::json;
use shared::prelude::{DatasourceFile, DatasourceFileId};
use shared::routes::{ADD_DATASOURCE_TEXT_BLOB, READ_DATASOURCE_FILE};

use crate::support::fixture::{
    ACME, acme, data, failure, get, send, settings, stack_of_today, tenant, valid_call, with_faults,
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
            asked += usize::from(action == "HeadObject");
            if action == "HeadObject" && asked <= failures { Fault::ServerError } else { Fault::None }
        });
        let answer = stack.answer(&call).await;
        assert_eq!(answer.status, wanted, "{failures} {}", answer.body);
        let asked = faults.requests().iter().filter(|action| *action == "HeadObject").count();
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
    assert_eq!((&read["uploaded"], &read["download_url"]), (&json!(false), &json!(null)));
}
