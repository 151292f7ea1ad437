//! The start page: the next steps, the last requests and events, the health of webhooks, the campaigns under way.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;
use shared::input::schema::capitalised;
use shared::routes;
use shared::values::time::Timestamp;

use super::events::{answers, event_name};
use super::icons::{self, icon};
use super::layout::linked;
use super::markup::{Tone, badge, button, card, empty, member, progress, record_link, rows, state, status, time_of};
use super::pages::{CAMPAIGNS, CONVERSATIONS, DELIVERIES, EVENTS, REQUESTS};
use super::requests::request_link;
use super::{Console, ROWS};
use crate::api::{ApiRequest, OrganisationWithKey};
use crate::inbox::Arrived;
use crate::journal::Entry;

/// The most requests and events of the timeline.
const MOST: usize = 12;

/// The states of a campaign that is under way.
const UNDER_WAY: [&str; 4] = ["to_be_run", "queued", "in_progress", "paused"];

/// A request or an event.
enum Happened {
    Request(Arc<Entry>),
    Event(Arc<Arrived>),
}

impl Happened {
    fn at(&self) -> Timestamp {
        match self {
            Self::Request(entry) => entry.at,
            Self::Event(event) => event.at,
        }
    }
}

impl Console {
    /// The first page.
    pub(super) async fn start(&self) -> Markup {
        self.learn_names().await;
        let organisations = self.api.organisations();
        let (mut health, mut campaigns) = (Vec::new(), Vec::new());
        for organisation in organisations {
            health.extend(self.health_of(organisation).await);
            campaigns.extend(self.under_way(organisation).await);
        }
        let no_webhook = empty("No webhook, so events are sent nowhere.", &html! {});
        let no_campaign =
            empty("No campaign is under way.", &html! { p { a.button href=(CAMPAIGNS) { "Open the campaigns" } } });
        html! {
            (self.steps().await)
            section.card {
                h2 { "Last requests and events" }
                (rows("timeline", &["Result", "What", "About", "When"], &self.timeline(), nothing_yet()))
            }
            div.cards {
                section.card {
                    h2 { "Health of webhooks" }
                    (rows("health", &["Webhook", "State", "#Waiting", "#Given up"], &health, no_webhook))
                }
                section.card {
                    h2 { "Campaigns under way" }
                    (rows("under-way", &["Campaign", "State", "Progress"], &campaigns, no_campaign))
                }
            }
        }
    }

