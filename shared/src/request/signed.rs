//! Requests without a key: their signature proves the sender. The body is read only after the signature was checked.

use std::pin::Pin;

use crate::input::schema::Value;
use crate::input::{Input, Issues, Location, Source};
use crate::request::caller::Identified;
use crate::request::context::{Context, Service};
use crate::request::error::{Error, Result};
use crate::request::http::HttpRequest;
use crate::request::pipeline::{base_url, parameters, require_size};
use crate::request::response::{Reply, Success};
use crate::request::route::Route;
use crate::table::store::Store;
use crate::table::{Table, TableError};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// An operation that another company's server calls; the server signs its requests.
pub trait SignedOperation: Sized + 'static {
    /// The path's parameters.
    type Path: Input;
    /// The possible sender of a request.
    type Sender: Send + Sync;
    /// The reply.
    type Reply: Reply;

    /// The header with the signature, in lower case.
    const SIGNATURE: &'static str;

    /// The JSON schema of the body.
    fn body() -> Value;

    /// The possible sender of a request with this path; `None` if the path is invalid. An unknown sender takes the same
    /// calls.
    fn sender(
        store: &Store,
        path: Option<Self::Path>,
    ) -> impl Future<Output = Result<Option<(Tenant, Self::Sender)>, TableError>> + Send;

    /// Whether `sender` has signed the message. Without a sender the result is false, after the same work.
    fn is_signed(sender: Option<&Self::Sender>, message: &SignedMessage<'_>) -> bool;

    /// The handler. The sender is proven; the body is not read yet.
    fn handle(cx: &Context<'_>, sender: Self::Sender, body: &[u8]) -> impl Future<Output = Result<Self::Reply>> + Send;
}

/// A message, its signature, and its time of arrival.
#[derive(Clone, Copy)]
pub struct SignedMessage<'a> {
    /// The header with the signature, if it is text.
    pub signature: Option<&'a str>,
    /// The body, byte by byte.
    pub body: &'a [u8],
    /// The time of arrival.
    pub now: Timestamp,
}

/// [`receive`] without its type.
pub(super) type Receive = for<'a> fn(
    &'static Route,
    &'a Service,
    Store,
    &'a HttpRequest,
    &'a Identified,
) -> Pin<Box<dyn Future<Output = Result<Success>> + Send + 'a>>;

/// Answers a signed request.
pub(super) async fn receive<O: SignedOperation>(
    route: &'static Route,
    service: &Service,
    store: Store,
    request: &HttpRequest,
    by: &Identified,
) -> Result<Success> {
    let parameters = parameters(route, request)?;
    require_size(route, request)?;
    let path = Source::text(Location::path(), parameters.iter().map(|(name, value)| (*name, value.as_ref())));
    // An unknown id gets the same answer as an unknown agency.
    let path = O::Path::read(&path, &mut Issues::new());
    let (signature, body) = (request.header(O::SIGNATURE), request.body.as_deref().unwrap_or_default());
    let sender = O::sender(&store, path).await?;
    let message = SignedMessage { signature, body, now: service.clock.now() };
    let is_signed = O::is_signed(sender.as_ref().map(|(_, sender)| sender), &message);
    let (tenant, sender) = sender.filter(|_| is_signed).ok_or(Error::InvalidSignature(O::SIGNATURE))?;
    by.a_signature(tenant);
    let cx = Context::new(tenant, Table::new(store, tenant), base_url(service, request), service);
    Success::of(&O::handle(&cx, sender, body).await?)
}
