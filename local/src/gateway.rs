//! The role of API Gateway: turns an HTTP request into a REST API (v1) proxy event, invokes the function, and turns its
//! answer into HTTP.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::response::Response;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use lambda_http::request::LambdaRequest;
use serde_json::{Value, json};
use shared::input::form::FORM;
use shared::mcp::Server;
use shared::request::context::Service;
use shared::request::event::EventContext;
use shared::request::http::{ALWAYS, HttpRequest, HttpResponse};
use shared::request::pipeline::Handler;
use shared::request::route::matched;
use shared::routes;
use shared::runtime::document::{Library, Published};
use shared::runtime::stream::{BatchOrTick, BatchOutcome, StreamEvent};
use shared::table::meter::Cost;
use shared::values::id::Ids;

use crate::calls;
use crate::http::{Answer, Call};
use crate::journal::{Entry, Journal};
use crate::lambda::{Failed, Function};
use crate::roles::{Roles, as_function};
use crate::template::{Template, TemplateRoute, function_name};
use crate::traces::Origin;
use crate::{Trouble, functions};

/// API Gateway's own limit of a body, in bytes.
const BODY_LIMIT: usize = 10 * 1024 * 1024;
/// Lambda's own limit of an event, in bytes.
const REQUEST_LIMIT: usize = 6 * 1024 * 1024;
/// Lambda's own limit of a function's answer, in bytes.
pub const RESPONSE_LIMIT: usize = 6_291_556;

/// The stage in events.
const STAGE: &str = "local";

/// Everything between HTTP and the endpoints.
#[derive(Debug)]
pub struct Gateway {
    /// The service, as `shared::runtime::lambda` would set it up.
    pub service: Service,
    library: Library,
    routes: Vec<TemplateRoute>,
    /// The headers of an answer to a preflight request, beside the allowed origin.
    preflight: BTreeMap<String, String>,
    ids: Ids,
    journal: Arc<Journal>,
    record: Option<PathBuf>,
    log: bool,
    look: Option<Look>,
    roles: Option<Roles>,
    /// If each function is a process of its own: the service in each of these processes.
    processes: Option<Mutex<BTreeMap<String, Arc<Service>>>>,
    /// The largest difference between their clocks, in milliseconds.
    clocks_apart: i64,
    /// The number of invocations of functions on the stream and on schedules.
    pub invocations: AtomicU32,
}

/// The endpoint of a route.
#[derive(Debug, Clone, Copy)]
pub enum Routed {
    /// An operation, for callers with a key.
    Operation(&'static Handler),
    /// A document, for all callers.
    Document(&'static Published),
    /// The server of tools, for callers with a key.
    Server(&'static Server),
}

impl Routed {
    /// The function's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operation(handler) => handler.route.name,
            Self::Document(document) => document.route.name,
            Self::Server(server) => server.route.name,
        }
    }
}

/// A function that is called with each request and its answer.
pub type Look = fn(&Call, &Answer);

impl Gateway {
    /// The gateway of `template`, in front of `service`. It writes each event to the folder `record`, and a line about
    /// each request if `log` is set.
    ///
    /// # Errors
    /// [`Trouble`] where the template has an unknown function.
    pub fn new(
        template: &Template,
        service: Service,
        ids: Ids,
        journal: Arc<Journal>,
        record: Option<PathBuf>,
        log: bool,
    ) -> Result<Self, Trouble> {
        for route in &template.routes {
            if endpoint(&route.function).is_none() {
                return Err(Trouble(format!(
                    "the template's function {} is not built into this program",
                    route.function
                )));
            }
        }
        let routes = template.routes.clone();
        let library = Library::new(service.config.clone());
        Ok(Self {
            service,
            library,
            routes,
            preflight: template.preflight.clone(),
            ids,
            journal,
            record,
            log,
            look: None,
            roles: None,
            processes: None,
            clocks_apart: 0,
            invocations: AtomicU32::default(),
        })
    }

