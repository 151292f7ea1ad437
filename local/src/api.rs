//! Calls of the API by this program itself, for the organisations of the demo set; the inbox and the console use it.

use std::fmt::{self, Display, Formatter};
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

/// A request to an operation: a route alone, or one with parameters of its path, a query and a body.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// The name of the operation.
    operation: &'static str,
    call: Call,
}

impl ApiRequest {
    /// A request of `route`.
    pub fn of(route: &Route) -> Self {
        let headers = [("content-type".to_owned(), "application/json".to_owned())].into();
        let (method, path) = (route.method.to_owned(), route.path.to_owned());
        Self { operation: route.name, call: Call { method, path, headers, ..Call::default() } }
    }

    /// With a parameter of its path.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl Display) -> Self {
        let value: String = form_urlencoded::byte_serialize(value.to_string().as_bytes()).collect();
        self.call.path = self.call.path.replace(&format!("{{{name}}}"), &value);
        self
    }

    /// With parameters of its path.
    #[must_use]
    pub fn parameters<N: AsRef<str>, V: Display>(self, parameters: impl IntoIterator<Item = (N, V)>) -> Self {
        parameters.into_iter().fold(self, |request, (name, value)| request.parameter(name.as_ref(), value))
    }

    /// With further parameters of its query, percent-encoded.
    #[must_use]
    pub fn query(mut self, query: impl AsRef<str>) -> Self {
        let parts = [&self.call.query, query.as_ref()];
        self.call.query = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("&");
        self
    }

    /// With a body.
    #[must_use]
    pub fn body(mut self, body: &Value) -> Self {
        self.call.body = body.to_string().into();
        self
    }

    /// The call by the owner of `key`.
    pub fn by(mut self, key: &str) -> Call {
        self.call.headers.insert("authorization".to_owned(), format!("Bearer {key}"));
        self.call
    }
}

impl From<&Route> for ApiRequest {
    fn from(route: &Route) -> Self {
        Self::of(route)
    }
}

/// Its method and its address.
impl Display for ApiRequest {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Call { method, path, query, .. } = &self.call;
        write!(formatter, "{method} {path}")?;
        if query.is_empty() { Ok(()) } else { write!(formatter, "?{query}") }
    }
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

    /// The `data` of the answer to `request`. The program makes this request itself, so it is kept out of the log, the
    /// journal, and the count for the key's limits.
    ///
    /// # Errors
    /// Any other answer.
    pub async fn ask(
        &self,
        organisation: &OrganisationWithKey,
        request: impl Into<ApiRequest>,
    ) -> Result<Value, String> {
        let request = request.into();
        let endpoint = endpoint(request.operation).ok_or_else(|| format!("no function {}", request.operation))?;
        let event = self.gateway.event(&request.by(&organisation.key), "the program's own");
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
        request: impl Into<ApiRequest>,
        most: u64,
    ) -> Result<Vec<Value>, String> {
        let request = request.into().query(format!("size={most}"));
        let page = async |page: u64| {
            let mut page = self.ask(organisation, request.clone().query(format!("page={page}"))).await?;
            let pages = page["pages"].as_u64().unwrap_or_default();
            let Value::Array(items) = page["items"].take() else { return Err("no list".to_owned()) };
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

    /// The answer to a request that the user makes in the console. It is recorded like any other request.
    pub async fn request(&self, organisation: &OrganisationWithKey, request: impl Into<ApiRequest>) -> Answer {
        self.send(request.into().by(&organisation.key)).await
    }

    /// The answer to a request that the user sends in the console.
    pub async fn send(&self, mut call: Call) -> Answer {
        call.headers.insert("user-agent".to_owned(), CONSOLE.to_owned());
        self.gateway.answer(&call).await
    }
}
