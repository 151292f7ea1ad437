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

use super::markup::{button, member, moment_of, rows};
use super::{Console, ROWS, Shown};
use crate::Trouble;
use crate::api::OrganisationWithKey;
use crate::payment_provider::event::NewPaymentEvent;

impl Console {
    pub(super) async fn payments(&self, organisation: &OrganisationWithKey) -> Shown {
        let agencies = self.api.newest(organisation, &routes::LIST_AGENCIES, ROWS).await?;
        let mut users = self.api.newest(organisation, &routes::GET_AGENT_LIST, ROWS).await?;
        users.sort_by_key(|user| user["payment_customer_id"].is_null());
        let registered = self.payment_provider.endpoints();
        let listed: Vec<_> = agencies
            .iter()
            .map(|agency| {
                let id = member(agency, "id");
                let is_set_up = registered.values().any(|endpoint| endpoint.url.ends_with(id));
                html! {
                    td.wide { code { (id) } }
                    td { @if is_set_up { span.good { "set up" } } @else { "not set up" } }
                    td.buttons { (button(organisation, &routes::SETUP_PAYMENT_WEBHOOK, &[("agency_id", id)], "Set up")) }
                }
            })
            .collect();
        let charged: Vec<_> = users.iter().map(charged).collect();
        Ok(html! {
            h2 { "Webhooks at the payment provider" }
            (rows("agencies", &["Agency", "Webhook", ""], &listed, "There is no agency."))
            h2 { "Send an event" }
            form #payment data-method="POST" action="/console/payments" {
                label { "Event " select name="type" { @for event in EVENTS { option { (event) } } } }
                label { "Agency " select name="agency_id" { @for agency in &agencies { option { (member(agency, "id")) } } } }
                label { "User " select name="user_id" { @for user in &users { option value=(member(user, "id")) { (member(user, "email")) } } } }
                label { "Customer " input name="customer_id" type="text" value="cus_local" required; }
                label { "Lookup key of the price " input name="lookup_key" type="text"; }
                button { "Send" }
            }
            h2 { "Users" }
            (rows("users", &["User", "Customer", "Subscription", "Status", "Trial", "Pays", "Plan", "Last payment"], &charged, "There is no user."))
        })
    }
}

/// A user, with the state from the payment provider's events.
fn charged(user: &Value) -> Markup {
    let yes = |name: &str| if user[name] == true { "yes" } else { "no" };
    html! {
        td { (member(user, "email")) }
        td { (member(user, "payment_customer_id")) }
        td { (member(user, "payment_subscription_id")) }
        td { (member(user, "payment_subscription_status")) }
        td { (yes("is_trial")) }
        td { (yes("is_paying")) }
        td { code { (member(user, "active_billing_plan_id")) } }
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