    /// The same with a process for each function, as in Lambda: no process knows the memory of another one.
    #[must_use]
    pub fn with_processes(self, clocks_apart: i64) -> Self {
        Self { processes: Some(Mutex::default()), clocks_apart, ..self }
    }

    /// The same with the roles of its functions.
    #[must_use]
    pub fn with_roles(self, roles: Roles) -> Self {
        Self { roles: Some(roles), ..self }
    }

    /// The same with a function that is called with every request.
    #[must_use]
    pub fn looked_at_by(self, look: Option<Look>) -> Self {
        Self { look, ..self }
    }

    /// The service in the process of the function `name`.
    fn service_of(&self, name: &str) -> Option<Arc<Service>> {
        let mut processes = self.processes.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = || {
            let service = self.service.in_another_process();
            // The length of a function's name decides whether its clock is late, right or early.
            let ahead = [-self.clocks_apart / 2, 0, self.clocks_apart / 2][name.len() % 3];
            Arc::new(Service { clock: service.clock.ahead_by(ahead), ..service })
        };
        Some(Arc::clone(processes.entry(name.to_owned()).or_insert_with(begin)))
    }

    /// The routes of the API, and of Lambda's invocations.
    pub fn router(self: Arc<Self>) -> Router {
        let invoking = post(invoke).layer(DefaultBodyLimit::max(BODY_LIMIT));
        Router::new().route(INVOCATIONS, invoking).fallback(http).with_state(self)
    }

    /// Answers `call` as API Gateway and the function behind it would.
    pub async fn answer(&self, call: &Call) -> Answer {
        let started = Instant::now();
        let request_id = self.ids.fresh(self.service.clock.now()).to_string();
        // Boxed: the tests keep this future within others.
        let origin = Origin::request(&self.journal.traces, &request_id);
        let (answer, calls) = calls::recorded(origin, Box::pin(self.answer_as(call, &request_id))).await;
        if let Some(look) = self.look {
            look(call, &answer);
        }
        let took = started.elapsed();
        if self.log {
            self.journal.learn(call, &answer);
            let Cost { calls, read_units, write_units, .. } = answer.cost;
            let milliseconds = took.as_millis();
            let (method, path, status) = (&call.method, &call.path, answer.status);
            println!(
                "{method} {path} {status} {milliseconds} ms, {calls} calls, {read_units} read units, {write_units} write units"
            );
        }
        self.journal.add(Entry::new(request_id, self.service.clock.now(), call, &answer, took, calls));
        answer
    }

    async fn answer_as(&self, call: &Call, request_id: &str) -> Answer {
        if call.method == "OPTIONS" && self.service.config.cors_allow_origin.is_some() {
            return self.preflight(request_id);
        }
        match self.function(&call.method, &call.path) {
            _ if call.body.len() > BODY_LIMIT => {
                let msg = format!("Body should have at most {BODY_LIMIT} bytes");
                refuse(413, request_id, &["body"], &msg, "payload_too_large")
            }
            None => refuse(404, request_id, &["path"], "Not found", "not_found"),
            Some(endpoint) => {
                let event = self.event(call, request_id);
                self.keep(endpoint.name(), &serde_json::to_string_pretty(&event).unwrap_or_default());
                self.invoke(endpoint, event).await
            }
        }
    }

    /// The answer to a preflight request, if pages of another origin may call the API.
    fn preflight(&self, request_id: &str) -> Answer {
        let own = [("content-type", "application/json".to_owned()), ("x-request-id", request_id.to_owned())];
        let headers = own.into_iter().chain(self.service.config.cors_headers());
        let mut headers: BTreeMap<_, _> = headers.map(|(name, value)| (name.to_owned(), value)).collect();
        headers.extend(self.preflight.clone());
        Answer { status: 200, headers, body: "{}".to_owned(), cost: Cost::default() }
    }

