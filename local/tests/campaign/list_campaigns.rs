//! `GET /api/v1/campaign/list`: lists the campaigns with their messages and counts.

use local::Stack;
use local::http::Call;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::campaign::CampaignStatus;

use crate::support::crashes::crashes_everywhere;
use crate::support::demo_set;
use crate::support::fixture::{ACME, call, data, get, id, kind, post, stack, streaming};
use crate::support::records::campaign_to;
use crate::support::sender::Sender;
use crate::support::sending::id_of;

async fn list(stack: &Stack, query: &str) -> Value {
    get(stack, &format!("/api/v1/campaign/list?{query}")).await
}

#[tokio::test]
async fn a_listed_campaign_equals_the_read_one() {
    let stack = stack().await;
    let (campaign, contacts) = campaign_to(&stack, 3).await;
    stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{}", contacts[0]), ACME)).await;
    let read = get(&stack, &format!("/api/v1/campaign/get/{campaign}")).await;
    let page = list(&stack, "").await;
    let of_demo = async |id: String| get(&stack, &format!("/api/v1/campaign/get/{id}")).await;
    let (failed, new) =
        (of_demo(id('a', kind::FAILED_CAMPAIGN, 1)).await, of_demo(id('a', kind::NEW_CAMPAIGN, 2)).await);
    assert_eq!((&page["total"], &page["items"]), (&json!(4), &json!([demo_set::campaign(), failed, new, read])));
    assert_eq!(read["counts"]["queued"], 2);
    assert_eq!(read["message"], "Hello, how can we help?");
}

#[tokio::test]
async fn a_status_filter_selects_by_the_answered_status() {
    let stack = Stack::start(streaming()).await.unwrap();
    let (sent, _) = campaign_to(&stack, 2).await;
    let (cancelled, _) = campaign_to(&stack, 3).await;
    let selected = async |status: &str| {
        stack.settle().await.unwrap();
        let page = list(&stack, &format!("&status={status}&widget_id={}", id('a', kind::WIDGET, 1))).await;
        let ids: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
        assert_eq!(page["total"], ids.len(), "{status}");
        ids
    };
    assert_eq!(selected("queued").await, [json!(sent), json!(cancelled)]);
    data(&stack.answer(&post(&format!("/api/v1/campaign/{cancelled}/cancel"), ACME, "")).await);
    assert_eq!(selected("queued").await, [json!(sent)]);
    assert_eq!(selected("cancelled").await, [json!(cancelled)]);
    // The widget has no connector, so a dispatched contact is sent.
    stack.tick("send-campaigns").await.unwrap();
    assert_eq!(selected("completed").await, [json!(id('a', kind::FAILED_CAMPAIGN, 1)), json!(sent)]);
    assert_eq!(selected("paused").await, [json!(id('a', kind::CAMPAIGN, 0))]);
    assert_eq!(selected("not_started").await, [json!(id('a', kind::NEW_CAMPAIGN, 2))]);
    for none in ["queued", "in_progress", "to_be_run"] {
        assert_eq!(selected(none).await, Vec::<Value>::new(), "{none}");
    }
}

/// The status of a campaign. Only the list of this status may have the campaign.
async fn status_and_list(sender: &Sender, id: &str) -> String {
    sender.setup.settle().await;
    let status = sender.campaign(id).await.0["status"].as_str().unwrap().to_owned();
    for listed in CampaignStatus::WORDS {
        let query = format!("api_key={}&status={listed}", sender.org.key);
        let page = data(&sender.setup.stack.answer(&Call { query, ..call("GET", "/api/v1/campaign/list", "") }).await);
        let ids: Vec<&str> =
            page["items"].as_array().unwrap().iter().map(|campaign| campaign["id"].as_str().unwrap()).collect();
        let wanted = if *listed == status { vec![id] } else { vec![] };
        assert_eq!((ids, &page["total"]), (wanted.clone(), &json!(wanted.len())), "of {status}, in {listed}");
    }
    status
}

/// A campaign of one contact, whose delivery waits for a retry.
async fn waiting() -> (Sender, String, String) {
    let sender = Sender::new(true, 1).await;
    sender.setup.receiver.behave("/connector", Behaviour::RetryAfter(503, 3600));
    let id = sender.run(json!({})).await;
    sender.minute(&[&id]).await;
    assert_eq!(status_and_list(&sender, &id).await, "in_progress");
    let contact = id_of(&sender.campaign(&id).await.1[0]).to_owned();
    (sender, id, contact)
}

#[tokio::test]
async fn every_end_of_the_last_contact_moves_the_campaign_between_lists() {
    let ways = ["delivered", "dead", "deleted", "cancelled", "the widget is deleted", "the contact is deleted"];
    for way in ways {
        let (sender, id, contact) = waiting().await;
        let delete = async |path: String| drop(sender.delete(&path).await);
        match way {
            "delivered" => sender.setup.receiver.behave("/connector", Behaviour::Answer(200)),
            "deleted" => delete(format!("campaign_contact/{contact}")).await,
            "cancelled" => assert_eq!(sender.control(&id, "cancel").await.0, 200),
            "the widget is deleted" => delete(format!("widget/{}", sender.widget.id)).await,
            "the contact is deleted" => delete(format!("contact/{}", sender.contacts()[0])).await,
            _ => {}
        }
        let wanted = if way == "cancelled" { "cancelled" } else { "completed" };
        // A request ends the campaign at once; a delivery or a deleted contact ends it at the next attempt.
        if !["deleted", "cancelled", "the widget is deleted"].contains(&way) {
            assert_eq!(status_and_list(&sender, &id).await, "in_progress", "{way}");
            sender.until_the_end(&id).await;
        }
        assert_eq!(status_and_list(&sender, &id).await, wanted, "{way}");
        sender.until_the_end(&id).await;
        assert_eq!(status_and_list(&sender, &id).await, wanted, "{way}");
    }
}

#[tokio::test]
async fn a_crashed_delete_of_the_last_contact_keeps_the_lists_right() {
    let work = async |(sender, _, contact): &(Sender, String, String)| {
        sender.setup.ask(&sender.org, "DELETE", &format!("/api/v1/campaign_contact/{contact}"), &Value::Null).await;
    };
    let look = async |(sender, id, _): &(Sender, String, String), case: String| {
        let left = sender.campaign(id).await.1.len();
        let wanted = if left == 0 { "completed" } else { "in_progress" };
        assert_eq!(status_and_list(sender, id).await, wanted, "{case}");
    };
    crashes_everywhere(waiting, |(sender, ..)| &sender.setup, work, look).await;
}
