//! Webhooks with their health, and the deliveries of each with every attempt: the request, the check of its signature,
//! the answer.

use std::sync::Arc;

use maud::{Markup, html};
use serde::Deserialize as _;
use serde_json::Value;
use shared::records::delivery;
use shared::records::delivery::EndpointHealth;
use shared::routes;
use shared::table::Table;
use shared::values::id::EndpointId;
use shared::values::tenant::Tenant;
use shared::values::time::Timestamp;

use super::events::{answers, sent, signature};
use super::markup::{Tone, badge, button, member, moment_of, rows, state, status, time_of};
use super::{Console, ROWS, Shown};
use crate::api::{ApiRequest, OrganisationWithKey};
use crate::inbox::Arrived;

impl Console {
    pub(super) async fn deliveries(&self, organisation: &OrganisationWithKey) -> Shown {
        let webhooks = self.api.newest(organisation, &routes::LIST_WEBHOOKS, ROWS).await?;
        let arrived = self.inbox.newest(usize::MAX);
        let (mut healths, mut deliveries) = (Vec::new(), Vec::new());
        for webhook in &webhooks {
            let id = member(webhook, "id");
            let health = self.health(organisation, id).await?;
            healths.push(listed(organisation, webhook, &health, health.circuit_is_open(self.clock.now())));
            let list = ApiRequest::of(&routes::LIST_DELIVERIES).parameter("webhook_id", id);
            let all = self.api.newest(organisation, list, ROWS).await?;
            deliveries.extend(all.into_iter().map(|delivery| (webhook, delivery)));
        }
        // Of several webhooks, the newest delivery comes first.
        deliveries.sort_by(|(_, one), (_, other)| member(other, "created_at").cmp(member(one, "created_at")));
        let deliveries: Vec<_> = deliveries
            .iter()
            .map(|(webhook, delivery)| self.delivery(organisation, webhook, delivery, &arrived))
            .collect();
        Ok(html! {
            h2 { "Webhooks" }
            (rows("webhooks", &["Webhook", "Enabled", "Circuit", "#Failures in a row", "Failing since", ""], &healths, "None yet."))
            h2 { "Deliveries" }
            (answers())
            (rows("deliveries", &["State", "Event", "From the request", "#Attempts", "#Answer", "Next attempt", "When", ""], &deliveries, "None yet. Close a conversation."))
        })
    }

    /// The state of the circuit breaker of a webhook: no operation returns it.
    pub(super) async fn health(
        &self,
        organisation: &OrganisationWithKey,
        webhook: &str,
    ) -> Result<EndpointHealth, String> {
        #[expect(clippy::disallowed_methods, reason = "the user of the stack is its operator")]
        let table = Table::new(self.store.clone(), Tenant::operator(organisation.id));
        let id = webhook.parse().map(EndpointId).map_err(|_| format!("no webhook {webhook}"))?;
        delivery::health::of(&table, id).await.map_err(|error| error.to_string())
    }

    fn delivery(
        &self,
        organisation: &OrganisationWithKey,
        webhook: &Value,
        delivery: &Value,
        arrived: &[Arc<Arrived>],
    ) -> Markup {
        let id = member(delivery, "id");
        let (endpoint, event) = (member(webhook, "endpoint"), member(delivery, "event_id"));
        let is = |arrived: &&Arc<Arrived>| {
            arrived.headers.get("webhook-id").is_some_and(|sent| sent == event) && endpoint.ends_with(&arrived.to)
        };
        let mut arrived: Vec<_> = arrived.iter().rev().filter(is).collect();
        let attempts = delivery["log"].as_array().into_iter().flatten().map(|attempt| {
            let place = arrived.iter().position(|arrived| is_of(arrived, attempt));
            (attempt, place.map(|place| arrived.remove(place)))
        });
        let attempts: Vec<_> = attempts.collect();
        let request = self.request_of(self.journal.traces.of_event(event).as_deref());
        html! {
            td { (state(member(delivery, "state"))) }
            td.wide {
                details id={ "delivery-" (id) } {
                    summary { (member(delivery, "event")) " to " code { (endpoint) } }
                    ol {
                        @for (attempt, arrived) in attempts {
                            li.attempt {
                                (moment_of(&attempt["at"])) ", " (attempt["milliseconds"]) " ms, "
                                @match attempt["status"].as_u64() {
                                    Some(answered) => { "answered " (status(answered)) " " code { (member(attempt, "answer")) } }
                                    None => { span.bad { (member(attempt, "error")) } }
                                }
                                @if let Some(event) = arrived {
                                    ", signature " (signature(event))
                                    details id={ "delivery-" (id) "-" (event.number) } { summary { "Headers and body" } (sent(event)) }
                                }
                            }
                        }
                    }
                }
                @if !member(delivery, "error").is_empty() { div { (member(delivery, "error")) } }
            }
            td { (request) }
            td.number { (delivery["attempts"]) }
            td.number { @if let Some(answered) = delivery["status"].as_u64() { (status(answered)) } }
            td { (moment_of(&delivery["next_attempt_at"])) }
            td { (moment_of(&delivery["created_at"])) }
            td.buttons {
                (button(organisation, &routes::REDELIVER, &[("delivery_id", id), ("webhook_id", member(webhook, "id"))], "Redeliver"))
            }
        }
    }
}

fn listed(organisation: &OrganisationWithKey, webhook: &Value, health: &EndpointHealth, is_open: bool) -> Markup {
    let (id, enabled) = (member(webhook, "id"), webhook["enabled"] == true);
    html! {
        td.wide { (member(webhook, "name")) div { code { (member(webhook, "endpoint")) } } }
        td { @if enabled { "yes" } @else { (badge(Tone::Bad, format!("no {}", member(webhook, "disabled_reason")))) } }
        td { @if is_open { (badge(Tone::Bad, if health.slow { "open, slow" } else { "open" })) } @else { (badge(Tone::Good, "closed")) } }
        td.number { (health.failures) }
        td { @if let Some(since) = health.failing_since { (time_of(since)) } }
        td.buttons { (button(organisation, &routes::SEND_TEST_EVENT, &[("webhook_id", id)], "Send a test event")) }
    }
}

/// Whether `attempt` delivered it: its signature has the second in which the attempt began.
fn is_of(arrived: &Arrived, attempt: &Value) -> bool {
    let began = Timestamp::deserialize(&attempt["at"]).map(Timestamp::unix_seconds).ok();
    began.is_some_and(|began| arrived.headers.get("webhook-timestamp").is_some_and(|at| *at == began.to_string()))
}
