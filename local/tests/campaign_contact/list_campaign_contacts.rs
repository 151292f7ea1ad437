//! `GET /api/v1/campaign/contact/list/{campaign_id}`: lists the contacts of a campaign with their statuses.

use local::Stack;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, add_contacts, call, get, stack};
use crate::support::records::campaign_to;

async fn page(stack: &Stack, campaign: &str, page: usize, size: usize) -> Value {
    get(stack, &format!("/api/v1/campaign/contact/list/{campaign}?page={page}&size={size}")).await
}

async fn has_every_page(stack: &Stack, campaign: &str, ids: &[String], pages_of: &[usize]) {
    for &size in pages_of {
        let pages = ids.len().div_ceil(size);
        for number in 1..=pages + 1 {
            let found = page(stack, campaign, number, size).await;
            let rows = found["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap());
            let wanted: Vec<_> = ids.iter().skip((number - 1) * size).take(size).collect();
            assert_eq!(rows.collect::<Vec<_>>(), wanted, "page {number} of {size}");
            assert_eq!((&found["total"], &found["pages"]), (&json!(ids.len()), &json!(pages)));
        }
    }
}

#[tokio::test]
async fn a_deleted_contact_leaves_the_list_at_every_place() {
    // One partition has a thousand contacts, and one item the deleted places of a thousand.
    const CONTACTS: u32 = 2010;
    let stack = stack().await;
    add_contacts(&stack, CONTACTS).await;
    let (campaign, mut ids) = campaign_to(&stack, CONTACTS).await;
    has_every_page(&stack, &campaign, &ids, &[100]).await;
    for place in [0, 0, 49, 995, 996, 997, 998, 1998, 2001, 500] {
        let gone = ids.remove(place);
        let answer = stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{gone}"), ACME)).await;
        assert_eq!(answer.status, 200, "{place}");
    }
    has_every_page(&stack, &campaign, &ids, &[100, 99]).await;
}

#[tokio::test]
async fn an_empty_campaign_has_no_page() {
    let stack = stack().await;
    let (campaign, ids) = campaign_to(&stack, 3).await;
    for id in &ids {
        stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{id}"), ACME)).await;
    }
    has_every_page(&stack, &campaign, &[], &[1, 100]).await;
}
