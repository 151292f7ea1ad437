//! The pipeline of every request, and the trait that an operation implements.
//!
//! Only three steps are generic: reading the input, the handler, and printing the reply. [`Handler`] hides the type
//! behind one function pointer, so that everything else is compiled only once for all operations.

use std::borrow::Cow;
use std::time::Instant;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::input::form::FormBody;
use crate::input::{Input, Issue, Issues, Location, ReadInput, Source, settle, words};
use crate::request::authentication::{authenticate, sent_key};
use crate::request::caller::{Caller, Identified};
use crate::request::context::{Context, Service};
use crate::request::error::{Error, Result};
use crate::request::http::{HttpRequest, HttpResponse};
use crate::request::idempotency::{self, IdempotencyKey, Work, caught};
use crate::request::response::{Reply, Response, Success, envelope_schema};
use crate::request::route::Route;
use crate::request::signed::{Receive, SignedOperation, receive};
use crate::table::meter::{Cost, Meter};
use crate::table::stamp::Stamp;
use crate::table::store::Store;
use crate::table::{Table, page};
use crate::values::json::without_nulls;

/// One operation of the API.
pub trait Operation: Sized + 'static {
    /// The path's parameters.
    type Path: Input;
    /// The query's parameters, without the key's.
    type Query: Input;
    /// The body; `()` where it takes none.
    type Body: Input;
    /// The reply.
    type Reply: Reply;

    /// The handler. The caller is known and has the permission, and the input is valid.
    fn handle(cx: &Context<'_>, request: Request<Self>) -> impl Future<Output = Result<Self::Reply>> + Send;
}

/// The valid input of an operation.
#[derive(Debug)]
pub struct Request<O: Operation> {
    /// The path's parameters.
    pub path: O::Path,
    /// The query's parameters.
    pub query: O::Query,
    /// The body.
    pub body: O::Body,
}

/// An operation without its type.
#[derive(Debug, Clone, Copy)]
pub struct Handler {
    /// Its line in the route table.
    pub route: &'static Route,
    kind: RequestKind,
}

/// How a request reaches its handler.
#[derive(Debug, Clone, Copy)]
enum RequestKind {
    /// With a key: its input is read, then the handler runs.
    Keyed(Prepare),
    /// With a signature.
    Signed(Receive),
}

type Prepare = fn(&Sources<'_>) -> Result<Work>;

/// The input of a request, not yet read.
#[derive(Clone)]
struct Sources<'a> {
    path: Source<'a>,
    query: Source<'a>,
    /// The issue with the headers, if there is one.
    header: Option<Issue>,
    content_type: Option<&'a str>,
    body: Option<&'a [u8]>,
}

/// The JSON schemas of an operation.
#[derive(Debug)]
pub struct Description {
    /// The path's parameters.
    pub path: Value,
    /// The query's parameters, without the key's.
    pub query: Value,
    /// The body, where it takes one, and whether a request must have it.
    pub body: Option<(Value, bool)>,
    /// The form that it takes in place of a JSON body, if it takes one.
    pub form: Option<Value>,
    /// The whole answer.
    pub reply: Value,
    /// The header with the signature, in lower case, if requests have a signature instead of a key.
    pub signature: Option<&'static str>,
}

impl Description {
    /// The schemas of `O`, from the declarations that the pipeline uses. They are separate from [`Handler`], so that no
    /// deployed binary links code that only tests and documents need.
    pub fn of<O: Operation>() -> Self {
        Self {
            path: O::Path::schema(),
            query: O::Query::schema(),
            body: O::Body::EXPECTED.then(|| (O::Body::schema(), O::Body::absent().is_none())),
            form: O::Body::form_schema(),
            reply: envelope_schema::<O::Reply>(),
            signature: None,
        }
    }

    /// The same for an operation whose requests are signed.
    pub fn of_signed<O: SignedOperation>() -> Self {
        let (path, query) = (O::Path::schema(), <()>::schema());
        let (body, reply) = (Some((O::body(), true)), envelope_schema::<O::Reply>());
        Self { path, query, body, form: None, reply, signature: Some(O::SIGNATURE) }
    }
}

impl Handler {
    /// `O` without its type, with its route.
    pub const fn of<O: Operation>(route: &'static Route) -> Self {
        let prepare: Prepare = |sources| {
            let request = read::<O>(sources)?;
            Ok(Box::new(|cx| Box::pin(async { Success::of(&O::handle(cx, request).await?) })))
        };
        Self { route, kind: RequestKind::Keyed(prepare) }
    }

