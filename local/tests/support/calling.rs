//! Campaigns of calls that are attempted again.

use serde_json::{Value, json};
use shared::records::widget::WidgetType;

use super::sender::{Sender, all};
use super::sending::{Setup, events};

/// A policy for calls that nobody took, with half an hour between the attempts.
pub fn policy(max_attempts: u32) -> Value {
    json!({"on": ["no_answer", "busy"], "max_attempts": max_attempts, "wait_minutes": 30})
}

/// A campaign of calls with a policy, whose calls the connector has got.
pub async fn called(contacts: usize, max_attempts: u32) -> (Sender, String) {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, contacts).await;
    let id = sender.run(json!({"retry_policy": policy(max_attempts)})).await;
    sender.minute(&[&id]).await;
    assert_eq!(sender.outcome(&id).await, all("sent", contacts));
    (sender, id)
}

impl Sender {
    /// The contact of a campaign at this place.
    pub async fn contact(&self, id: &str, place: usize) -> Value {
        self.campaign(id).await.1.remove(place)
    }

    /// The number of calls that the connector has got.
    pub fn calls(&self) -> usize {
        events(&self.received()).len()
    }
}
