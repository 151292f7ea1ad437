//! Conversations like a chat: a list, and beside it the messages of the open one, who is typing, and a form for the next
//! message of a person or the assistant.

use maud::{Markup, html};
use serde::Deserialize as _;
use serde_json::Value;
use shared::routes;
use shared::values::time::Timestamp;

use super::cells::{address, short};
use super::described::{self, PageRecord};
use super::fields::words;
use super::markup::{button, form, member, moment_of, state};
use super::{Asked, Console, ROWS, Shown};
use crate::api::{ApiRequest, OrganisationWithKey};
use crate::names::{KnownNames, cut};

/// How many seconds an answer is awaited until the page says that there is none.
const PATIENCE: i64 = 60;

/// The most conversations whose last message is read for the list.
const PREVIEWED: usize = 30;

impl Console {
    pub(super) async fn conversations(&self, organisation: &OrganisationWithKey, asked: &Asked) -> Shown {
        let conversations = self.api.newest(organisation, &routes::LIST_CONVERSATIONS, ROWS).await?;
        let names = self.names(organisation, conversations.iter()).await;
        let mut listed = Vec::new();
        for conversation in &conversations {
            let is_open = asked.conversation.as_deref() == conversation["id"].as_str();
            let last = match listed.len() {
                0..PREVIEWED => self.last_message(organisation, conversation).await,
                _ => String::new(),
            };
            listed.push(entry(organisation, conversation, &last, is_open, names));
        }
        let assistants = self.choices(organisation, "assistant_id").await;
        let choice = html! {
            label {
                "With "
                select name="assistant_id" { @for (id, name) in &assistants { option value=(id) { (name) } } }
            }
        };
        let chosen = match &asked.conversation {
            Some(id) => self.chat(organisation, id).await?,
            None => {
                html! { div.empty { p { "Open a conversation of the list, or begin one: the runtime on this machine answers what a user says." } } }
            }
        };
        Ok(html! {
            div.chats.chosen[asked.conversation.is_some()] {
                div.chat-list {
                    (form(organisation, &routes::OPEN_CONVERSATION, &[], &choice, "Open a conversation"))
                    ul.live #conversations {
                        @for entry in &listed { (entry) }
                        @if listed.is_empty() { li.empty { "There is no conversation yet." } }
                    }
                }
                (chosen)
            }
        })
    }

    /// The message that was said last, cut.
    async fn last_message(&self, organisation: &OrganisationWithKey, conversation: &Value) -> String {
        let transcript = ApiRequest::of(&routes::READ_CONVERSATION_TRANSCRIPT).query("size=1&order=desc");
        let transcript = transcript.parameter("conversation_id", member(conversation, "id"));
        let newest = self.api.ask(organisation, transcript).await;
        newest.map(|newest| cut(member(&newest["items"][0], "text"))).unwrap_or_default()
    }

    async fn chat(&self, organisation: &OrganisationWithKey, id: &str) -> Shown {
        let of = [("conversation_id", id)];
        let request = |route| ApiRequest::of(route).parameters(of);
        // What the conversation has of its messages is read below.
        let conversation = self.api.ask(organisation, request(&routes::READ_CONVERSATION).query("size=1")).await?;
        let messages = self.api.newest(organisation, request(&routes::READ_CONVERSATION_TRANSCRIPT), ROWS).await?;
        let names = self.names(organisation, std::iter::once(&conversation)).await;
        let name =
            |record, id, other: &str| names.find(record, member(&conversation, id)).unwrap_or_else(|| other.to_owned());
        let assistant = name("assistant", "assistant_id", "The assistant");
        let person = name("contact", "contact_id", "The user");
        let who = |sender: &str| match sender {
            "user" => person.clone(),
            "bot" => assistant.clone(),
            other => words(other),
        };
        let awaited = if conversation["status"] == "open" { self.awaited(messages.first()) } else { None };
        let input = html! {
            label { "As " select name="sender_type" { option value="user" { "user" } option value="bot" { "bot" } } }
            label.wide { span.hidden { "Message" } input name="text" type="text" placeholder="Write a message" autocomplete="off" required; }
        };
        Ok(html! {
            section.chat #conversation {
                header.live #chat-head {
                    div { strong { (who("user")) } " with " strong { (assistant) } " " (state(member(&conversation, "status"))) }
                    (links(organisation, &conversation, names))
                }
                div.transcript tabindex="0" role="log" aria-label="Messages" {
                    div.live #transcript {
                        @if messages.is_empty() { p.empty { "Nothing was said yet. Write as a user." } }
                        @for message in messages.iter().rev() { (bubble(message, &who(member(message, "sender_type")))) }
                        @match awaited {
                            Some(true) => p.typing { (assistant) " is typing" span.dots aria-hidden="true" { i {} i {} i {} } },
                            Some(false) => p.quiet { (assistant) " has not answered." },
                            None => {}
                        }
                    }
                }
                div.compose {
                    (form(organisation, &routes::ADD_MESSAGE, &of, &input, "Send"))
                    (button(organisation, &routes::CLOSE_CONVERSATION, &of, "Close the conversation"))
                }
            }
        })
    }

    /// Whether an answer to the last message is awaited: `None` if a user did not say it, and `false` if it was said long
    /// ago.
    fn awaited(&self, last: Option<&Value>) -> Option<bool> {
        let last = last.filter(|message| message["sender_type"] == "user")?;
        let said = Timestamp::deserialize(&last["created_at"]).ok()?;
        Some(self.clock.now() < said.plus_seconds(PATIENCE))
    }
}

/// A conversation in the list.
fn entry(
    organisation: &OrganisationWithKey,
    conversation: &Value,
    last: &str,
    is_open: bool,
    names: &KnownNames,
) -> Markup {
    let id = member(conversation, "id");
    let name = |record, id| names.find(record, member(conversation, id));
    let with = name("contact", "contact_id").or_else(|| name("assistant", "assistant_id"));
    html! {
        li {
            a href=(format!("/console/conversations?org={}&conversation={id}", organisation.name)) aria-current=[is_open.then_some("true")] {
                span.row { strong { (with.unwrap_or_else(|| short(id))) } (state(member(conversation, "status"))) }
                span.row.quiet {
                    span.last { @if last.is_empty() { "Nothing was said yet" } @else { (last) } }
                    (moment_of(&conversation["updated_at"]))
                }
            }
        }
    }
}

/// A message.
fn bubble(message: &Value, who: &str) -> Markup {
    let sender = member(message, "sender_type");
    html! {
        div.bubble.(sender) {
            span.quiet { (who) " · " (moment_of(&message["created_at"])) }
            p { (member(message, "text")) }
        }
    }
}

/// Links to the records around the conversation, and to its own page.
fn links(organisation: &OrganisationWithKey, conversation: &Value, names: &KnownNames) -> Markup {
    let of = ["contact_id", "widget_id", "assistant_id"];
    let linked = of.into_iter().filter_map(|name| {
        let (id, record): (&str, &PageRecord) = (conversation[name].as_str()?, described::referred(name)?);
        let shown = names.find(record.name, id).unwrap_or_else(|| short(id));
        Some(html! { span { (words(name)) " " a href=(address(organisation, record, Some(id), &[])) { (shown) } } })
    });
    let own =
        described::record("conversation").map(|record| address(organisation, record, conversation["id"].as_str(), &[]));
    html! {
        nav.related aria-label="Records of the conversation" {
            @for link in linked { (link) }
            @if let Some(own) = own { a href=(own) { "All members" } }
        }
    }
}