    /// Passes `event` to `endpoint`, as Lambda would.
    pub async fn invoke(&self, endpoint: Routed, event: Value) -> Answer {
        let process = self.service_of(endpoint.name());
        self.invoke_with(process.as_deref().unwrap_or(&self.service), endpoint, event).await
    }

    /// The same with another service than the gateway's.
    pub async fn invoke_with(&self, service: &Service, endpoint: Routed, event: Value) -> Answer {
        // The event becomes text and is parsed again: a function receives only values that JSON can represent.
        let event = event.to_string();
        if event.len() > REQUEST_LIMIT {
            return refuse(
                413,
                "",
                &["body"],
                &format!("Request should have at most {REQUEST_LIMIT} bytes"),
                "payload_too_large",
            );
        }
        let request = match serde_json::from_str::<LambdaRequest>(&event) {
            Ok(event) => HttpRequest::from_event(event, "no request id"),
            Err(error) => return refuse(500, "", &[], &error.to_string(), "internal_error"),
        };
        let answer = async {
            match endpoint {
                Routed::Operation(handler) => handler.answer(service, &request).await,
                Routed::Document(document) => self.library.answer(document, &request),
                Routed::Server(server) => server.answer(service, &request).await,
            }
        };
        let response = as_function(endpoint.name(), answer).await;
        let lacks = |roles: &Roles| roles.lacks_for_addresses(endpoint.name(), &response.body);
        if let Some(permission) = self.roles.as_ref().and_then(lacks) {
            return refuse(500, "", &[], &format!("A signed address needs {permission}"), "internal_error");
        }
        // The size of a large answer is measured after printing it as the function would.
        if response.body.len() > RESPONSE_LIMIT / 2
            && serde_json::to_string(&response).map_or(0, |payload| payload.len()) > RESPONSE_LIMIT
        {
            return refuse(502, "", &[], "The function's answer is larger than Lambda passes on", "internal_error");
        }
        let HttpResponse { status_code, headers, body, cost, .. } = response;
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Answer { status: status_code, headers, body, cost }
    }

    /// Invokes `function`, named as in the template or as its package, as Lambda's own API does.
    pub async fn invoke_by_name(&self, function: &str, payload: &[u8]) -> Answer {
        let plain = |status: u16, body: String, headers: &[(&str, &str)]| Answer {
            status,
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            body,
            cost: Cost::default(),
        };
        match self.run(&function_name(function), payload).await {
            Some(Ok(body)) => plain(200, body, &[]),
            Some(Err(failed)) => plain(200, failed.to_json().to_string(), &[("x-amz-function-error", "Unhandled")]),
            None => {
                let body = json!({"Message": format!("Function not found, or no event: {function}")});
                plain(404, body.to_string(), &[])
            }
        }
    }

    /// Runs the function `name` of any kind as its binary would. `None` if there is no such function, or if the payload
    /// is no event of an operation.
    async fn run(&self, name: &str, payload: &[u8]) -> Option<Result<String, Failed>> {
        as_function(name, self.run_function(name, payload)).await
    }

    /// The same for an event of the stream or of a schedule: what the function writes has the traces of the changes.
    async fn run_traced(&self, name: &'static str, payload: &str) -> Option<Result<String, Failed>> {
        let run = Box::pin(self.run(name, payload.as_bytes()));
        if self.log { self.journal.traced(name, payload, run).await } else { run.await }
    }

