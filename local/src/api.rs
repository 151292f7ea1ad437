//! Calls of the API by this program itself, for the organisations of the demo set; the inbox and the console use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use shared::request::config::Config;
use shared::request::context::Service;
use shared::request::route::Route;
use shared::values::id::OrgId;
use shared::values::limits::Limits;

use crate::gateway::{Gateway, endpoint};
use crate::http::{Answer, Call};
use crate::journal::CONSOLE;

/// The API, with a key of each organisation of the demo set.
#[derive(Debug, Clone)]
pub struct Api {
    gateway: Arc<Gateway>,
    /// The service for the program's own requests, without limits of keys.
    unlimited: Arc<Service>,
    organisations: Vec<OrganisationWithKey>,
}

/// An organisation whose key the program has.
#[derive(Debug, Clone)]
pub struct OrganisationWithKey {
    /// Its id.
    pub id: OrgId,
    /// Its name, in lower case.
    pub name: String,
    /// A key with all permissions.
    pub key: String,
}

impl Api {
    /// The API of `gateway`, for these organisations.
    pub fn new(gateway: Arc<Gateway>, organisations: Vec<OrganisationWithKey>) -> Self {
        let service = gateway.service.in_another_process();
        let config = Config { key_limits: Limits::new(1_000_000, 1_000_000), ..service.config };
        // The gateway's service knows which rows this one has appended, and cleans up their tokens.
        let unlimited = Arc::new(Service { config, store: gateway.service.store.clone(), ..service });
        Self { gateway, unlimited, organisations }
    }

    /// The organisations.
    pub fn organisations(&self) -> &[OrganisationWithKey] {
        &self.organisations
    }

    /// The `data` of the answer of `route`, with the parameters of its path by their names. The program makes this
    /// request itself, so it is kept out of the log, the journal, and the count for the key's limits.
    ///
    /// # Errors
    /// Any other answer.
    pub async fn ask(
        &self,
        organisation: &OrganisationWithKey,
        route: &Route,
        parameters: &[(&str, &str)],
        query: &str,
        body: &str,
    ) -> Result<Value, String> {
        let endpoint = endpoint(route.name).ok_or_else(|| format!("no function {}", route.name))?;
        let call = call(organisation, route, parameters, query, body);
        let event = self.gateway.event(&call, "the program's own");
        let answer = self.gateway.invoke_with(&self.unlimited, endpoint, event).await;
        if answer.status >= 300 {
            return Err(answer.body);
        }
        let mut answered: Value = serde_json::from_str(&answer.body).map_err(|error| error.to_string())?;
        Ok(answered["data"].take())
    }

    /// The records of a list, the newest first, `most` at most.
    ///
    /// # Errors
    /// Any answer other than a list.
    pub async fn newest(
        &self,
        organisation: &OrganisationWithKey,
        route: &Route,
        parameters: &[(&str, &str)],
        most: u64,
    ) -> Result<Vec<Value>, String> {
        let page = async |page: u64| {
            let mut list = self.ask(organisation, route, parameters, &format!("page={page}&size={most}"), "").await?;
            let pages = list["pages"].as_u64().unwrap_or_default();
            let Value::Array(items) = list["items"].take() else { return Err("no list".to_owned()) };
            Ok((pages, items))
        };
        let (pages, mut items) = page(1).await?;
        if pages > 1 {
            // The last page may have only a few records.
            let ((_, before), (_, last)) = (page(pages - 1).await?, page(pages).await?);
            items = before.into_iter().chain(last).collect();
        }
        items.reverse();
        items.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(items)
    }

    /// The event for the function of `call`.
    pub fn event(&self, call: &Call, request_id: &str) -> Value {
        self.gateway.event(call, request_id)
    }

    /// The answer of `route` to a request that the user makes in the console. It is recorded like any other request.
    pub async fn request(
        &self,
        organisation: &OrganisationWithKey,
        route: &Route,
        parameters: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.request_with(organisation, route, parameters, "", body).await
    }

    /// The same with a query.
    pub async fn request_with(
        &self,
        organisation: &OrganisationWithKey,
        route: &Route,
        parameters: &[(&str, &str)],
        query: &str,
        body: &str,
    ) -> Answer {
        self.send(call(organisation, route, parameters, query, body)).await
    }

    /// The answer to a request that the user sends in the console.
    pub async fn send(&self, mut call: Call) -> Answer {
        call.headers.insert("user-agent".to_owned(), CONSOLE.to_owned());
        self.gateway.answer(&call).await
    }
}

fn call(
    organisation: &OrganisationWithKey,
    route: &Route,
    parameters: &[(&str, &str)],
    query: &str,
    body: &str,
) -> Call {
    let path = parameters.iter().fold(route.path.to_owned(), |path, (name, value)| {
        let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        path.replace(&format!("{{{name}}}"), &value)
    });
    let headers = BTreeMap::from([
        ("authorization".to_owned(), format!("Bearer {}", organisation.key)),
        ("content-type".to_owned(), "application/json".to_owned()),
    ]);
    Call { method: route.method.to_owned(), path, query: query.to_owned(), headers, body: body.into() }
}
