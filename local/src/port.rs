//! A port of `cargo local`, and the guard before all of them: programs of this machine may call a port, and so may the
//! pages that it serves itself. Pages of other sites may not.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use serde_json::json;
use shared::routes;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Trouble;

/// The names of this machine; containers use the second one, as in `local/env.json`. Nobody can register a domain that
/// ends in `.internal`.
const NAMES: [&str; 2] = ["localhost", "host.docker.internal"];

/// The paths of the API, which pages of the allowed origin may call.
const API: &str = "/api/";

/// Says whether another site made the browser send the request. A browser sets this header, and a page cannot.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// An open port.
#[derive(Debug)]
pub struct Port {
    listener: TcpListener,
    /// Its address.
    pub url: String,
    guard: PortGuard,
}

impl Port {
    /// Opens a port at `address`; `option` is the command-line option that chooses its number.
    ///
    /// # Errors
    /// [`Trouble`] where the port cannot be opened.
    pub async fn open(address: SocketAddr, option: &str) -> Result<Self, Trouble> {
        let listener = TcpListener::bind(address).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                Trouble(format!("{address} is taken by another program; {option} chooses another port"))
            }
            _ => Trouble(format!("cannot listen on {address}: {error}")),
        })?;
        let open = listener.local_addr().map_err(|error| Trouble(error.to_string()))?;
        let guard = PortGuard { listen: open.ip(), cors_allow_origin: None };
        Ok(Self { listener, url: format!("http://{open}"), guard })
    }

    /// The same port. Pages of `origin` may also call its API; `*` allows the pages of every origin.
    #[must_use]
    pub fn allowing(self, origin: Option<String>) -> Self {
        Self { guard: PortGuard { cors_allow_origin: origin, ..self.guard }, ..self }
    }

    /// Serves `router` behind the guard until `stop` resolves.
    pub fn serve(self, router: Router, stop: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let router = router.layer(middleware::from_fn_with_state(Arc::new(self.guard), guarded));
        tokio::spawn(async move {
            // The listener is open already. An error that ends the server early also ends the process.
            let _ = axum::serve(self.listener, router).with_graceful_shutdown(stop).await;
        })
    }
}

/// Decides which requests a port answers.
#[derive(Debug)]
struct PortGuard {
    /// The address of the port.
    listen: IpAddr,
    /// The origin whose pages may call the API.
    cors_allow_origin: Option<String>,
}

async fn guarded(State(guard): State<Arc<PortGuard>>, request: Request, next: Next) -> Response {
    match guard.refusal(&request) {
        Some(error) => (StatusCode::FORBIDDEN, Json(json!({"error": error}))).into_response(),
        None => next.run(request).await,
    }
}

impl PortGuard {
    /// Why the request is refused; `None` if it may pass.
    fn refusal(&self, request: &Request) -> Option<String> {
        let text = |name: &HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
        let host = text(&HOST).unwrap_or_default();
        // The name of another host may lead to this machine: then its pages have the origin of this port.
        if !self.is_here(host) {
            return Some(format!(
                "This port answers requests to this machine, and the Host is {host:?}. Use localhost, 127.0.0.1, or the address of --listen."
            ));
        }
        match text(&ORIGIN) {
            Some(origin) if origin == format!("http://{host}") => None,
            Some(origin) if self.allows(origin) && request.uri().path().starts_with(API) => None,
            Some(origin) => Some(format!(
                "Pages of the origin {origin:?} may not call this port. --cors-allow-origin allows an origin to call the API."
            )),
            // A browser sends no Origin for an image, a script or a link.
            None if is_from_another_site(text(&SITE)) && !opens_a_page(request) => {
                Some("Pages of other sites may not load this.".to_owned())
            }
            None => None,
        }
    }

    /// Whether `host` is this machine, with any port.
    fn is_here(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        match name.parse::<IpAddr>() {
            // The unspecified address stands for every address of this machine.
            Ok(address) => address.is_loopback() || address == self.listen || self.listen.is_unspecified(),
            Err(_) => NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)),
        }
    }

    fn allows(&self, origin: &str) -> bool {
        self.cors_allow_origin.as_deref().is_some_and(|allowed| allowed == "*" || allowed == origin)
    }
}

/// Whether a page of another site made the browser send the request. Another port of the same host is another site
/// too, although browsers call it the same one.
fn is_from_another_site(site: Option<&str>) -> bool {
    site.is_some_and(|site| ["cross-site", "same-site"].contains(&site))
}

/// Whether the request opens a page, as a link on another site does. No operation is a page: some reads have effects.
fn opens_a_page(request: &Request) -> bool {
    let is = |name: &str, wanted: &str| request.headers().get(name).is_some_and(|value| value == wanted);
    let operation = routes::find("GET", request.uri().path()).is_some_and(|route| !routes::DOCUMENTS.contains(&route));
    request.method() == Method::GET
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
        && !operation
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(listen: &str) -> PortGuard {
        PortGuard { listen: listen.parse().unwrap(), cors_allow_origin: None }
    }

    /// Whether a request with these headers passes.
    fn passes(guard: &PortGuard, path: &str, headers: &[(&str, &str)]) -> bool {
        let request = Request::get(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        guard.refusal(&request.body(axum::body::Body::empty()).unwrap()).is_none()
    }

    #[test]
    fn only_a_host_of_this_machine_passes() {
        let here = ["127.0.0.1:3000", "127.8.9.1", "localhost:3000", "LOCALHOST", "[::1]:3000", "[::1]"];
        let there =
            ["evil.example", "evil.example:3000", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b"];
        for listen in ["127.0.0.1", "::1", "172.17.0.1", "0.0.0.0"] {
            for host in here.iter().chain(&["host.docker.internal:8000"]) {
                assert!(passes(&guard(listen), "/", &[("host", host)]), "{listen} {host}");
            }
            for host in there {
                assert!(!passes(&guard(listen), "/", &[("host", host)]), "{listen} {host}");
            }
            assert!(!passes(&guard(listen), "/", &[]), "{listen}");
        }
    }

    #[test]
    fn the_address_of_listen_is_a_host_of_this_machine() {
        for (listen, host, here) in [
            ("172.17.0.1", "172.17.0.1:3000", true),
            ("172.17.0.1", "172.17.0.2:3000", false),
            ("127.0.0.1", "172.17.0.1:3000", false),
            ("127.0.0.1", "0.0.0.0:3000", false),
            ("0.0.0.0", "0.0.0.0:3000", true),
            ("0.0.0.0", "192.168.0.2:3000", true),
            ("fd00::1", "[fd00::1]:3000", true),
        ] {
            assert_eq!(passes(&guard(listen), "/", &[("host", host)]), here, "{listen} {host}");
        }
    }

    #[test]
    fn the_addresses_for_containers_pass() {
        let environment: serde_json::Value = serde_json::from_str(include_str!("../env.json")).unwrap();
        let values = environment["Parameters"].as_object().unwrap().values();
        let addresses: Vec<_> = values.filter_map(|value| value.as_str()?.strip_prefix("http://")).collect();
        assert!(!addresses.is_empty());
        for host in addresses {
            assert!(passes(&guard("127.0.0.1"), "/", &[("host", host)]), "{host}");
        }
    }
}
