//! Users of the account, which the API also calls agents.

use crate::records::contact_point::Email;
use crate::values::constant::{AlwaysFalse, AlwaysZero};
use crate::values::id::{BillingPlanId, RoleId, UserId};
use crate::values::provider::EventOrder;
use crate::values::time::Timestamp;

crate::record! {
    /// A user.
    pub struct User(UserId): listed("USER") {
        /// First name of the user.
        input first_name: String,
        /// Last name of the user.
        input last_name: String,
        /// E-mail address. No two users of an organisation have the same one; upper and lower case make no difference.
        input(unique) email: Email,
        /// True if the user may sign in.
        input is_active: bool = true,
        /// Always false: no user may do everything. What a request may do follows from its key.
        derived is_superuser: AlwaysFalse = AlwaysFalse::of,
        /// Date of birth.
        input birthdate: Option<Timestamp> = None,
        /// True if the user belongs to an enterprise.
        input is_enterprise: bool = false,
        /// Role of the user; null for none.
        input role_id: Option<RoleId> = None,
        /// Telephone number.
        input phone: Option<String> = None,
        /// State or region.
        input state: Option<String> = None,
        /// Country.
        input country: Option<String> = None,
        /// Postal address.
        input address: Option<String> = None,
        /// Billing plan that is in force; null for none. Events of the payment provider set it.
        own active_billing_plan_id: Option<BillingPlanId> = None,
        /// Billing plan that follows: the one of the price to which an update of the subscription leads that is still pending; null for none. Events of the payment provider set it.
        own next_billing_plan_id: Option<BillingPlanId> = None,
        /// Identifier of the customer at the payment provider. Events of the payment provider set it.
        own payment_customer_id: Option<String> = None,
        /// Identifier of the subscription at the payment provider. Events of the payment provider set it.
        own payment_subscription_id: Option<String> = None,
        /// Status of the subscription, in the words of the payment provider.
        own payment_subscription_status: Option<String> = None,
        /// Order of the user's newest checkout, even if its customer now belongs to another user.
        hidden payment_linked_by: Option<EventOrder> = None,
        /// True if the customer has a means of payment at the payment provider: its subscription names one, or an invoice was paid. Events of the payment provider set it.
        own payment_has_payment_method: bool = false,
        /// True if the subscription is in its trial period.
        own is_trial: bool = false,
        /// True if the user has had a trial period.
        own used_trial: bool = false,
        /// True if the subscription is paid.
        own is_paying: bool = false,
        /// Time of the last payment; null if there was none.
        own payment_last_payment_date: Option<Timestamp> = None,
        /// Time at which the billing last changed; null if it has not.
        own billing_updated_at: Option<Timestamp> = None,
        /// Time at which credits were last given, the beginning of the subscription's period; null if never. Events of the payment provider set it.
        own last_credits_refresh: Option<Timestamp> = None,
        /// Time at which credits are given next, the end of the subscription's period; null if never, such as after a cancellation. Events of the payment provider set it.
        own next_credits_refresh: Option<Timestamp> = None,
        /// Always 0: users do not follow each other.
        derived follower_count: AlwaysZero = AlwaysZero::of,
        /// Always 0: users do not follow each other.
        derived following_count: AlwaysZero = AlwaysZero::of,
        /// When it was made; users that were stored without this have the beginning of 1970.
        created created_at: Timestamp = Timestamp::from_unix_millis(0),
        /// When it last changed.
        updated updated_at: Timestamp = Timestamp::from_unix_millis(0),
    }
}
