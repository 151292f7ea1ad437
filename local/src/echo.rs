//! The runtime in `cargo local`: it answers each message of a user by repeating it, so that whoever writes in the console
//! is answered. It reads the messages from the inbox, and answers as any runtime does: `docs/RUNTIME.md`.

use std::sync::Arc;

use serde_json::{Value, json};
use shared::routes;
use tokio::sync::watch;

use crate::Trouble;
use crate::api::{Api, ApiRequest};
use crate::inbox::{Arrived, Inbox, PATH, RUNTIME, Signature, reached_at};

/// The most characters that are repeated: a message has little more.
const REPEATED: usize = 32_000;

/// Makes the webhooks that lead the messages of users to the inbox of the stack at `url`, one for each organisation, or
/// enables them again. If `is_on` is false, it disables the webhooks that an earlier start has made.
///
/// # Errors
/// [`Trouble`] has the API's answer.
pub async fn connect(url: &str, api: &Api, is_on: bool) -> Result<(), Trouble> {
    let Some(address) = reached_at(url) else { return Ok(()) };
    let trouble = |says: String| Trouble(format!("the runtime: {says}"));
    for organisation in api.organisations() {
        let webhooks = ApiRequest::of(&routes::LIST_WEBHOOKS).query("size=100");
        let webhooks = api.ask(organisation, webhooks).await.map_err(trouble)?;
        let leads_here = |webhook: &&Value| webhook["endpoint"].as_str().is_some_and(is_address);
        let known = webhooks["items"].as_array().into_iter().flatten().find(leads_here);
        let endpoint = format!("http://{address}{PATH}/events/{}{RUNTIME}", organisation.name);
        let request = match known {
            Some(webhook) => ApiRequest::of(&routes::UPDATE_WEBHOOK)
                .parameter("webhook_id", webhook["id"].as_str().unwrap_or_default())
                .body(&json!({"endpoint": endpoint, "enabled": is_on})),
            None if is_on => ApiRequest::of(&routes::CREATE_WEBHOOK).body(
                &json!({"name": "Runtime", "endpoint": endpoint, "events": ["message.created"], "context": true}),
            ),
            None => continue,
        };
        api.ask(organisation, request).await.map_err(trouble)?;
    }
    Ok(())
}

/// Whether a webhook with this address leads to the runtime.
fn is_address(endpoint: &str) -> bool {
    endpoint.contains(&format!("{PATH}/events/")) && endpoint.ends_with(RUNTIME)
}

/// Answers the messages that arrive in `inbox`, at each of its `changes`, until the process ends.
pub async fn run(inbox: Arc<Inbox>, api: Api, mut changes: watch::Receiver<u64>) {
    let mut last = 0;
    loop {
        changes.borrow_and_update();
        let arrived = inbox.newest(usize::MAX);
        let new: Vec<_> = arrived.into_iter().take_while(|event| event.number > last).collect();
        for event in new.iter().rev() {
            last = event.number;
            answer(&api, event).await;
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Repeats the message of a user. The console shows how this request was answered.
async fn answer(api: &Api, event: &Arrived) {
    let Signature::Verified(org) = event.signature else { return };
    let message = &event.body["data"];
    let is_asked = event.to.ends_with(RUNTIME) && event.answered < 300 && message["sender_type"] == "user";
    let organisation = api.organisations().iter().find(|one| one.id == org);
    let text = message["text"].as_str();
    let (Some(organisation), Some(text)) = (organisation, text.filter(|_| is_asked)) else { return };
    let said: String = text.chars().take(REPEATED).collect();
    let body = json!({"sender_type": "bot", "text": format!("You said: {said}"), "in_reply_to": message["id"]});
    let conversation = message["conversation_id"].as_str().unwrap_or_default();
    let request = ApiRequest::of(&routes::ADD_MESSAGE).parameter("conversation_id", conversation).body(&body);
    api.request(organisation, request).await;
}
