//! The events of the stand-in, in the shapes of the provider's public documentation, with invented ids.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::payments::provider::EVENTS;

/// An event to send. What is not said is made up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default, deny_unknown_fields)]
pub struct NewPaymentEvent {
    /// Its type, such as invoice.paid
    #[serde(rename = "type")]
    #[arg(value_name = "TYPE", value_parser = EVENTS)]
    pub kind: String,
    /// The agency whose webhook gets it; needed where several are set up
    #[arg(long = "agency", value_name = "ID")]
    pub agency_id: Option<String>,
    /// The user who has checked out
    #[arg(long = "user", value_name = "ID")]
    pub user_id: Option<String>,
    /// The customer at the provider [default: a made-up one]
    #[arg(long = "customer", value_name = "ID")]
    pub customer_id: Option<String>,
    /// The subscription at the provider [default: a made-up one]
    #[arg(long = "subscription", value_name = "ID")]
    pub subscription_id: Option<String>,
    /// The subscription's status [default: what the type of the event says]
    #[arg(long, value_name = "WORD")]
    pub status: Option<String>,
    /// The lookup key of the subscription's price
    #[arg(long, value_name = "KEY")]
    pub lookup_key: Option<String>,
    /// The lookup key of the price to which a pending update of the subscription leads
    #[arg(long, value_name = "KEY")]
    pub next_lookup_key: Option<String>,
    /// The subscription's means of payment
    #[arg(long, value_name = "ID")]
    pub payment_method: Option<String>,
    /// Let the subscription end with its period
    #[arg(long)]
    pub ends: bool,
    /// How many seconds ago it happened
    #[arg(long, value_name = "SECONDS", default_value_t)]
    pub seconds_ago: i64,
    /// Its id, to send one once more [default: another one each time]
    #[arg(long = "id", value_name = "ID")]
    pub event_id: Option<String>,
    /// Write it as versions of the provider's API before 2025 did
    #[arg(long)]
    pub old_version: bool,
}

impl NewPaymentEvent {
    /// An event of this type.
    pub fn of(kind: &str) -> Self {
        Self { kind: kind.to_owned(), ..Self::default() }
    }

    /// The event in the provider's form, with `number` in its invented ids, at `now` in seconds since 1970. Its own id
    /// contains both: a restarted stand-in counts from the beginning.
    pub fn body(&self, number: usize, now: i64) -> Value {
        let created = now.saturating_sub(self.seconds_ago);
        let object = match self.kind.split('.').next() {
            Some("checkout") => self.session(number, created),
            Some("invoice") => self.invoice(number, created),
            _ => self.subscription(created),
        };
        json!({
            "id": self.event_id.clone().unwrap_or_else(|| format!("evt_local_{now}_{number:04}")),
            "object": "event",
            "api_version": if self.old_version { "2024-06-20" } else { "2025-09-30.clover" },
            "created": created,
            "data": {"object": object},
            "livemode": false,
            "pending_webhooks": 1,
            "request": {"id": null, "idempotency_key": null},
            "type": self.kind,
        })
    }

    fn customer(&self) -> &str {
        self.customer_id.as_deref().unwrap_or("cus_local")
    }

    fn subscription_name(&self) -> &str {
        self.subscription_id.as_deref().unwrap_or("sub_local")
    }

    fn session(&self, number: usize, created: i64) -> Value {
        json!({
            "id": format!("cs_test_local_{number:04}"),
            "object": "checkout.session",
            "amount_total": 2000,
            "client_reference_id": self.user_id,
            "created": created - 60,
            "currency": "eur",
            "customer": self.customer(),
            "customer_details": {"email": "somebody@example.com", "name": null, "phone": null},
            "livemode": false,
            "metadata": {},
            "mode": "subscription",
            "payment_status": "paid",
            "status": "complete",
            "subscription": self.subscription_name(),
        })
    }

    fn subscription(&self, created: i64) -> Value {
        let by_type = match self.kind.rsplit('.').next() {
            Some("deleted") => "canceled",
            Some("paused") => "paused",
            Some("trial_will_end") => "trialing",
            _ => "active",
        };
        let status = self.status.as_deref().unwrap_or(by_type);
        let (month, fortnight) = (30 * 86_400, 14 * 86_400);
        let trial = (status == "trialing").then_some(created);
        let mut item = json!({
            "id": "si_local",
            "object": "subscription_item",
            "price": {
                "id": "price_local", "object": "price", "active": true, "currency": "eur", "lookup_key": self.lookup_key,
                "recurring": {"interval": "month", "interval_count": 1}, "type": "recurring", "unit_amount": 2000,
            },
            "quantity": 1,
            "subscription": self.subscription_name(),
        });
        let pending = self.next_lookup_key.as_ref().map(|key| {
            let mut next = item.clone();
            next["price"]["lookup_key"] = key.as_str().into();
            json!({"expires_at": created + 86_400, "subscription_items": [next]})
        });
        let mut subscription = json!({
            "id": self.subscription_name(),
            "object": "subscription",
            "cancel_at_period_end": self.ends,
            "canceled_at": (status == "canceled").then_some(created),
            "collection_method": "charge_automatically",
            "created": 1_767_225_600,
            "currency": "eur",
            "customer": self.customer(),
            "default_payment_method": self.payment_method,
            "livemode": false,
            "metadata": {},
            "pending_update": pending,
            "start_date": 1_767_225_600,
            "status": status,
            "trial_end": trial.map(|start| start + fortnight),
            "trial_start": trial,
        });
        // Newer versions have the period in the subscription item.
        let period = if self.old_version { &mut subscription } else { &mut item };
        period["current_period_start"] = created.into();
        period["current_period_end"] = (created + month).into();
        subscription["items"] =
            json!({"object": "list", "data": [item], "has_more": false, "url": "/v1/subscription_items"});
        subscription
    }

    fn invoice(&self, number: usize, created: i64) -> Value {
        let paid = self.kind == "invoice.paid";
        let mut invoice = json!({
            "id": format!("in_local_{number:04}"),
            "object": "invoice",
            "amount_due": 2000,
            "amount_paid": if paid { 2000 } else { 0 },
            "attempt_count": 1,
            "billing_reason": "subscription_cycle",
            "created": created - 3600,
            "currency": "eur",
            "customer": self.customer(),
            "customer_email": "somebody@example.com",
            "livemode": false,
            "metadata": {},
            "status": if paid { "paid" } else { "open" },
            "status_transitions": {
                "finalized_at": created - 1800, "marked_uncollectible_at": null, "paid_at": paid.then_some(created), "voided_at": null,
            },
        });
        let subscription = self.subscription_name();
        if self.old_version {
            invoice["subscription"] = subscription.into();
        } else {
            let details = json!({"metadata": {}, "subscription": subscription});
            invoice["parent"] =
                json!({"type": "subscription_details", "quote_details": null, "subscription_details": details});
        }
        invoice
    }
}
