//! Agencies (resellers), their billing plans, and their webhooks at the payment provider.

use serde::{Deserialize, Serialize};

use crate::input::Count;
use crate::table::keys::Key;
use crate::values::id::{AgencyId, BillingPlanId, OrgId, UserId};
use crate::values::json::JsonObject;
use crate::values::mask::is_masked;
use crate::values::secret::Secret;
use crate::values::tenant::Tenant;
use crate::values::text::{Description, Name};

crate::record! {
    /// An agency. Secrets in its objects are answered masked: texts whose names end with a word such as `secret`, `api_key`, `token` or `password`, and texts such as `sk_…` and `whsec_…`. If an update sends a masked text back, the secret stays as it is.
    pub struct Agency(AgencyId): listed("AGENCY", pointers Agency::pointer) {
        /// The organisation that owns the agency. A body may leave it out; if it names one, it must be that of the API key.
        org org_id: OrgId,
        /// The agency's branding, such as logo and colours. The service stores it and does not read it.
        input(masks) branding: JsonObject = JsonObject::default(),
        /// The agency's domains. The service stores them and does not read them.
        input(masks) domain: JsonObject = JsonObject::default(),
        /// Free-form. `payment_api_key` in it is the key for the payment provider. It is answered masked, as every secret of an agency: its first 7 and last 4 characters, or nothing of it if it has fewer than 20.
        input(masks) billing_plan: JsonObject = JsonObject::default(),
        /// How the agency's users sign in. The service stores it and does not read it.
        input(masks) user_auth: JsonObject = JsonObject::default(),
        /// Its webhook at the payment provider, once it is set up.
        hidden payment_webhook: Option<StoredPaymentWebhook> = None,
        /// The number of failed set-ups: for a day, the provider repeats its first answer to an idempotency key, even a
        /// failure.
        hidden failed_setups: Option<u32> = None,
    }
}

impl Agency {
    /// The key for the payment provider, if the agency has one.
    pub fn payment_api_key(&self) -> Option<String> {
        self.billing_plan.text("payment_api_key").filter(|key| !key.is_empty() && !is_masked(key))
    }

    /// The pointer by which events of the payment provider find the agency, once its webhook is set up.
    fn pointer(&self, tenant: &Tenant) -> Vec<Key> {
        let webhook = self.payment_webhook.as_ref().filter(|webhook| webhook.has_pointer);
        webhook.map(|_| payment_webhook(tenant, self.id)).into_iter().collect()
    }
}

crate::record! {
    /// A billing plan of an agency.
    pub struct BillingPlan(BillingPlanId): listed("BILLING_PLAN" of AgencyId => Agency) {
        /// Name of the plan, shown to customers.
        input name: Name,
        /// What the plan offers, shown to customers.
        input description: Description,
        /// Quota: how many bots a customer of this plan may have.
        input bots_count: Count,
        /// Quota: how many queries a customer of this plan may make.
        input queries_count: Count,
        /// Quota: how many words a customer of this plan may use.
        input words_count: Count,
        /// Quota: how many seconds of voice a customer of this plan may use.
        input voice_seconds: Count,
        /// True if customers of this plan get premium support.
        input premium_support: bool,
        /// True if new customers get this plan.
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
    pub secret: Secret,
    /// Whether a pointer leads to the agency. A webhook that was stored before the service received its events has
    /// none; the next set-up adds it.
    #[serde(default)]
    pub has_pointer: bool,
}

crate::choice! {
    /// What became of an event of the payment provider.
    pub enum PaymentEventOutcome {
        /// It changed what is known of a user.
        Applied = "applied",
        /// It is kept until it is known whose customer it is about.
        Kept = "kept",
        /// A newer event had told it before.
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
