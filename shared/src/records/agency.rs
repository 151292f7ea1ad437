//! Agencies (resellers), their billing plans, and their webhook at the payment provider.

pub mod payment_provider;

use serde::{Deserialize, Serialize};

use crate::request::input::Count;
use crate::values::id::{AgencyId, BillingPlanId, OrgId};
use crate::values::json::JsonObject;
use crate::values::secret::Secret;

crate::input! {
    /// What create-agency takes, and what an agency keeps.
    #[derive(Clone, PartialEq, Serialize, Deserialize)]
    pub struct AgencyFields {
        /// The organisation; the key's, if anything.
        pub org_id: Option<OrgId> = None,
        /// Free-form.
        pub branding: JsonObject = JsonObject::default(),
        /// Free-form.
        pub domain: JsonObject = JsonObject::default(),
        /// Free-form; `payment_api_key` in it opens the payment provider.
        pub billing_plan: JsonObject = JsonObject::default(),
        /// Free-form.
        pub user_auth: JsonObject = JsonObject::default(),
    }
}

crate::record! {
    /// An agency.
    pub struct Agency {
        /// Identifier.
        pub id: AgencyId,
        .. pub fields: AgencyFields,
    }
}

impl Agency {
    /// The key that opens the payment provider, where the agency has one.
    pub fn payment_api_key(&self) -> Option<String> {
        self.fields.billing_plan.text("payment_api_key").filter(|key| !key.is_empty())
    }
}

crate::input! {
    /// What create-agency-billing-plan takes, and what a plan keeps.
    #[derive(Clone, PartialEq, Serialize, Deserialize)]
    pub struct BillingPlanFields {
        /// What people read.
        pub name: String,
        /// What it is for.
        pub description: String,
        /// Quota of bots.
        pub bots_count: Count,
        /// Quota of queries.
        pub queries_count: Count,
        /// Quota of words.
        pub words_count: Count,
        /// Quota of voice, in seconds.
        pub voice_seconds: Count,
        /// Whether support is premium.
        pub premium_support: bool,
        /// Whether it is the plan that one starts with.
        pub default_plan: bool = false,
        /// Whether our brand is hidden.
        pub remove_branding: bool = false,
        /// Whether advanced intents are in it.
        pub advanced_intents: bool = false,
        /// Whether automatic intents are in it.
        pub auto_intents: bool = false,
        /// Plans of one group exclude each other.
        pub billing_plan_group: Option<String> = None,
        /// Free-form.
        pub credits: JsonObject = JsonObject::default(),
        /// Free-form.
        pub attributes: JsonObject = JsonObject::default(),
        /// The agency; the path's, if anything.
        pub agency_id: Option<AgencyId> = None,
        /// Key of the plan at the payment provider.
        pub plan_lookup_key: Option<String> = None,
    }
}

crate::record! {
    /// A billing plan of an agency.
    pub struct BillingPlan {
        /// Identifier.
        pub id: BillingPlanId,
        .. pub fields: BillingPlanFields,
    }
}

crate::choice! {
    /// What setting up the payment webhook came to.
    pub enum SetupStatus {
        Created = "created",
        Updated = "updated",
    }
}

crate::record! {
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
        /// Whether it was made or brought up to date.
        pub status: SetupStatus,
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

crate::record! {
    /// What is kept of an agency's webhook at the payment provider. Stored, never printed.
    pub struct StoredPaymentWebhook {
        /// The provider's id of the endpoint.
        pub payment_webhook_id: String,
        /// What the provider signs its events with; it tells it once.
        pub secret: Secret,
    }
}
