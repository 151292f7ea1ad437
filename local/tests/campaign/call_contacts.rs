//! `POST /api/v1/call/{widget_id}/contacts`: runs a campaign through a widget that makes calls.

use serde_json::{Value, json};
use shared::records::widget::WidgetType;

use crate::support::fixture::{ACME, data, get, id, json, kind, post, stack};
use crate::support::records::{changes, conflict, detail, items, nothing};
use crate::support::sender::{Sender, counts};
use crate::support::sending::{Setup, id_of};

#[tokio::test]
async fn runs_a_campaign_of_calls() {
    let stack = stack().await;
    let path = format!("/api/v1/call/{}/contacts", id('a', kind::WIDGET, 2));
    let body = json!({"contact_ids": [id('a', kind::CONTACT, 1)], "message": "Hi", "start_new_conversation": false});
    let run = data(&stack.answer(&post(&path, ACME, body.to_string())).await);
    let path = format!("/api/v1/campaign/get/{}", run["campaign_id"].as_str().unwrap());
    let campaign = get(&stack, &path).await;
    assert_eq!((&campaign["message"], &campaign["start_new_conversation"]), (&Value::Null, &json!(true)));
    assert_eq!(campaign["widget_id"], id('a', kind::WIDGET, 2));
}

#[tokio::test]
async fn refuses_a_widget_that_sends_messages() {
    let stack = stack().await;
    let before = items(&stack).await;
    let path = format!("/api/v1/call/{}/contacts", id('a', kind::WIDGET, 1));
    let answer =
        stack.answer(&post(&path, ACME, json!({"contact_ids": [id('a', kind::CONTACT, 1)]}).to_string())).await;
    let wanted = conflict("widget_id", "widget_sends_messages", "The widget sends messages");
    assert_eq!(detail(&answer), wanted);
    assert_eq!(changes(&stack, &before).await, nothing());
}

/// The status, and the place and the type of the refusal.
async fn refusal(sender: &Sender, method: &str, path: &str, body: &Value) -> (u16, Value, Value) {
    let answer = sender.setup.ask(&sender.org, method, path, body).await;
    let detail = &json(&answer)["detail"][0];
    (answer.status, detail["loc"].clone(), detail["type"].clone())
}

#[tokio::test]
async fn calls_through_a_widget_without_a_connector_are_refused() {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, false, 2).await;
    let (widget, contacts) = (sender.widget.id, json!({"contact_ids": sender.contacts()}));
    let no_connector = |part: &str| (409, json!([part, "widget_id"]), json!("no_connector"));
    for path in [format!("/api/v1/call/{widget}/contacts"), format!("/api/v1/campaign/run/{widget}")] {
        assert_eq!(refusal(&sender, "POST", &path, &contacts).await, no_connector("path"), "{path}");
    }
    let mut campaign = json!({
        "name": "Reminder", "type": "outbound_call", "widget_id": widget, "enabled": true,
        "start_time": sender.setup.clock.now().plus_seconds(3600), "contact_ids": sender.contacts(),
    });
    let create = "/api/v1/campaign/create";
    assert_eq!(refusal(&sender, "POST", create, &campaign).await, no_connector("body"));
    // It may be prepared, and starts with its connector only.
    campaign["enabled"] = json!(false);
    let id = id_of(&sender.setup.post(&sender.org, create, campaign).await).to_owned();
    let (path, enabled) = (format!("/api/v1/campaign/update/{id}"), json!({"enabled": true}));
    assert_eq!(refusal(&sender, "PUT", &path, &enabled).await, no_connector("body"));
    let connector = json!({"connector_url": format!("{}/connector", sender.setup.receiver.url)});
    let of_widget = format!("/api/v1/widget/{widget}");
    assert_eq!(sender.setup.ask(&sender.org, "PUT", &of_widget, &connector).await.status, 200);
    assert_eq!(sender.update(&id, &enabled).await.0, 200);
    // The widget loses its connector before the time of the campaign.
    let gone = json!({"connector_url": null});
    assert_eq!(sender.setup.ask(&sender.org, "PUT", &of_widget, &gone).await.status, 200);
    sender.until_the_end(&id).await;
    let (campaign, contacts) = sender.campaign(&id).await;
    assert_eq!((&campaign["status"], &campaign["counts"]), (&json!("completed"), &counts([("failed", 2)])));
    assert!(contacts.iter().all(|contact| contact["error"] == "the widget has no connector"), "{contacts:?}");
    assert_eq!((sender.conversations().await.len(), sender.received().len()), (0, 0));
}

#[tokio::test]
async fn a_repeat_gets_its_campaign_after_the_connector_is_gone() {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, 1).await;
    let (path, body) =
        (format!("/api/v1/call/{}/contacts", sender.widget.id), json!({"contact_ids": sender.contacts()}));
    let first = sender.setup.post(&sender.org, &path, body.clone()).await;
    let of_widget = format!("/api/v1/widget/{}", sender.widget.id);
    sender.setup.ask(&sender.org, "PUT", &of_widget, &json!({"connector_url": null})).await;
    assert_eq!(sender.setup.post(&sender.org, &path, body).await, first);
}