    async fn run_function(&self, name: &str, payload: &[u8]) -> Option<Result<String, Failed>> {
        let process = self.service_of(name);
        let cx = EventContext { service: process.as_deref().unwrap_or(&self.service) };
        if let Some(task) = functions::TASKS.iter().find(|task| task.name == name) {
            let answer = task.invoke(cx.service, payload).await;
            return Some(answer.map_err(|refusal| Failed::new(refusal.kind, refusal.message)));
        }
        if let Some(consumer) = functions::CONSUMERS.iter().find(|consumer| consumer.name == name) {
            let outcome = match serde_json::from_slice(payload) {
                Ok(BatchOrTick { records: Some(records) }) => Ok(consumer.handle(&cx, &StreamEvent { records }).await),
                Ok(BatchOrTick { records: None }) => {
                    let ticked = consumer.tick(&cx).await.map(|()| BatchOutcome::default());
                    ticked.map_err(|error| Failed::new("Error", error))
                }
                Err(error) => Err(Failed::new("Error", error)),
            };
            return Some(outcome.map(|outcome| json!(outcome).to_string()));
        }
        if let Some(scheduled) = functions::SCHEDULED.iter().find(|scheduled| scheduled.name == name) {
            let ticked = scheduled.tick(&cx).await;
            return Some(ticked.map(|()| Value::Null.to_string()).map_err(|error| Failed::new("Error", error)));
        }
        let Answer { status, headers, body, .. } =
            self.invoke(endpoint(name)?, serde_json::from_slice(payload).ok()?).await;
        Some(Ok(json!({"statusCode": status, "headers": headers, "body": body, "isBase64Encoded": false}).to_string()))
    }

