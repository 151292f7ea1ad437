//! Users of the account, which the API also calls agents.

use crate::records::contact_point::Email;
use crate::values::id::{BillingPlanId, RoleId, UserId};
use crate::values::provider::EventOrder;
use crate::values::time::Timestamp;

crate::record! {
    /// A user.
    pub struct User(UserId): listed("USER") {
        /// First name.
        input first_name: String,
        /// Last name.
        input last_name: String,
        /// E-mail address.
        input(unique) email: Email,
        /// Whether the user may sign in.
        input is_active: bool = true,
        /// Whether the user may do everything.
        own is_superuser: bool = false,
        /// Date of birth.
        input birthdate: Option<Timestamp> = None,
        /// Whether the user is of an enterprise.
        input is_enterprise: bool = false,
        /// Role.
        input role_id: Option<RoleId> = None,
        /// Telephone number.
        input phone: Option<String> = None,
        /// State or region.
        input state: Option<String> = None,
        /// Country.
        input country: Option<String> = None,
        /// Postal address.
        input address: Option<String> = None,
        /// The plan in force, one of an agency.
        own active_billing_plan_id: Option<BillingPlanId> = None,
        /// The plan that follows.
        own next_billing_plan_id: Option<BillingPlanId> = None,
        /// Customer at the payment provider.
        own payment_customer_id: Option<String> = None,
        /// Subscription at the payment provider.
        own payment_subscription_id: Option<String> = None,
        /// State of that subscription.
        own payment_subscription_status: Option<String> = None,
        /// The place of the newest checkout of the user, also where that customer is another user's.
        hidden payment_linked_by: Option<EventOrder> = None,
        /// Whether the payment provider can charge.
        own payment_has_payment_method: bool = false,
        /// Whether the user is on trial.
        own is_trial: bool = false,
        /// Whether the user has had a trial.
        own used_trial: bool = false,
        /// Whether the user pays.
        own is_paying: bool = false,
        /// Last payment.
        own payment_last_payment_date: Option<Timestamp> = None,
        /// Last change of the billing.
        own billing_updated_at: Option<Timestamp> = None,
        /// Last time credits were given.
        own last_credits_refresh: Option<Timestamp> = None,
        /// Next time credits are given.
        own next_credits_refresh: Option<Timestamp> = None,
        /// How many follow the user.
        own follower_count: i64 = 0,
        /// How many the user follows.
        own following_count: i64 = 0,
        /// When it was made; users that were stored without this have the beginning of 1970.
        created created_at: Timestamp = Timestamp::from_unix_millis(0),
        /// When it last changed.
        updated updated_at: Timestamp = Timestamp::from_unix_millis(0),
    }
}
