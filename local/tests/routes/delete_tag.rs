//! `DELETE /api/v1/tag/{tag_id}`: removes a tag.

use serde_json::json;
use shared::auth::Tenant;
use shared::model::id::{LinkId, OrgId, TagId, with_ordinal};
use shared::model::tag::{EntityType, Link};
use shared::model::time::Timestamp;
use shared::table::Table;
use uuid::Uuid;

use super::{ACME_ORG, DEMO_TIME, FRESH, deletes, key};
use crate::fixture::{ACME, GLOBEX, NOW, call, data, id, kind, stack};

#[tokio::test]
async fn a_tag_goes_as_it_was() {
    let tag = id('a', kind::TAG, 2);
    let record = json!({
        "id": tag,
        "name": "Newsletter",
        "color_code": "#27ae60",
        "description": null,
        "attributes": {},
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    });
    deletes(&format!("/api/v1/tag/{tag}"), record, key(&format!("TAG#{tag}"), "TAG"), "tag_id").await;
}

#[tokio::test]
async fn what_is_free_form_is_answered_as_it_was() {
    let tag = id('a', kind::TAG, 1);
    let answer = stack().await.answer(&call("DELETE", &format!("/api/v1/tag/{tag}"), ACME)).await;
    let record = json!({
        "id": tag,
        "name": "VIP",
        "color_code": "#c0392b",
        "description": "Answers within the hour",
        "attributes": {"": "an empty key", "nested": {"deep": [1, 2.5, null]}},
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    });
    assert_eq!(data(&answer), record);
}

#[tokio::test]
async fn its_links_leave_the_link_list_and_no_others() {
    let stack = stack().await;
    let uuid = |text: &str| text.parse::<Uuid>().unwrap();
    #[expect(clippy::disallowed_methods, reason = "no operation makes links")]
    let acme = Table::new(stack.gateway.service.store.clone(), Tenant::operator(OrgId(uuid(ACME_ORG))));
    let (id_of_link, newsletter, now) =
        (uuid(FRESH[0]), uuid(&id('a', kind::TAG, 2)), Timestamp::from_unix_millis(NOW));
    let link = |place| Link {
        id: LinkId(with_ordinal(id_of_link, place)),
        entity_id: "a form".into(),
        entity_type: EntityType::Form,
        tag_id: TagId(newsletter),
        created_at: now,
        updated_at: now,
        created_by_id: None,
    };
    let newsletter_s = acme.append(1, link).await.unwrap();
    let vip = format!("/api/v1/tag/{}", id('a', kind::TAG, 1));
    data(&stack.answer(&call("DELETE", &vip, ACME)).await);
    let links = async |key| data(&stack.answer(&call("GET", "/api/v1/link_tag_entity/list", key)).await);
    assert_eq!(links(GLOBEX).await["total"], 2);
    let left = links(ACME).await;
    assert_eq!(left["total"], 1);
    assert_eq!(left["items"], json!(newsletter_s));
}
