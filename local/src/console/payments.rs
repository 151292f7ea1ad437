//! Payments: the stand-in for the payment provider sends events, and the users show their effects.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use maud::{Markup, html};
use serde_json::{Value, json};
use shared::payments::provider::EVENTS;
use shared::routes;

use super::cells::{id_to_copy, named, short};
use super::fields::InputField;
use super::markup::{Tone, badge, button, card, member, moment_of, record_link, rows, state};
use super::{Console, ROWS, Shown};
use crate::Trouble;
use crate::api::OrganisationWithKey;
use crate::names::{KnownNames, name_of};
use crate::payment_provider::event::NewPaymentEvent;

impl Console {
    pub(super) async fn payments(&self, organisation: &OrganisationWithKey) -> Shown {
        let agencies = self.api.newest(organisation, &routes::LIST_AGENCIES, ROWS).await?;
        let mut users = self.api.newest(organisation, &routes::GET_AGENT_LIST, ROWS).await?;
        users.sort_by_key(|user| user["payment_customer_id"].is_null());
        let names = self.names(organisation, users.iter()).await;
        let registered = self.payment_provider.endpoints();
        let listed = agencies.iter().map(|agency| {
            let is_set_up = registered.values().any(|endpoint| endpoint.url.ends_with(member(agency, "id")));
            listed(organisation, agency, is_set_up)
        });
        let listed: Vec<_> = listed.collect();
        let charged: Vec<_> = users.iter().map(|user| charged(organisation, user, names)).collect();
        let headings = ["User", "Customer", "Subscription", "Status", "Trial", "Pays", "Plan", "Last payment"];
        Ok(html! {
            section.card {
                h2 { "Webhooks at the payment provider" }
                (rows("agencies", &["Agency", "Id", "Webhook", ""], &listed, "There is no agency."))
            }
            (card("Send an event", &event_form(&agencies, &users)))
            section.card {
                h2 { "Users" }
                (rows("users", &headings, &charged, "There is no user."))
            }
        })
    }
}

/// An agency in the list.
fn listed(organisation: &OrganisationWithKey, agency: &Value, is_set_up: bool) -> Markup {
    let id = member(agency, "id");
    html! {
        td.wide { (record_link(&organisation.name, "agency", id, name_of(agency).unwrap_or_else(|| short(id)))) }
        td { (id_to_copy(id)) }
        td { @if is_set_up { (badge(Tone::Good, "set up")) } @else { (badge(Tone::Quiet, "not set up")) } }
        td.buttons { (button(organisation, &routes::SETUP_PAYMENT_WEBHOOK, &[("agency_id", id)], "Set up")) }
    }
}

/// The form that makes the provider send an event.
fn event_form(agencies: &[Value], users: &[Value]) -> Markup {
    let id = |about: &str| json!({"type": "string", "format": "uuid", "description": about});
    let fields = [
        ("type", json!({"enum": EVENTS, "description": "The type of the event."}), Vec::new()),
        ("agency_id", id("The agency whose webhook gets it."), named(agencies)),
        ("user_id", id("The user who has checked out."), named(users)),
        (
            "customer_id",
            json!({"type": "string", "default": "cus_local", "description": "The customer at the provider."}),
            Vec::new(),
        ),
        (
            "lookup_key",
            json!({"type": "string", "description": "The lookup key of the subscription's price."}),
            Vec::new(),
        ),
    ];
    html! {
        form.request #payment data-method="POST" action="/console/payments" {
            @for (name, schema, choices) in &fields {
                (InputField::of(name, *name != "lookup_key", schema).shown("payment", None, choices))
            }
            button.main { "Send" }
        }
    }
}

/// A user, with the state from the payment provider's events.
fn charged(organisation: &OrganisationWithKey, user: &Value, names: &KnownNames) -> Markup {
    let (id, plan) = (member(user, "id"), member(user, "active_billing_plan_id"));
    let yes = |name: &str| html! { @if user[name] == true { "yes" } @else { span.quiet { "no" } } };
    html! {
        td { (record_link(&organisation.name, "user", id, name_of(user).unwrap_or_else(|| short(id)))) }
        td { (member(user, "payment_customer_id")) }
        td { (member(user, "payment_subscription_id")) }
        td { (state(member(user, "payment_subscription_status"))) }
        td { (yes("is_trial")) }
        td { (yes("is_paying")) }
        td {
            @if !plan.is_empty() {
                (record_link(&organisation.name, "billing-plan", plan, names.find("billing-plan", plan).unwrap_or_else(|| short(plan))))
            }
        }
        td { (moment_of(&user["payment_last_payment_date"])) }
    }
}

/// Makes the payment provider send an event.
pub(super) async fn send(
    State(console): State<Arc<Console>>,
    body: Bytes,
) -> Result<Json<Value>, (StatusCode, Json<Value>)> {
    let event: NewPaymentEvent = serde_json::from_slice(&body)
        .map_err(|error| (StatusCode::BAD_REQUEST, Json(json!({"error": error.to_string()}))))?;
    // The form has sent its request, even if the provider has no receiver for the event.
    Ok(Json(match console.payment_provider.send(&event).await {
        Ok(sent) => {
            json!({"message": format!("{} was answered {}: {}", event.kind, sent.status, sent.answer["data"]["outcome"])})
        }
        Err(Trouble(message)) => json!({"error": message}),
    }))
}
