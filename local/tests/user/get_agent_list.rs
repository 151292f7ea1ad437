//! `GET /api/v1/user/get_agent_list/`: a page of the organisation's users.

use serde_json::json;

use crate::support::records::{DEMO_TIME, list_begins_with};

#[tokio::test]
async fn a_user_has_all_fields_of_the_specification() {
    list_begins_with(
        "/api/v1/user/get_agent_list/",
        json!({
            "id": "01900000-0000-7000-8000-a00c00000000",
            "first_name": "User",
            "last_name": "0",
            "email": "user0@acme.example",
            "is_active": true,
            "is_superuser": false,
            "birthdate": null,
            "is_enterprise": false,
            "role_id": null,
            "phone": null,
            "state": null,
            "country": "NL",
            "address": null,
            "active_billing_plan_id": null,
            "next_billing_plan_id": null,
            "payment_customer_id": null,
            "payment_subscription_id": null,
            "payment_subscription_status": null,
            "payment_has_payment_method": false,
            "is_trial": false,
            "used_trial": true,
            "is_paying": true,
            "payment_last_payment_date": null,
            "billing_updated_at": null,
            "last_credits_refresh": null,
            "next_credits_refresh": null,
            "follower_count": 0,
            "following_count": 0,
            "created_at": DEMO_TIME,
            "updated_at": DEMO_TIME,
        }),
    )
    .await;
}
