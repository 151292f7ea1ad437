//! A service at an address: sends it calls over HTTP, with its own key in place of the demo set's.

use std::time::Duration;

use reqwest::{Client, Method, Url};
use shared::network::tls::client_config;
use shared::table::meter::Cost;

use crate::Trouble;
use crate::http::{Answer, Call};

/// Longer than API Gateway waits for a function.
const PATIENCE: Duration = Duration::from_secs(40);

/// The name under which API Gateway passes on a function's header `www-authenticate`.
const REMAPPED: &str = "x-amzn-remapped-www-authenticate";

/// A service at an address.
#[derive(Debug)]
pub struct Address {
    base_url: String,
    public_url: String,
    demo_key: String,
    key: String,
    client: Client,
}

impl Address {
    /// The service at `base_url`. In each call, `key` replaces `demo_key`. If the service returns another address than
    /// `base_url` to its callers, that is `public_url`.
    ///
    /// # Errors
    /// [`Trouble`] where `base_url` is no address.
    pub fn new(base_url: &str, demo_key: &str, key: &str, public_url: Option<&str>) -> Result<Self, Trouble> {
        let url = Url::parse(base_url).map_err(|error| Trouble(format!("{base_url}: {error}")))?;
        let base_url = base_url.trim_end_matches('/').to_owned();
        let tls = client_config(None).map_err(|error| Trouble(error.to_string()))?;
        let mut client = Client::builder().tls_backend_preconfigured(tls).timeout(PATIENCE);
        if url.host_str().is_some_and(|host| host == "localhost" || host.starts_with("127.")) {
            client = client.no_proxy();
        }
        Ok(Self {
            public_url: public_url.map_or_else(|| base_url.clone(), |url| url.trim_end_matches('/').to_owned()),
            base_url,
            demo_key: demo_key.to_owned(),
            key: key.to_owned(),
            client: client.build().map_err(|error| Trouble(in_full(&error)))?,
        })
    }

    /// The address that the service returns to its callers.
    pub fn public_url(&self) -> &str {
        &self.public_url
    }

    /// Sends `call`, and waits for the answer.
    ///
    /// # Errors
    /// [`Trouble`] where there is none.
    pub async fn send(&self, call: &Call) -> Result<Answer, Trouble> {
        let no_answer = |error: reqwest::Error| {
            // The text of the error would contain the address with the key.
            let error = error.without_url();
            Trouble(format!("{} {}{}: {}", call.method, self.base_url, call.path, in_full(&error)))
        };
        let method = Method::from_bytes(call.method.as_bytes()).map_err(|error| Trouble(error.to_string()))?;
        let question = if call.query.is_empty() { "" } else { "?" };
        let url = format!("{}{}{question}{}", self.base_url, call.path, self.with_key(&call.query));
        let mut request = self.client.request(method, url);
        for (name, value) in &call.headers {
            request = request.header(name, self.with_key(value));
        }
        if !call.body.is_empty() {
            request = request.body(call.body.clone());
        }
        let response = request.send().await.map_err(no_answer)?;
        let status = response.status().as_u16();
        let header = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
            let name = if name == REMAPPED { "www-authenticate" } else { name.as_str() };
            (name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let headers = response.headers().iter().map(header).collect();
        let body = response.text().await.map_err(no_answer)?;
        Ok(Answer { status, headers, body, cost: Cost::default() })
    }

    fn with_key(&self, text: &str) -> String {
        text.replace(&self.demo_key, &self.key)
    }
}

/// An error with all its causes: the outermost one alone does not explain the failure.
fn in_full(error: &reqwest::Error) -> String {
    let first: &dyn std::error::Error = error;
    let causes = std::iter::successors(Some(first), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_replaces_the_demo_key() {
        let address = Address::new("https://example.com/dev/", "in-demo", "in-own", None).unwrap();
        assert_eq!(address.with_key("api_key=in-demo&page=1"), "api_key=in-own&page=1");
        assert_eq!(address.with_key("api_key=in-wrong"), "api_key=in-wrong");
        assert_eq!(address.public_url(), "https://example.com/dev");
        let behind =
            Address::new("https://example.com/dev", "in-demo", "in-own", Some("https://api.example/")).unwrap();
        assert_eq!(behind.public_url(), "https://api.example");
        assert!(Address::new("example.com", "in-demo", "in-own", None).is_err());
    }
}
