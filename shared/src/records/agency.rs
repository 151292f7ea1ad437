//! Agencies (resellers), their billing plans, and their webhooks at the payment provider.

mod plans;

use serde::{Deserialize, Serialize};

use crate::input::Count;
use crate::table::keys::Key;
use crate::table::plan_limits::Overage;
use crate::values::id::{AgencyId, BillingPlanId, OrgId, UserId};
use crate::values::json::{GuardedObject, JsonObject};
use crate::values::mask::is_masked;
use crate::values::secret::{FoundSecret, HoldsSecrets, Secret, StoredSecret};
use crate::values::tenant::Tenant;
use crate::values::text::{Description, Name};
use crate::values::time::Timestamp;
pub use plans::{create_plan, update_plan};

crate::record! {
    /// An agency. Secrets in its objects are answered masked: texts whose names end with a word such as `secret`, `api_key`, `token` or `password`, and texts such as `sk_…` and `whsec_…`. If an update sends a masked text back, the secret stays as it is.
    pub struct Agency(AgencyId): listed("AGENCY", pointers Agency::pointer) {
        /// The organisation that owns the agency. A body may leave it out; if it names one, it must be that of the API key.
        org org_id: OrgId,
        /// The agency's branding, such as logo and colours. The service stores it and does not read it.
        input(masks) branding: GuardedObject = GuardedObject::default(),
        /// The agency's domains. The service stores them and does not read them.
        input(masks) domain: GuardedObject = GuardedObject::default(),
        /// Free-form. `payment_api_key` in it is the key for the payment provider. It is answered masked, as every secret of an agency: its first 7 and last 4 characters, or nothing of it if it has fewer than 20.
        input(masks) billing_plan: GuardedObject = GuardedObject::default(),
        /// How the agency's users sign in. The service stores it and does not read it.
        input(masks) user_auth: GuardedObject = GuardedObject::default(),
        /// Its webhook at the payment provider, once it is set up.
        hidden(sealed) payment_webhook: Option<StoredPaymentWebhook> = None,
        /// The number of failed set-ups: for a day, the provider repeats its first answer to an idempotency key, even a
        /// failure.
        hidden failed_setups: Option<u32> = None,
        /// The checkouts that were refused, the oldest first.
        hidden refused_checkouts: Option<Vec<RefusedCheckout>> = None,
    }
}

/// The member of the billing plan that has the key for the payment provider.
const PAYMENT_API_KEY: &str = "payment_api_key";

/// The key for the payment provider in `plan`, which is open.
pub fn payment_api_key(plan: &GuardedObject) -> Option<String> {
    plan.text(PAYMENT_API_KEY).filter(|key| !key.is_empty() && !is_masked(key))
}

/// Seconds for which a refused checkout is shown.
const SHOWN: i64 = 30 * 86_400;
/// The most refused checkouts that an agency keeps. The oldest ones are dropped first.
const MOST_REFUSED: usize = 20;

impl Agency {
    /// The key for the payment provider, if the agency has one and its secrets are open.
    pub fn payment_api_key(&self) -> Option<String> {
        payment_api_key(&self.billing_plan)
    }

    /// The key for the payment provider as the table has it, if the agency has one: open, or in its sealed billing plan.
    pub fn stored_payment_key(&self) -> Option<StoredSecret> {
        if self.billing_plan.stored().open().is_some() {
            return self.payment_api_key().map(|key| Secret::from(key).into());
        }
        self.billing_plan.has_text(PAYMENT_API_KEY).then(|| self.billing_plan.stored().clone())
    }

    /// Whether its key for the payment provider is of live mode. `None` if the key does not say.
    pub fn is_live(&self) -> Option<bool> {
        let key = self.payment_api_key()?;
        let mode = ["sk_", "rk_"].into_iter().find_map(|kind| key.strip_prefix(kind))?;
        if mode.starts_with("live_") { Some(true) } else { mode.starts_with("test_").then_some(false) }
    }

    /// Keeps a checkout that was refused, once per event.
    pub fn refuse(&mut self, checkout: &RefusedCheckout) {
        let refused = self.refused_checkouts.get_or_insert_default();
        if refused.iter().any(|known| known.event_id == checkout.event_id) {
            return;
        }
        refused.push(checkout.clone());
        let surplus = refused.len().saturating_sub(MOST_REFUSED);
        refused.drain(..surplus);
    }

