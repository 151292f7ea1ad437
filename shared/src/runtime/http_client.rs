//! The HTTP client of the SDK: hyper over rustls, HTTP/1.1 only, with the root certificates that it is given.
//!
//! The SDK's own client also supports HTTP/2, which DynamoDB does not offer, and parses its root certificates from PEM.
//! Both cost time at every start, and HTTP/2 makes every zip larger. `docs/adr/0013-http-client.md` has the figures.

use std::error::Error;

use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{Connected, HttpConnector as TcpConnector, capture_connection};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// The root certificates of AWS, as DER. Reading these five takes a hundredth of the time of the hundreds that a
/// machine has.
const AMAZON_ROOTS: [&[u8]; 5] = [
    include_bytes!("roots/amazon-root-ca-1.der"),
    include_bytes!("roots/amazon-root-ca-2.der"),
    include_bytes!("roots/amazon-root-ca-3.der"),
    include_bytes!("roots/amazon-root-ca-4.der"),
    include_bytes!("roots/starfield-services-root-g2.der"),
];

/// The root certificates of AWS.
///
/// # Errors
/// An error where one of them is no certificate. A test excludes this.
pub fn amazon_roots() -> Result<RootCertStore, rustls::Error> {
    let mut roots = RootCertStore::empty();
    AMAZON_ROOTS.into_iter().try_for_each(|root| roots.add(CertificateDer::from(root)))?;
    Ok(roots)
}

/// A client for the SDK that uses `connector`. Its only time limit is the SDK's limit for a whole attempt; the settings
/// for connecting and reading are ignored.
pub fn client(connector: SharedHttpConnector) -> SharedHttpClient {
    http_client_fn(move |_, _| connector.clone())
}

/// Sends requests to servers that `roots` trust, and to `http:` addresses. Clones share the connections.
pub fn connector(roots: RootCertStore) -> SharedHttpConnector {
    let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let mut tcp = TcpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);
    let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(https);
    SharedHttpConnector::new(Connector { client })
}

#[derive(Debug)]
struct Connector {
    client: Client<HttpsConnector<TcpConnector>, SdkBody>,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into()))),
        };
        // The SDK closes a connection after a failure of the server. This line gives the SDK the connection of the
        // request.
        if let Some(wanted) = request.extensions().get::<CaptureSmithyConnection>().cloned() {
            let used = capture_connection(&mut request);
            wanted.set_connection_retriever(move || {
                used.connection_metadata().as_ref()?;
                let used = used.clone();
                let poison = move || used.connection_metadata().iter().for_each(Connected::poison);
                Some(ConnectionMetadata::builder().proxied(false).poison_fn(poison).build())
            });
        }
        let client = self.client.clone();
        HttpConnectorFuture::new(async move {
            let response = client.request(request);
            let response = response.await.map_err(failure)?.map(SdkBody::from_body_1_x);
            HttpResponse::try_from(response).map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// The kind of a failure. The SDK decides by it whether to retry.
fn failure(error: ClientError) -> ConnectorError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    let (mut broken, mut incomplete, mut ours) = (error.is_connect(), false, false);
    while let Some(error) = cause {
        broken |= error.is::<std::io::Error>();
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            broken |= error.is_closed() || error.is_canceled();
            incomplete |= error.is_incomplete_message();
            ours |= error.is_user();
        }
        cause = error.source();
    }
    match (ours, broken, incomplete) {
        (true, ..) => ConnectorError::user(error.into()),
        (_, true, _) => ConnectorError::io(error.into()),
        (.., true) => ConnectorError::other(error.into(), Some(ErrorKind::TransientError)),
        _ => ConnectorError::other(error.into(), None),
    }
}