    /// The next three steps, ticked when they are done.
    async fn steps(&self) -> Markup {
        let entries = self.journal.newest(usize::MAX);
        let events = self.inbox.newest(usize::MAX);
        let answered = |entry: &&Arc<Entry>| (200..300).contains(&entry.status);
        let has_called = entries.iter().filter(answered).any(|entry| !entry.is_own());
        let has_closed = entries.iter().filter(answered).any(|entry| entry.name() == routes::CLOSE_CONVERSATION.name);
        let has_failed = events.iter().any(|event| event.answered >= 400);
        let steps = [
            ("Call the API", has_called, self.call_step()),
            ("Close a conversation", has_closed, self.close_step().await),
            ("Let an event fail", has_failed, self.fail_step().await),
        ];
        let done = steps.iter().filter(|step| step.1).count();
        let content = html! {
            ol.steps.live #steps {
                @for (title, is_done, content) in &steps {
                    li.done[*is_done] {
                        span.tick { @if *is_done { (icon(icons::CHECK)) } }
                        div { h3 { (title) @if *is_done { span.quiet { " · done" } } } (content) }
                    }
                }
            }
        };
        card(if done == steps.len() { "You have seen the essentials" } else { "Next steps" }, &content)
    }

    fn call_step(&self) -> Markup {
        let command =
            format!("curl -H \"Authorization: Bearer $KEY\" \\\n{}{}", self.url, routes::LIST_ASSISTANTS.path);
        html! {
            p { "The request shows below, with each of its calls of the database. The terminal has the keys." }
            div.code {
                a.button.copy href="/console/start/curl" { "Copy with a key" }
                pre tabindex="0" role="region" aria-label="A first request" { (command) }
            }
        }
    }

    /// A button that closes an open conversation, and a link to open one where there is none.
    async fn close_step(&self) -> Markup {
        let Some(organisation) = self.api.organisations().first() else { return html! {} };
        let list = self.api.newest(organisation, &routes::LIST_CONVERSATIONS, ROWS).await.unwrap_or_default();
        let open = list.iter().find(|conversation| conversation["status"] == "open");
        html! {
            p { "Its event arrives in the inbox, signed, and so do its counts." }
            @match open {
                Some(open) => {
                    (button(organisation, &routes::CLOSE_CONVERSATION, &[("conversation_id", member(open, "id"))], "Close a conversation"))
                }
                None => { p { a.button href=(linked(CONVERSATIONS, Some(&organisation.name))) { "Open a conversation" } } }
            }
        }
    }

    /// Buttons that make the inbox fail and then send an event there.
    async fn fail_step(&self) -> Markup {
        let Some(organisation) = self.api.organisations().first() else { return html! {} };
        let list = self.api.newest(organisation, &routes::LIST_WEBHOOKS, ROWS).await.unwrap_or_default();
        let enabled = list.iter().find(|webhook| webhook["enabled"] == true);
        html! {
            p { "Let the inbox fail, and send an event there. Then skip time on the page " a href="/console/time" { "Time" } ", and see the retry." }
            (answers())
            @if let Some(webhook) = enabled {
                (button(organisation, &routes::SEND_TEST_EVENT, &[("webhook_id", member(webhook, "id"))], "Send a test event"))
            }
        }
    }

    /// The last requests and events, the newest first.
    fn timeline(&self) -> Vec<Markup> {
        let requests = self.journal.newest(MOST).into_iter().map(Happened::Request);
        let mut happened: Vec<_> = requests.chain(self.inbox.newest(MOST).into_iter().map(Happened::Event)).collect();
        happened.sort_by_key(|happened| std::cmp::Reverse(happened.at()));
        happened.iter().take(MOST).map(|happened| self.line(happened)).collect()
    }

    fn line(&self, happened: &Happened) -> Markup {
        html! {
            @match happened {
                Happened::Request(entry) => {
                    td { (status(entry.status.into())) }
                    td.wide { span.kind { (icon(icons::REQUESTS)) (request_link(entry)) } }
                    td.about { (self.about_line(entry)) }
                }
                Happened::Event(event) => {
                    td { (status(event.answered.into())) }
                    td.wide { span.kind { (icon(icons::EVENTS)) a href={ (EVENTS) "#event-" (event.number) } { (event_name(event)) } } }
                    td.about { code { (event.to) } }
                }
            }
            td { (time_of(happened.at())) }
        }
    }

    /// The webhooks of an organisation with their health.
    async fn health_of(&self, organisation: &OrganisationWithKey) -> Vec<Markup> {
        let mut lines = Vec::new();
        let webhooks = self.api.newest(organisation, &routes::LIST_WEBHOOKS, ROWS).await.unwrap_or_default();
        for webhook in &webhooks {
            let id = member(webhook, "id");
            let is_open =
                self.health(organisation, id).await.is_ok_and(|health| health.circuit_is_open(self.clock.now()));
            let stats = ApiRequest::of(&routes::READ_DELIVERY_STATS).parameter("webhook_id", id);
            let stats = self.api.ask(organisation, stats).await.unwrap_or_default();
            let sum = |name: &str| {
                stats["hours"].as_array().into_iter().flatten().filter_map(|hour| hour[name].as_u64()).sum::<u64>()
            };
            lines.push(html! {
                td.wide { a href=(linked(DELIVERIES, Some(&organisation.name))) { (capitalised(&organisation.name)) " / " (member(webhook, "name")) } }
                td {
                    @if webhook["enabled"] != true { (badge(Tone::Quiet, "disabled")) }
                    @else if is_open { (badge(Tone::Bad, "circuit open")) }
                    @else { (badge(Tone::Good, "healthy")) }
                }
                td.number { (sum("waiting")) }
                td.number { (sum("failed")) }
            });
        }
        lines
    }

    /// The campaigns of an organisation that are under way.
    async fn under_way(&self, organisation: &OrganisationWithKey) -> Vec<Markup> {
        let all = self.api.newest(organisation, &routes::LIST_CAMPAIGNS, ROWS).await.unwrap_or_default();
        let under_way = all.iter().filter(|campaign| UNDER_WAY.contains(&member(campaign, "status")));
        under_way.map(|campaign| campaign_line(organisation, campaign)).collect()
    }
}

/// What the timeline says while it is empty.
fn nothing_yet() -> Markup {
    empty(
        "Nothing has happened yet. Take the first step above.",
        &html! { p.quiet { a href=(REQUESTS) { "Requests" } " and " a href=(EVENTS) { "events" } " have pages of their own." } },
    )
}

fn campaign_line(organisation: &OrganisationWithKey, campaign: &Value) -> Markup {
    let count = |name: &str| campaign["counts"][name].as_u64().unwrap_or_default();
    let done: u64 = ["sent", "stored", "failed", "suppressed", "cancelled"].into_iter().map(count).sum();
    let name = if campaign["name"].is_null() { member(campaign, "message") } else { member(campaign, "name") };
    html! {
        td.wide { (capitalised(&organisation.name)) " / " (record_link(&organisation.name, "campaign", member(campaign, "id"), name)) }
        td { (state(member(campaign, "status"))) }
        td { (progress(done, done + count("queued"))) }
    }
}

/// The first request as a command, with the key of the first organisation.
pub(super) async fn curl(State(console): State<Arc<Console>>) -> Result<String, StatusCode> {
    let organisation = console.api.organisations().first().ok_or(StatusCode::NOT_FOUND)?;
    let to = format!("{}{}", console.url, routes::LIST_ASSISTANTS.path);
    Ok(format!("curl --header 'Authorization: Bearer {}' '{to}'", organisation.key))
}
