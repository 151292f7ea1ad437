//! Agencies (resellers), their billing plans, and their webhooks at the payment provider.

use serde::{Deserialize, Serialize};

use crate::input::Count;
use crate::table::keys::Key;
use crate::values::id::{AgencyId, BillingPlanId, OrgId};
use crate::values::json::{JsonObject, is_masked};
use crate::values::secret::Secret;
use crate::values::tenant::Tenant;

crate::record! {
    /// An agency.
    pub struct Agency(AgencyId): listed("AGENCY", pointers Agency::pointer) {
        /// The organisation. If the body names one, it must be the caller's.
        org org_id: OrgId,
        /// Free-form.
        input branding: JsonObject = JsonObject::default(),
        /// Free-form.
        input domain: JsonObject = JsonObject::default(),
        /// Free-form. `payment_api_key` in it is the key for the payment provider. It is answered as its first 7 and last 4 characters.
        input(masks payment_api_key) billing_plan: JsonObject = JsonObject::default(),
        /// Free-form.
        input user_auth: JsonObject = JsonObject::default(),
        /// Its webhook at the payment provider, after it was set up.
        hidden payment_webhook: Option<StoredPaymentWebhook> = None,
        /// How many set-ups have failed: the provider repeats the first answer to an idempotency key, a failure too, for a day.
        hidden failed_setups: Option<u32> = None,
    }
}

impl Agency {
    /// The key for the payment provider, if the agency has one.
    pub fn payment_api_key(&self) -> Option<String> {
        self.billing_plan.text("payment_api_key").filter(|key| !key.is_empty() && !is_masked(key))
    }

    /// By which the events of the payment provider find it, after its webhook was set up.
    fn pointer(&self, tenant: &Tenant) -> Vec<Key> {
        let webhook = self.payment_webhook.as_ref().filter(|webhook| webhook.has_pointer);
        webhook.map(|_| payment_webhook(tenant, self.id)).into_iter().collect()
    }
}

crate::record! {
    /// A billing plan of an agency.
    pub struct BillingPlan(BillingPlanId): listed("BILLING_PLAN" of AgencyId => Agency) {
        /// What people read.
        input name: String,
        /// What it is for.
        input description: String,
        /// Quota of bots.
        input bots_count: Count,
        /// Quota of queries.
        input queries_count: Count,
        /// Quota of words.
        input words_count: Count,
        /// Quota of voice, in seconds.
        input voice_seconds: Count,
        /// Whether support is premium.
        input premium_support: bool,
        /// Whether it is the plan for new customers.
        input default_plan: bool = false,
        /// Whether our brand is hidden.
        input remove_branding: bool = false,
        /// Whether advanced intents are in it.
        input advanced_intents: bool = false,
        /// Whether automatic intents are in it.
        input auto_intents: bool = false,
        /// Plans of one group exclude each other.
        input billing_plan_group: Option<String> = None,
        /// Free-form.
        input credits: JsonObject = JsonObject::default(),
        /// Free-form.
        input attributes: JsonObject = JsonObject::default(),
        /// The agency.
        parent agency_id: AgencyId,
        /// Key of the plan at the payment provider.
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
        /// The agency.
        pub agency_id: AgencyId,
        /// The provider's id of the endpoint.
        pub payment_webhook_id: String,
        /// Where the provider sends its events.
        pub url: String,
        /// The events it sends.
        pub enabled_events: Vec<String>,
        /// Whether it was created or updated.
        pub status: SetupStatus,
    }
}

crate::object! {
    /// An agency's webhook at the payment provider, as the provider says now.
    #[derive(Default)]
    pub struct PaymentWebhookState {
        /// Whether the provider has it.
        pub configured: bool,
        /// The provider's id of the endpoint.
        pub payment_webhook_id: Option<String>,
        /// Where the provider sends its events.
        pub url: Option<String>,
        /// The events it sends.
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

/// The pointer to an agency that gets the events of the payment provider, which name nothing but the agency. The sort key says the
/// organisation.
pub fn payment_webhook(tenant: &Tenant, agency: AgencyId) -> Key {
    Key::new(payment_webhooks(agency), format_args!("ORG#{}", tenant.org()))
}

/// The partition of the pointers to an agency: one at most.
pub fn payment_webhooks(agency: AgencyId) -> String {
    format!("PAYMENT_WEBHOOK#{agency}")
}

/// What is stored of an agency's webhook at the payment provider. It is never answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredPaymentWebhook {
    /// The provider's id of the endpoint.
    pub payment_webhook_id: String,
    /// The secret that the provider signs its events with. The provider answers it only once.
    pub secret: Secret,
    /// Whether a pointer leads to the agency. A webhook that was stored before its events were received has none, and gets it by the
    /// next set-up.
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
        /// What became of the event.
        pub outcome: PaymentEventOutcome,
    }
}
