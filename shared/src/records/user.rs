//! Users of the account, which the API also calls agents.

use crate::values::id::{RoleId, UserBillingPlanId, UserId};
use crate::values::time::Timestamp;

crate::record! {
    /// A user.
    pub struct User {
        /// Identifier.
        pub id: UserId,
        /// First name.
        pub first_name: Option<String>,
        /// Last name.
        pub last_name: Option<String>,
        /// E-mail address.
        pub email: Option<String>,
        /// Whether the user may sign in.
        pub is_active: bool,
        /// Whether the user may do everything.
        pub is_superuser: bool,
        /// Date of birth.
        pub birthdate: Option<Timestamp>,
        /// Whether the user is of an enterprise.
        pub is_enterprise: bool,
        /// Role.
        pub role_id: Option<RoleId>,
        /// Telephone number.
        pub phone: Option<String>,
        /// State or region.
        pub state: Option<String>,
        /// Country.
        pub country: Option<String>,
        /// Postal address.
        pub address: Option<String>,
        /// The plan in force.
        pub active_billing_plan_id: Option<UserBillingPlanId>,
        /// The plan that follows.
        pub next_billing_plan_id: Option<UserBillingPlanId>,
        /// Customer at the payment provider.
        pub payment_customer_id: Option<String>,
        /// Subscription at the payment provider.
        pub payment_subscription_id: Option<String>,
        /// State of that subscription.
        pub payment_subscription_status: Option<String>,
        /// Whether the payment provider can charge.
        pub payment_has_payment_method: bool,
        /// Whether the user is on trial.
        pub is_trial: bool,
        /// Whether the user has had a trial.
        pub used_trial: bool,
        /// Whether the user pays.
        pub is_paying: bool,
        /// Last payment.
        pub payment_last_payment_date: Option<Timestamp>,
        /// Last change of the billing.
        pub billing_updated_at: Option<Timestamp>,
        /// Last time credits were given.
        pub last_credits_refresh: Option<Timestamp>,
        /// Next time credits are given.
        pub next_credits_refresh: Option<Timestamp>,
        /// How many follow the user.
        pub follower_count: i64,
        /// How many the user follows.
        pub following_count: i64,
    }
}