    /// The same for an operation whose requests are signed.
    pub const fn signed<O: SignedOperation>(route: &'static Route) -> Self {
        let receive: Receive =
            |route, service, store, request, by| Box::pin(receive::<O>(route, service, store, request, by));
        Self { route, kind: RequestKind::Signed(receive) }
    }

    /// Answers `request` and logs one line about it. It never fails.
    pub async fn answer(&self, service: &Service, request: &HttpRequest) -> HttpResponse {
        let (started, meter, by) = (Instant::now(), Meter::default(), Identified::default());
        // A panic is a defect, but the caller still gets a body in the usual form.
        let mut answer = caught(self.attempt(service, request, &meter, &by)).await.unwrap_or_else(Response::from);
        // Outside of everything: what is kept for a repeat has its nulls.
        if by.omits_nulls() {
            answer.body = without_nulls(&answer.body);
        }
        let (status, cause, cost) = (answer.status, answer.cause.clone(), meter.cost());
        let response = response(service, answer, &request.request_id, cost);
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    request_id = request.request_id,
                    operation = self.route.name,
                    status,
                    cause,
                    key_id = by.key().map(|key| key.to_string()),
                    org_id = by.organisation().map(|organisation| organisation.to_string()),
                    milliseconds = started.elapsed().as_secs_f64() * 1000.0,
                    dynamodb_calls = cost.calls,
                    dynamodb_depth = cost.depth,
                    read_units = cost.read_units,
                    write_units = cost.write_units,
                    "request"
                )
            };
        }
        // An alarm counts these lines, so they are written at every log level.
        if status >= 500 {
            line!(error);
        } else {
            line!(info);
        }
        response
    }

    /// The failure of a request for a page whose answer `body` is too large: it states the largest page size that
    /// works. The page of that size is made as well, since it begins with another record.
    async fn too_large(prepare: Prepare, cx: &Context<'_>, sources: Sources<'_>, body: &str) -> Result<Error> {
        let mut size = page::fitting(body);
        loop {
            let asked = size.to_string();
            let smaller = Sources { query: sources.query.with("size", &asked), ..sources.clone() };
            let Success { body, .. } = prepare(&smaller)?(cx).await?;
            if page::fits(&body) {
                let at = Location::query().name("size");
                let msg = format!("The page would be larger than 5 MiB. The largest size that works is {size}");
                return Ok(Error::invalid(at.issue("page_too_large", msg)));
            }
            size = page::fitting(&body).min(size.saturating_sub(1)).max(1);
        }
    }

    /// The `table` that stamps what the request writes, if there is an audit list.
    fn stamped(&self, table: Table, service: &Service, request: &HttpRequest, caller: &Caller) -> Table {
        if service.config.audit_days == 0 || !self.route.writes() {
            return table;
        }
        let (key, at) = (caller.key, service.clock.now());
        table.stamped(&Stamp { key, at, operation: self.route.name.to_owned(), request: request.request_id.clone() })
    }

    async fn attempt(
        &self,
        service: &Service,
        request: &HttpRequest,
        meter: &Meter,
        by: &Identified,
    ) -> Result<Response> {
        let (store, now) = (service.store.metered(meter.clone()), service.clock.now());
        let prepare = match self.kind {
            RequestKind::Keyed(prepare) => prepare,
            RequestKind::Signed(receive) => {
                return Ok(receive(self.route, service, store, request, by).await?.with(self.route.success));
            }
        };
        let caller = authenticate(service, &store, sent_key(request)?, now).await?;
        by.a_key(&caller);
        service.limiter.admit(&store, &caller, now).await?;
        let limits = caller.limits;
        Ok(self.execute(prepare, service, request, store, caller).await?.limited(limits))
    }

    /// Executes a request whose caller is known.
    async fn execute(
        &self,
        prepare: Prepare,
        service: &Service,
        request: &HttpRequest,
        store: Store,
        caller: Caller,
    ) -> Result<Response> {
        caller.require(self.route)?;
        let decoded = parameters(self.route, request)?;
        require_size(self.route, request)?;
        // Requests with other methods need no idempotency key: they are idempotent.
        let key = request.idempotency_key.as_deref().filter(|_| self.route.method == "POST");
        let (key, header) = match key.map(IdempotencyKey::parse).transpose() {
            Ok(key) => (key, None),
            Err(issue) => (None, Some(issue)),
        };
        let in_path = decoded.iter().map(|(name, value)| (*name, value.as_ref()));
        // The query has the parameters that only an alias has in its path.
        let of_alias = in_path.clone().filter(|(name, _)| !self.route.parameters().any(|own| own == *name));
        let in_query = request.query.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let sources = Sources {
            path: Source::text(Location::path(), in_path),
            query: Source::text(Location::query(), in_query.chain(of_alias)),
            header,
            content_type: request.header("content-type"),
            body: request.body.as_deref(),
        };
        let work = prepare(&sources)?;
        let table = self.stamped(Table::new(store, caller.tenant), service, request, &caller);
        let cx = Context::new(caller.tenant, table, base_url(service, request), service);
        let cx = cx.called_by(caller, self.route, request);
        let success = self.route.success;
        match key {
            None => {
                let answer = work(&cx).await?;
                if !page::fits(&answer.body) {
                    return Err(Box::pin(Self::too_large(prepare, &cx, sources, &answer.body)).await?);
                }
                Ok(answer.with(success))
            }
            // Boxed, so that a request without an idempotency key uses less memory.
            Some(key) => Box::pin(idempotency::once(cx, &key, idempotency::fingerprint(request), success, work)).await,
        }
    }
}

