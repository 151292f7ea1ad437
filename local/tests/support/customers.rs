//! Gives the tests users with a billing plan, each with its key.

use local::Stack;
use local::http::{Answer, Call};
use serde_json::{Value, json};
use shared::records::user::User;
use shared::routes;
use uuid::Uuid;

use crate::support::fixture::{ACME, acme, call, data, id, kind, make, path};
use crate::support::records::make_key;

/// A user of Acme with a key and a plan.
pub struct Customer {
    pub user: Uuid,
    pub key: String,
    /// The path of the plan.
    pub plan: String,
}

impl Customer {
    /// A customer whose plan has large limits that block, except for the members of `plan`.
    pub async fn of(stack: &Stack, plan: &Value) -> Self {
        let (user, key) = Self::without_plan(stack).await;
        let mut body = json!({
            "name": "Pro", "description": "All of it", "premium_support": false, "overage": "block",
            "bots_count": 1_000_000, "queries_count": 1_000_000, "words_count": 1_000_000, "voice_seconds": 1_000_000,
        });
        body.as_object_mut().unwrap().extend(plan.as_object().unwrap().clone());
        let plans = path(&routes::CREATE_AGENCY_BILLING_PLAN, |_| id('a', kind::AGENCY, 1));
        let plan = make(stack, &plans, body).await;
        let change = |user: &mut User| user.active_billing_plan_id = Some(plan.into());
        acme(stack).change::<User>(user.into(), Uuid::now_v7(), change).await.unwrap();
        Self { user, key, plan: format!("{plans}/{plan}") }
    }

    /// A new user of whom no plan is in force, and a key of this user.
    pub async fn without_plan(stack: &Stack) -> (Uuid, String) {
        let email = format!("{}@acme.example", Uuid::now_v7());
        let user = json!({"first_name": "A", "last_name": "Customer", "email": email});
        let user = make(stack, routes::CREATE_USER.path, user).await;
        let (key, _) = make_key(stack, ACME, &json!({"name": "Customer", "user_id": user})).await;
        (user, key)
    }

    /// Sends a request with the customer's key.
    pub async fn ask(&self, stack: &Stack, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into() };
        stack.answer(&Call { body, ..call(method, path, &self.key) }).await
    }

    /// Reports usage of the customer.
    pub async fn report(&self, stack: &Stack, report: &Value) -> Value {
        data(&self.ask(stack, "POST", routes::REPORT_USAGE.path, report).await)
    }

    /// The usage of the customer.
    pub async fn usage(&self, stack: &Stack) -> Value {
        data(&self.ask(stack, "GET", routes::READ_USAGE.path, &Value::Null).await)
    }

    /// What the customer has used of a meter.
    pub async fn used(&self, stack: &Stack, meter: &str) -> u64 {
        self.meter(stack, meter).await["used"].as_u64().unwrap()
    }

    /// A meter of the customer.
    pub async fn meter(&self, stack: &Stack, meter: &str) -> Value {
        let usage = self.usage(stack).await;
        usage["meters"].as_array().unwrap().iter().find(|one| one["meter"] == meter).cloned().unwrap()
    }
}