    /// The function `name`, as the stream or a schedule invokes it.
    ///
    /// # Errors
    /// [`Trouble`] where no function of that name accepts events.
    pub fn event_function(self: &Arc<Self>, name: &str) -> Result<Function, Trouble> {
        let consumers = functions::CONSUMERS.iter().map(|consumer| consumer.name);
        let scheduled = functions::SCHEDULED.iter().map(|scheduled| scheduled.name);
        // An operator's task may also have a schedule.
        let mut names = consumers.chain(scheduled).chain(functions::TASKS.iter().map(|task| task.name));
        let name = names
            .find(|known| *known == name)
            .ok_or_else(|| Trouble(format!("no function {name} that takes events is built into this program")))?;
        let gateway = Arc::clone(self);
        Ok(Arc::new(move |payload| {
            let gateway = Arc::clone(&gateway);
            gateway.keep(name, &payload);
            gateway.invocations.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                let missing = || Err(Failed::new("ResourceNotFoundException", name));
                let outcome = gateway.run_traced(name, &payload).await.unwrap_or_else(missing);
                gateway.journal.changed();
                outcome
            })
        }))
    }

    /// The endpoint that the template defines for `method` and `path`.
    fn function(&self, method: &str, path: &str) -> Option<Routed> {
        let (route, path) = routes::find_path(method, path)?;
        // The gateway serves a path with and without a slash at its end; the template declares it without.
        let path = path.trim_end_matches('/');
        let declared = self.routes.iter().find(|declared| declared.method == route.method && declared.path == path)?;
        endpoint(&declared.function)
    }

    /// The REST API (v1) proxy event of `call`.
    pub fn event(&self, call: &Call, request_id: &str) -> Value {
        let (resource, parameters) = routes::find_path(&call.method, &call.path)
            // The path in the form of the template.
            .and_then(|(_, path)| Some((path.trim_end_matches('/'), matched(path, &call.path)?)))
            .unwrap_or_default();
        let mut query: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(call.query.as_bytes()) {
            query.entry(name.into_owned()).or_default().push(value.into_owned());
        }
        let last: BTreeMap<_, _> = query.iter().filter_map(|(name, values)| Some((name, values.last()?))).collect();
        let parameters: BTreeMap<_, _> = parameters.into_iter().collect();
        let headers: BTreeMap<_, _> = call.headers.iter().map(|(name, value)| (name, vec![value])).collect();
        let text = String::from_utf8(call.body.clone()).ok().filter(|_| !is_form(call));
        let now = self.service.clock.now().unix_millis();
        let written = DateTime::from_timestamp_millis(now).unwrap_or_default().format("%d/%b/%Y:%H:%M:%S +0000");
        json!({
            "resource": resource,
            "path": call.path,
            "httpMethod": call.method,
            "headers": or_null(&call.headers),
            "multiValueHeaders": or_null(&headers),
            "queryStringParameters": or_null(&last),
            "multiValueQueryStringParameters": or_null(&query),
            "pathParameters": or_null(&parameters),
            "stageVariables": null,
            "requestContext": {
                "accountId": "000000000000",
                "apiId": "local",
                "domainName": "localhost",
                "httpMethod": call.method,
                "identity": {"sourceIp": "127.0.0.1", "userAgent": call.headers.get("user-agent")},
                "path": format!("/{STAGE}{}", call.path),
                "protocol": "HTTP/1.1",
                "requestId": request_id,
                "requestTime": written.to_string(),
                "requestTimeEpoch": now,
                "resourceId": "local",
                "resourcePath": resource,
                "stage": STAGE,
            },
            // Text stays unchanged. A form, and bytes that are no text, are in base64, as in the gateway for binary media types.
            "isBase64Encoded": text.is_none(),
            "body": text.map_or_else(|| Some(STANDARD.encode(&call.body)), |text| (!text.is_empty()).then_some(text)),
        })
    }

    /// Records the event of `function`, if events are recorded.
    fn keep(&self, function: &str, event: &str) {
        let Some(folder) = &self.record else { return };
        let text = format!("{event}\n");
        let write = || {
            std::fs::create_dir_all(folder)?;
            // The first event of a function has its name. Later ones are numbered, and none replaces another.
            let numbered = (2..).map(|number| format!("{function}.{number}.json"));
            for name in std::iter::once(format!("{function}.json")).chain(numbered) {
                match std::fs::File::create_new(folder.join(name)) {
                    Ok(mut file) => return file.write_all(text.as_bytes()),
                    Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        if let Err(error) = write() {
            eprintln!("{}: {error}", folder.display());
        }
    }
}

/// Whether the body of `call` is a form, which the template names as a binary media type.
fn is_form(call: &Call) -> bool {
    call.headers.get("content-type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with(FORM))
}

/// The endpoint of the function `name`.
pub fn endpoint(name: &str) -> Option<Routed> {
    let mut handlers = functions::OPERATIONS.iter().chain(functions::SIGNED).map(|operation| &operation.handler);
    let operation = handlers.find(|handler| handler.route.name == name);
    let document = functions::DOCUMENTS.iter().find(|document| document.route.name == name);
    let server = functions::SERVERS.iter().find(|server| server.route.name == name);
    operation.map(Routed::Operation).or(document.map(Routed::Document)).or(server.map(Routed::Server))
}

/// The path of Lambda's own API for invocations, so that `aws lambda invoke` works with this address as its endpoint.
const INVOCATIONS: &str = "/2015-03-31/functions/{name}/invocations";

async fn invoke(State(gateway): State<Arc<Gateway>>, Path(name): Path<String>, payload: Bytes) -> Response {
    response(gateway.invoke_by_name(&name, &payload).await)
}

async fn http(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // One byte more than the limit shows that the body is too large.
    let body = to_bytes(body, BODY_LIMIT + 1).await.map_or_else(|_| vec![0; BODY_LIMIT + 1], Into::into);
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let call = Call {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body,
    };
    response(gateway.answer(&call).await)
}

fn response(answer: Answer) -> Response {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(answer.body)).unwrap_or_default()
}

/// The gateway's own answers, in the form of all failures, as in the template's `GatewayResponses`.
fn refuse(status: u16, request_id: &str, loc: &[&str], msg: &str, kind: &str) -> Answer {
    let headers = ALWAYS.into_iter().chain([("content-type", "application/json"), ("x-request-id", request_id)]);
    Answer {
        status,
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        body: json!({"detail": [{"loc": loc, "msg": msg, "type": kind}]}).to_string(),
        cost: Cost::default(),
    }
}

/// API Gateway writes null for an empty map.
fn or_null<K: serde::Serialize + Ord, V: serde::Serialize>(map: &BTreeMap<K, V>) -> Option<&BTreeMap<K, V>> {
    (!map.is_empty()).then_some(map)
}
