//! Conversations: the messages of each, and a form for the next message of a person or the assistant.

use maud::{Markup, html};
use serde_json::Value;
use shared::routes;

use super::markup::{button, form, member, moment_of, rows};
use super::{Asked, Console, ROWS, Shown};
use crate::api::OrganisationWithKey;

impl Console {
    pub(super) async fn conversations(&self, organisation: &OrganisationWithKey, asked: &Asked) -> Shown {
        let conversations = self.api.newest(organisation, &routes::LIST_CONVERSATIONS, &[], ROWS).await?;
        let assistants = self.api.newest(organisation, &routes::LIST_ASSISTANTS, &[], ROWS).await?;
        let listed: Vec<_> = conversations.iter().map(|conversation| listed(organisation, conversation)).collect();
        let choice = html! {
            label {
                "With the assistant "
                select name="assistant_id" {
                    @for assistant in &assistants { option value=(member(assistant, "id")) { (member(assistant, "name")) } }
                }
            }
        };
        Ok(html! {
            (form(organisation, &routes::OPEN_CONVERSATION, &[], &choice, "Open a conversation"))
            (rows("conversations", &["Conversation", "Status", "#Messages", "Opened", "Closed"], &listed, "None yet."))
            @if let Some(id) = &asked.conversation { (self.conversation(organisation, id).await?) }
        })
    }

    async fn conversation(&self, organisation: &OrganisationWithKey, id: &str) -> Shown {
        let of = [("conversation_id", id)];
        let messages = self.api.newest(organisation, &routes::READ_CONVERSATION_TRANSCRIPT, &of, ROWS).await?;
        let said: Vec<_> = messages.iter().rev().map(said).collect();
        let message = html! {
            label { "As " select name="sender_type" { option { "user" } option { "bot" } } }
            label.wide { "Message " input name="text" type="text" required; }
        };
        Ok(html! {
            h2 #conversation { "Conversation " code { (id) } }
            (rows("transcript", &["Time", "Who", "What"], &said, "Nothing was said yet."))
            (form(organisation, &routes::ADD_MESSAGE, &of, &message, "Write"))
            (button(organisation, &routes::CLOSE_CONVERSATION, &of, "Close the conversation"))
        })
    }
}

fn listed(organisation: &OrganisationWithKey, conversation: &Value) -> Markup {
    let id = member(conversation, "id");
    html! {
        td { a href=(format!("/console/conversations?org={}&conversation={id}#conversation", organisation.name)) { code { (id) } } }
        td { (member(conversation, "status")) }
        td.number { (conversation["chat_count"]) }
        td { (moment_of(&conversation["created_at"])) }
        td { (moment_of(&conversation["closed_at"])) }
    }
}

fn said(message: &Value) -> Markup {
    html! {
        td { (moment_of(&message["created_at"])) }
        td { (member(message, "sender_type")) }
        td.wide { (member(message, "text")) }
    }
}