    /// The checkouts that were refused within thirty days before `now`, the oldest first.
    pub fn refused(&self, now: Timestamp) -> Vec<RefusedCheckout> {
        let is_shown = |checkout: &&RefusedCheckout| now < checkout.refused_at.plus_seconds(SHOWN);
        self.refused_checkouts.iter().flatten().filter(is_shown).cloned().collect()
    }

    /// The pointer by which events of the payment provider find the agency, once its webhook is set up.
    fn pointer(&self, tenant: &Tenant) -> Vec<Key> {
        let webhook = self.payment_webhook.as_ref().filter(|webhook| webhook.has_pointer);
        webhook.map(|_| payment_webhook(tenant, self.id)).into_iter().collect()
    }
}

crate::record! {
    /// A billing plan of an agency.
    pub struct BillingPlan(BillingPlanId): listed("BILLING_PLAN" of AgencyId => Agency, pointers BillingPlan::pointer) {
        /// Name of the plan, shown to customers.
        input name: Name,
        /// What the plan offers, shown to customers.
        input description: Description,
        /// Quota: how many assistants a customer of this plan may have.
        input bots_count: Count,
        /// Quota: how many answers of assistants a customer of this plan may use in a billing period.
        input queries_count: Count,
        /// Quota: how many words of data sources a customer of this plan may use in a billing period.
        input words_count: Count,
        /// Quota: how many seconds of voice a customer of this plan may use in a billing period.
        input voice_seconds: Count,
        /// What happens where a customer of this plan would use more: `allow` and `notify` allow it, `block` refuses it with 402. With `notify`, `read-usage` says since when.
        input overage: Overage = Overage::Allow,
        /// True if customers of this plan get premium support.
        input premium_support: bool,
        /// True if customers without another plan have this plan: that of the newest agency that has one. If a create or an update sets this, the former default of the agency loses it.
        input default_plan: bool = false,
        /// True if the brand of the service is hidden from customers of this plan.
        input remove_branding: bool = false,
        /// True if the plan includes advanced intents.
        input advanced_intents: bool = false,
        /// True if the plan includes automatic intents.
        input auto_intents: bool = false,
        /// Name of a group of plans. A customer has at most one plan of a group.
        input billing_plan_group: Option<String> = None,
        /// The credits that the plan gives. The service stores them and does not read them.
        input credits: JsonObject = JsonObject::default(),
        /// Any JSON object of your own. The service stores it and does not read it.
        input attributes: JsonObject = JsonObject::default(),
        /// The agency that offers the plan.
        parent agency_id: AgencyId,
        /// Lookup key of the plan's price at the payment provider. A subscription to this price puts the customer on this plan.
        input plan_lookup_key: Option<String> = None,
    }
}

crate::choice! {
    /// The result of setting up the payment webhook.
    pub enum SetupStatus {
        Created = "created",
        Updated = "updated",
    }
}

crate::object! {
    /// An agency's webhook at the payment provider, without its secret.
    pub struct PaymentWebhook {
        /// The agency that offers the plan.
        pub agency_id: AgencyId,
        /// Identifier of the webhook endpoint at the payment provider.
        pub payment_webhook_id: String,
        /// Address to which the payment provider sends its events.
        pub url: String,
        /// Types of events that the payment provider sends.
        pub enabled_events: Vec<String>,
        /// Whether it was created or updated.
        pub status: SetupStatus,
    }
}

crate::object! {
    /// A checkout that was refused: it names a user whose subscription goes on with another customer.
    pub struct RefusedCheckout {
        /// Identifier of the event at the payment provider. If the provider sends it again after the subscription has ended, it counts.
        pub event_id: String,
        /// The user that it names.
        pub user_id: UserId,
        /// Identifier of its customer at the payment provider.
        pub customer_id: String,
        /// When it was refused first.
        pub refused_at: Timestamp,
    }
}

crate::object! {
    /// An agency's webhook at the payment provider, as the provider says now.
    #[derive(Default)]
    pub struct PaymentWebhookState {
        /// True if the payment provider has the webhook.
        pub configured: bool,
        /// Identifier of the webhook endpoint at the payment provider.
        pub payment_webhook_id: Option<String>,
        /// Address to which the payment provider sends its events.
        pub url: Option<String>,
        /// Types of events that the payment provider sends.
        pub enabled_events: Vec<String>,
        /// What the provider says of it, such as `enabled`.
        pub status: Option<String>,
        /// Checkouts of the last thirty days that were refused because the user's subscription goes on with another customer, the oldest first: twenty at most.
        pub refused_checkouts: Vec<RefusedCheckout>,
    }
}

