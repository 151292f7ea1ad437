//! `DELETE /api/v1/campaign_contact/{campaign_contact_id}`: removes a contact from a campaign.

use serde_json::json;

use super::{DEMO_TIME, FRESH, changes, deletes, items, key};
use crate::fixture::{ACME, call, data, failure, id, kind, post, stack};

#[tokio::test]
async fn each_contact_goes_as_it_was_and_the_campaign_and_its_other_contacts_stay() {
    let campaign = id('a', kind::CAMPAIGN, 0);
    for number in 1..=3 {
        let contact = id('a', kind::CAMPAIGN, number);
        let record = json!({
            "id": contact,
            "campaign_id": campaign,
            "contact_id": id('a', kind::CONTACT, number - 1),
            "status": "queued",
            "conversation_id": null,
            "error": null,
            "created_at": DEMO_TIME,
            "updated_at": DEMO_TIME,
        });
        let key = key(&format!("CAMPAIGN_CONTACT#{campaign}#00"), &contact);
        deletes(&format!("/api/v1/campaign_contact/{contact}"), record, key, "campaign_contact_id").await;
    }
}

#[tokio::test]
async fn what_a_run_has_queued_is_found_by_its_own_id() {
    let stack = stack().await;
    let run = format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 1));
    let contacts = [0, 1].map(|number| id('a', kind::CONTACT, number));
    data(&stack.answer(&post(&run, ACME, json!({"contact_ids": contacts}).to_string())).await);
    let before = items(&stack).await;
    let second = format!("{}00000002", &FRESH[0][..28]);
    let answered = data(&stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{second}"), ACME)).await);
    assert_eq!((&answered["id"], &answered["contact_id"]), (&json!(second), &json!(contacts[1])));
    let (gone, new) = changes(&stack, &before).await;
    assert_eq!(gone.into_keys().collect::<Vec<_>>(), [key(&format!("CAMPAIGN_CONTACT#{}#00", FRESH[0]), &second)]);
    assert!(new.is_empty());
}

#[tokio::test]
async fn neither_the_campaign_s_id_nor_the_contact_s_is_a_campaign_contact_s() {
    let stack = stack().await;
    for other in [id('a', kind::CAMPAIGN, 0), id('a', kind::CONTACT, 0), id('a', kind::CAMPAIGN, 4)] {
        let answer = stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{other}"), ACME)).await;
        assert_eq!(failure(&answer), (404, vec![r#"["path","campaign_contact_id"] not_found"#.into()]), "{other}");
    }
}
