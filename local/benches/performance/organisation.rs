//! An organisation that a measure makes for itself, with its own API key.

use std::collections::BTreeMap;

use local::Stack;
use local::http::Call;
use serde_json::Value;
use shared::table::Table;
use shared::table::store::Store;
use shared::values::id::OrgId;
use shared::values::tenant::Tenant;

use crate::Result;

/// An organisation.
pub struct Organisation {
    key: String,
    /// Its tenant.
    pub tenant: Tenant,
    /// Its part of the table.
    pub table: Table,
}

impl Organisation {
    /// A new organisation; `store` reaches its table.
    pub async fn new(stack: &Stack, store: Store) -> Result<Self> {
        let issued = stack.gateway.invoke_by_name("issue-api-key", br#"{"name":"bench"}"#).await;
        let issued: Value = serde_json::from_str(&issued.body)?;
        let id: OrgId = serde_json::from_value(issued["org_id"].clone())?;
        let key = issued["api_key"].as_str().ok_or("no key")?.to_owned();
        #[expect(clippy::disallowed_methods, reason = "the measure is its own operator")]
        let tenant = Tenant::operator(id);
        Ok(Self { key, table: Table::new(store, tenant), tenant })
    }

    /// The data of the answer to a POST.
    pub async fn post(&self, stack: &Stack, path: &str, body: &Value) -> Result<Value> {
        self.ask(stack, "POST", path, body).await
    }

    /// The data of the answer to a request; without a body if that is null.
    pub async fn ask(&self, stack: &Stack, method: &str, path: &str, body: &Value) -> Result<Value> {
        let call = Call {
            method: method.into(),
            path: path.into(),
            query: format!("api_key={}", self.key),
            headers: BTreeMap::new(),
            body: if body.is_null() { Vec::new() } else { body.to_string().into() },
        };
        let answer = stack.answer(&call).await;
        if answer.status >= 300 {
            return Err(format!("{path}: {} {}", answer.status, answer.body).into());
        }
        Ok(serde_json::from_str::<Value>(&answer.body)?["data"].take())
    }
}