impl PaymentWebhook {
    /// The endpoint `payment_webhook_id` of the agency `agency_id`.
    pub fn new(
        agency_id: AgencyId,
        payment_webhook_id: &str,
        url: String,
        events: &[&str],
        status: SetupStatus,
    ) -> Self {
        let enabled_events = events.iter().map(|event| (*event).to_owned()).collect();
        Self { agency_id, payment_webhook_id: payment_webhook_id.to_owned(), url, enabled_events, status }
    }
}

/// The pointer to an agency that gets events of the payment provider. Their address names only the agency. The sort key
/// has the organisation.
pub fn payment_webhook(tenant: &Tenant, agency: AgencyId) -> Key {
    Key::new(payment_webhooks(agency), format_args!("ORG#{}", tenant.org()))
}

/// The partition of the pointers to an agency: one at most.
pub fn payment_webhooks(agency: AgencyId) -> String {
    format!("PAYMENT_WEBHOOK#{agency}")
}

/// The stored part of an agency's webhook at the payment provider. No answer contains it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredPaymentWebhook {
    /// Identifier of the webhook endpoint at the payment provider.
    pub payment_webhook_id: String,
    /// The secret with which the provider signs its events. The provider returns it only once.
    pub secret: StoredSecret,
    /// Whether a pointer leads to the agency. A webhook that was stored before the service received its events has
    /// none; the next set-up adds it.
    #[serde(default)]
    pub has_pointer: bool,
}

impl HoldsSecrets for StoredPaymentWebhook {
    fn secrets<'a>(&'a mut self, found: &mut Vec<FoundSecret<'a>>) {
        self.secret.secrets(found);
    }
}

crate::choice! {
    /// What became of an event of the payment provider.
    pub enum PaymentEventOutcome {
        /// It changed what is known of a user.
        Applied = "applied",
        /// It is kept until it is known whose customer it is about.
        Kept = "kept",
        /// A newer event had it before.
        Superseded = "superseded",
        /// It had come before.
        Repeated = "repeated",
        /// The service does nothing about it.
        Ignored = "ignored",
    }
}

crate::object! {
    /// The answer to an event of the payment provider.
    pub struct PaymentEventReceipt {
        /// What the service did with the event.
        pub outcome: PaymentEventOutcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_shows_the_mode_of_the_agency() {
        for (key, is_live) in [
            ("sk_live_1", Some(true)),
            ("rk_live_1", Some(true)),
            ("sk_test_1", Some(false)),
            ("rk_test_1", Some(false)),
            ("sk_demo_1", None),
            ("live_1", None),
            ("sk_livestock", None),
            ("", None),
        ] {
            let plan = serde_json::json!({"payment_api_key": key});
            let agency = serde_json::json!({"id": AgencyId(uuid::Uuid::nil()), "org_id": OrgId(uuid::Uuid::nil()), "billing_plan": plan});
            let agency: Agency = serde_json::from_value(agency).unwrap();
            assert_eq!(agency.is_live(), is_live, "{key}");
        }
    }

    #[test]
    fn an_agency_keeps_the_newest_refused_checkouts_for_thirty_days() {
        let agency = serde_json::json!({"id": AgencyId(uuid::Uuid::nil()), "org_id": OrgId(uuid::Uuid::nil())});
        let mut agency: Agency = serde_json::from_value(agency).unwrap();
        let (user_id, customer_id) = (UserId(uuid::Uuid::nil()), "cus_1".to_owned());
        for number in (0..25).chain(10..25) {
            let (event_id, refused_at) = (format!("evt_{number}"), Timestamp::from_unix_millis(number * 1000));
            agency.refuse(&RefusedCheckout { event_id, user_id, customer_id: customer_id.clone(), refused_at });
        }
        let shown = |now: i64| -> Vec<String> {
            agency.refused(Timestamp::from_unix_millis(now)).into_iter().map(|checkout| checkout.event_id).collect()
        };
        assert_eq!(shown(0), (5..25).map(|number| format!("evt_{number}")).collect::<Vec<_>>());
        assert_eq!(shown((SHOWN + 23) * 1000), ["evt_24"]);
    }
}
