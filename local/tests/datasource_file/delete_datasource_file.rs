//! `DELETE /api/v1/datasource/datasourcefile/{datasourcefile_id}`: removes a file of a data source.

use serde_json::json;

use crate::fixture::{ACME, call, failure, id, kind, stack};
use crate::records::{ACME_ORG, DEMO_TIME, deletes};

#[tokio::test]
async fn each_file_goes_as_it_was_and_the_data_source_and_its_other_file_stay() {
    for (number, name, size) in [(1, "handbook.pdf", 48213), (2, "prices.pdf", 9120)] {
        let file = id('a', kind::DATASOURCE_FILE, number);
        let record = json!({
            "id": file,
            "datasource_id": id('a', kind::DATASOURCE, 1),
            "name": name,
            "description": null,
            "ds_type": "pdf",
            "size_bytes": size,
            "attributes": {},
            "org_id": ACME_ORG,
            "created_at": DEMO_TIME,
            "updated_at": DEMO_TIME,
        });
        let path = format!("/api/v1/datasource/datasourcefile/{file}");
        deletes(&path, record, "DATASOURCE_FILE#0000000001", number, "datasourcefile_id").await;
    }
}

#[tokio::test]
async fn a_data_source_is_no_file() {
    let path = format!("/api/v1/datasource/datasourcefile/{}", id('a', kind::DATASOURCE, 1));
    let answer = stack().await.answer(&call("DELETE", &path, ACME)).await;
    assert_eq!(failure(&answer), (404, vec![r#"["path","datasourcefile_id"] not_found"#.into()]));
}
