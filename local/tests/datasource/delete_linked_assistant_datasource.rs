//! `DELETE /api/v1/datasource/{datasource_id}/assistant/{assistant_id}`: unlinks a data source from an assistant.

use serde_json::json;

use crate::support::fixture::{ACME, call, id, kind, stack};
use crate::support::records::{NOBODYS, changes, deletes_with, detail, hole, items, key, not_found, nothing, row};

#[tokio::test]
async fn deletes_only_the_link() {
    let (datasource, assistant) = (id('a', kind::DATASOURCE, 1), id('a', kind::ASSISTANT, 1));
    let record = json!({"datasource_id": datasource, "assistant_id": assistant});
    let (pointer, list) =
        (key(&format!("DATASOURCE_LINK#{datasource}"), &assistant), format!("DATASOURCE_LINK#{assistant}"));
    deletes_with(
        &format!("/api/v1/datasource/{datasource}/assistant/{assistant}"),
        record,
        &[pointer, row(&list, 0)],
        hole(&list, 0),
        "assistant_id",
    )
    .await;
}

#[tokio::test]
async fn refuses_a_path_without_a_link_with_404() {
    let stack = stack().await;
    let before = items(&stack).await;
    let (datasource, assistant) = (id('a', kind::DATASOURCE, 1), id('a', kind::ASSISTANT, 1));
    let (datasource, assistant) = (datasource.as_str(), assistant.as_str());
    for (one, other) in [(datasource, NOBODYS), (NOBODYS, assistant), (NOBODYS, NOBODYS), (assistant, datasource)] {
        let answer = stack.answer(&call("DELETE", &format!("/api/v1/datasource/{one}/assistant/{other}"), ACME)).await;
        assert_eq!(detail(&answer), not_found("assistant_id"), "{one} {other}");
    }
    assert_eq!(changes(&stack, &before).await, nothing());
}