/// The path's parameters, decoded. The path may be an alias.
///
/// # Errors
/// [`Error::NotFound`] where the request does not belong to `route`.
pub(super) fn parameters<'a>(
    route: &'static Route,
    request: &'a HttpRequest,
) -> Result<Vec<(&'static str, Cow<'a, str>)>> {
    let parameters = route.match_path(&request.path).filter(|_| request.method == route.method);
    let parameters = parameters.ok_or_else(|| Error::NotFound(Location::path()))?.into_iter();
    Ok(parameters.map(|(name, value)| (name, percent_decode_str(value).decode_utf8_lossy())).collect())
}

/// Refuses a body that is larger than `route` allows.
pub(super) fn require_size(route: &Route, request: &HttpRequest) -> Result<()> {
    let size = request.body.as_ref().map_or(0, Vec::len);
    if size > route.body_limit { Err(Error::TooLarge(route.body_limit)) } else { Ok(()) }
}

/// The address of the API, without `/api/v1`.
pub(super) fn base_url(service: &Service, request: &HttpRequest) -> String {
    service.config.api_base_url.clone().unwrap_or_else(|| request.base_url.clone())
}

/// `answer` in the form that the gateway expects.
pub(crate) fn response(service: &Service, answer: Response, request_id: &str, cost: Cost) -> HttpResponse {
    let own = [("content-type", "application/json".to_owned()), ("x-request-id", request_id.to_owned())];
    let headers = own.into_iter().chain(service.config.cors_headers()).chain(answer.headers);
    HttpResponse::new(answer.status, headers, answer.body, cost)
}

/// Reads path, query and body, and reports all issues in one answer; issues of the headers come before issues of the
/// body. A body that is not JSON is reported alone.
fn read<O: Operation>(sources: &Sources<'_>) -> Result<Request<O>> {
    let form = O::Body::OF_FORM.and_then(|read| Some((read, FormBody::read(sources.content_type, sources.body)?)));
    let (body, read_body): (_, ReadInput<O::Body>) = match &form {
        Some((read, form)) => (form.as_ref().map(Source::form).map_err(Clone::clone), *read),
        None if O::Body::EXPECTED => (Source::body(sources.body), O::Body::read),
        None => (Ok(Source::text(Location::body(), [])), O::Body::read),
    };
    let body = match body {
        Err(issue) if [words::JSON.0, words::FORM.0].contains(&issue.kind) => return Err(Error::Invalid(vec![issue])),
        body => body,
    };
    let mut issues = Issues::new();
    let path = O::Path::read(&sources.path, &mut issues);
    let query = O::Query::read(&sources.query, &mut issues);
    issues.extend(sources.header.clone());
    let body = match body {
        Err(issue) if issue.kind == words::MISSING.0 && O::Body::absent().is_some() => O::Body::absent(),
        Ok(source) => read_body(&source, &mut issues),
        Err(issue) => {
            issues.push(issue);
            None
        }
    };
    let request = path.zip(query).zip(body).map(|((path, query), body)| Request { path, query, body });
    Ok(settle(request, issues)?)
}
