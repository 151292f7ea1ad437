//! Gives the tests a stack with fixed clock and ids, the demo set's keys and ids, and builders of calls.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use dynoxide::actions::scan::ScanRequest;
use local::database::{Data, TABLE_NAME, snapshot};
use local::faults::Faults;
use local::functions::{CONSUMERS, describe};
use local::gateway::Look;
use local::http::{Answer, Call};
use local::payment_provider::signature;
use local::roles::Permit;
use local::{Settings, Stack};
use repository::root;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use shared::records::contact::Contact;
use shared::request::event::EventContext;
use shared::request::route::{Access, Route};
use shared::runtime::stream::StreamEvent;
use shared::table::Table;
use shared::table::item::{Item, number};
use shared::table::keys::{LIST_HEAD, list_head};
use shared::table::reservation::LONG;
use shared::table::rows::INSERT_LIMIT;
use shared::table::store::BATCH_WRITE_LIMIT;
use shared::table::stored::Listed;
use shared::values::id::{ContactId, Ids, OrgId, SPREAD, with_ordinal};
use shared::values::tenant::Tenant;
use shared::values::time::{Clock, Timestamp};
use uuid::Uuid;

use crate::exercises::{Exercise, exercise};
use crate::support::documented::documented;
use crate::support::permits::permit;
use crate::support::sealed::open_secrets;

/// The demo set's keys.
pub const ACME: &str = "in-demo-acme-admin-000000000000000000000000000";
pub const ACME_FULL: &str = "in-demo-acme-full-0000000000000000000000000000";
pub const ACME_READ_ONLY: &str = "in-demo-acme-read-only-00000000000000000000000";
pub const GLOBEX_READ_ONLY: &str = "in-demo-globex-read-only-000000000000000000000";
pub const GLOBEX: &str = "in-demo-globex-admin-0000000000000000000000000";

/// The time of every test: 2026-02-01T12:00:00Z.
pub const NOW: i64 = 1_769_947_200_000;

/// The fields of the body of `route`, each with its schema.
pub fn fields(route: &Route) -> Vec<(String, Value)> {
    let (schema, _) = describe(route.name).body.unwrap();
    schema["properties"].as_object().unwrap().clone().into_iter().collect()
}

/// `schema` without the null that a field with a default may also be.
pub fn not_null(schema: &Value) -> &Value {
    schema["anyOf"].get(0).unwrap_or(schema)
}

/// Settings with a fixed clock, counted ids, and the table of the demo set.
pub fn settings() -> Settings {
    static LOADED: LazyLock<PathBuf> = LazyLock::new(|| loaded("demo.db", demo(false)));
    Settings { data: Data::CopyOf(LOADED.clone()), ..empty() }
}

/// The same with three rows in every long list, for tests that compare whole tables often.
pub fn few() -> Settings {
    static LOADED: LazyLock<PathBuf> = LazyLock::new(|| loaded("few.db", few_of(3, false)));
    Settings { data: Data::CopyOf(LOADED.clone()), ..empty() }
}

/// The demo set with the table's stream.
pub fn streaming() -> Settings {
    static LOADED: LazyLock<PathBuf> = LazyLock::new(|| loaded("demo-with-stream.db", demo(true)));
    Settings { data: Data::CopyOf(LOADED.clone()), stream: true, ..empty() }
}

/// The same with forty rows in every long list, for tests that repeat much work of the stream.
pub fn few_streaming() -> Settings {
    static LOADED: LazyLock<PathBuf> = LazyLock::new(|| loaded("few-with-stream.db", few_of(40, true)));
    Settings { data: Data::CopyOf(LOADED.clone()), stream: true, ..empty() }
}

/// The demo set with `rows` rows in every list that has a hundred or more.
fn few_of(rows: usize, stream: bool) -> Settings {
    let set = std::fs::read_to_string(Settings::of(&root()).demo.unwrap()).unwrap();
    let few = scratch(&format!("few-{rows}.yaml"));
    let repeat = format!("repeat: {rows}");
    std::fs::write(&few, set.replace("repeat: 120", &repeat).replace("repeat: 250", &repeat)).unwrap();
    Settings { demo: Some(few), ..demo(stream) }
}

fn demo(stream: bool) -> Settings {
    Settings { demo: Settings::of(&root()).demo, stream, ..empty() }
}

/// A file with the demo set after the work of the stream. It is loaded once and then copied, so that a test only waits
/// for its own calls.
fn loaded(name: &str, settings: Settings) -> PathBuf {
    let file = scratch(name);
    let load = async {
        let stack = Stack::start(settings).await.unwrap();
        stack.settle().await.unwrap();
        snapshot(&stack.database, &file).unwrap();
    };
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::scope(|scope| scope.spawn(|| runtime().block_on(load)).join().unwrap());
    file
}

/// The time limit of an attempt to call the database or an endpoint. It is so long that a busy machine stays within it.
pub const PATIENT: Duration = Duration::from_secs(20);

/// The lanes of the stream: two work at the same time, and their batches are large. The fault run has the number of the
/// template.
const LANES: usize = 2;

/// Settings with a fixed clock, counted ids and an empty table, without a stream. They have no audit list, because many
/// tests compare whole tables. `audit.rs` has the tests of the list.
pub fn empty() -> Settings {
    let clock = Clock::at(Timestamp::from_unix_millis(NOW));
    let (look, permit) = (Some(documented as Look), Some(permit as Permit));
    let settings = Settings { look, permit, ..Settings::of(&root()) };
    let settings = Settings { lanes: Some(LANES), attempt: PATIENT, audit_days: 0, ..settings };
    Settings { clock, ids: Ids::counted(), demo: None, stream: false, ..settings }
}

pub async fn stack() -> Stack {
    Stack::start(settings()).await.unwrap()
}

/// A stack with the faults of its database and its bucket.
pub async fn with_faults(settings: Settings) -> (Stack, Faults) {
    let faults = settings.faults.clone();
    (Stack::start(settings).await.unwrap(), faults)
}

/// A stack and its clock, which begins at the machine's time, because S3 compares signatures with that time.
pub async fn stack_of_today(settings: Settings) -> (Stack, Clock) {
    let clock = Clock::at(Clock::System.now());
    (Stack::start(Settings { clock: clock.clone(), ..settings }).await.unwrap(), clock)
}

/// An HTTP client without a proxy.
pub fn http_client() -> reqwest::Client {
    let tls = shared::network::tls::client_config(None).unwrap();
    reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap()
}

/// Sends a request about an object and returns status, type and body of the answer.
pub async fn send(method: &str, url: &str, headers: &Value, body: &[u8]) -> (u16, String, Vec<u8>) {
    let mut request = http_client().request(method.parse().unwrap(), url).body(body.to_vec());
    for (name, value) in headers.as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    let response = request.send().await.unwrap();
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    (response.status().as_u16(), kind.unwrap_or_default(), response.bytes().await.unwrap().to_vec())
}

/// A stack, and a function that sets its clock to a number of milliseconds after the test's beginning.
pub async fn stack_with_clock() -> (Stack, impl Fn(i64)) {
    let clock = Clock::at(Timestamp::from_unix_millis(NOW));
    let stack = Stack::start(Settings { clock: clock.clone(), ..settings() }).await.unwrap();
    (stack, move |millis| clock.set(Timestamp::from_unix_millis(NOW + millis)))
}

/// The tenant Acme.
#[expect(clippy::disallowed_methods, reason = "the tests are their own operator")]
pub fn tenant() -> Tenant {
    Tenant::operator(OrgId(Uuid::from_u128(0x0190_0000_0000_7000_8000_a000_0000_0001)))
}

/// Acme's part of the table, for work that no operation does.
pub fn acme(stack: &Stack) -> Table {
    Table::new(stack.store(), tenant())
}

/// Acme's part of the table, for calls that meet the planned faults of the stack.
pub fn faulty_acme(stack: &Stack) -> Table {
    Table::new(stack.gateway.service.store.clone(), tenant())
}

/// Lets `record-changed` handle these records of the stream as one batch.
pub async fn handle(stack: &Stack, records: &[Value]) {
    let event: StreamEvent = serde_json::from_value(json!({"Records": records})).unwrap();
    let cx = EventContext { service: &stack.gateway.service };
    let outcome = CONSUMERS[0].handle(&cx, &event).await;
    assert!(outcome.batch_item_failures.is_empty());
}

/// Makes a record of Acme by a POST and returns its id.
pub async fn make(stack: &Stack, path: &str, body: Value) -> Uuid {
    let made = data(&stack.answer(&post(path, ACME, body.to_string())).await);
    made["id"].as_str().unwrap().parse().unwrap()
}

/// The id of Acme's contact of this number, from the demo set or from [`add_contacts`].
pub fn contact_id(number: u32) -> String {
    let (number, first) = (u64::from(number), id('a', kind::CONTACT, 0).parse().unwrap());
    with_ordinal(first, if number < LONG { number } else { SPREAD + number - LONG }).to_string()
}

/// Adds contacts until Acme has `count`.
pub async fn add_contacts(stack: &Stack, count: u32) {
    let table = acme(stack);
    let have = u32::try_from(table.appended::<Contact>(()).await.unwrap()).unwrap();
    let ids: Vec<Uuid> = (have..count).map(|number| contact_id(number).parse().unwrap()).collect();
    // The list is spread over partitions from this row on.
    let (few, more) = ids.split_at(ids.len().min(usize::try_from(LONG).unwrap() - have as usize));
    for ids in few.chunks(INSERT_LIMIT).chain(more.chunks(INSERT_LIMIT)) {
        table.insert_all((), ids, |_, id| contact(id)).await.unwrap();
    }
}

/// A contact of Acme with the required members only.
fn contact(id: ContactId) -> Contact {
    serde_json::from_value(json!({
        "id": id,
        "org_id": "01900000-0000-7000-8000-a00000000001",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
    }))
    .unwrap()
}

/// Writes items directly, for tables that would take too long by calls.
pub async fn put_items(stack: &Stack, items: impl IntoIterator<Item = Item>) {
    let put = |item: Item| {
        let put = PutRequest::builder().set_item(Some(item)).build().unwrap();
        WriteRequest::builder().put_request(put).build()
    };
    let requests: Vec<WriteRequest> = items.into_iter().map(put).collect();
    for batch in requests.chunks(BATCH_WRITE_LIMIT) {
        stack.client.batch_write_item().request_items(TABLE_NAME, batch.to_vec()).send().await.unwrap();
    }
}

/// Lets Acme's list of `R` continue at this ordinal of a spread row.
pub async fn go_on_at<R: Listed<Of = ()>>(stack: &Stack, ordinal: u64) {
    let mut head = list_head(&tenant(), &R::list(())).attributes();
    let have = acme(stack).appended::<R>(()).await.unwrap();
    head.extend([("next_ordinal".into(), number(ordinal)), ("spread_from".into(), number(have))]);
    put_items(stack, [head]).await;
}

/// Makes a row unreadable.
pub async fn spoil(stack: &Stack, list: &str, ordinal: u32, attribute: &str) {
    let text = |text: String| AttributeValue::S(text);
    let update = stack.client.update_item().table_name(TABLE_NAME);
    let update = update.key("pk", text(format!("ORG#01900000-0000-7000-8000-a00000000001#LIST#{list}#ROWS")));
    let update = update.key("sk", text(format!("{ordinal:010}"))).update_expression("SET #name = :broken");
    let update = update.expression_attribute_names("#name", attribute);
    update.expression_attribute_values(":broken", AttributeValue::L(Vec::new())).send().await.unwrap();
}

/// Leaves an abandoned reservation in every list, as by a process that crashed `minutes` ago before it wrote the row.
pub async fn die_in_every_list(stack: &Stack, minutes: i64) {
    let token = format!("{}goner00", minute_of_tokens(minutes));
    for head in everything(stack).await.iter().filter(|item| item["sk"].as_s().unwrap() == LIST_HEAD) {
        let update = stack.client.update_item().table_name(TABLE_NAME);
        let update = update.key("pk", head["pk"].clone()).key("sk", head["sk"].clone());
        let update = update.update_expression("SET next_ordinal = next_ordinal + :one, #token = next_ordinal");
        let update = update.expression_attribute_names("#token", &token);
        update.expression_attribute_values(":one", AttributeValue::N("1".into())).send().await.unwrap();
    }
}

/// Changes every token on every head to a reservation `minutes` ago.
pub async fn age_tokens(stack: &Stack, minutes: i64) {
    let begins = minute_of_tokens(minutes);
    let aged = |(name, value): (String, AttributeValue)| match name.as_str() {
        "pk" | "sk" | "next_ordinal" => (name, value),
        token => (format!("{begins}{}", &token[begins.len()..]), value),
    };
    let heads = as_stored(stack).into_iter().filter(|item| item["sk"].as_s().unwrap() == LIST_HEAD);
    let heads: Vec<Item> = heads.map(|head| head.into_iter().map(aged).collect()).collect();
    put_items(stack, heads).await;
}

/// The beginning of the name of a token from `ago` minutes ago.
fn minute_of_tokens(ago: i64) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "tokens have the machine's time, not the time of the service's clock"
    )]
    let minute = u64::try_from(chrono::Utc::now().timestamp() / 60 - ago).unwrap();
    let digit = |place: u32| char::from_digit(u32::try_from(minute / 36_u64.pow(place) % 36).unwrap(), 36).unwrap();
    (0..3).rev().map(digit).collect()
}

/// A path of this test run.
pub fn scratch(name: &str) -> PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folders = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("runs");
        let folder = folders.join(std::process::id().to_string());
        // An earlier process may have had the same number, and have left its files.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        // Other runs may be using the folders of today.
        for other in std::fs::read_dir(folders).unwrap().flatten() {
            let written = other.metadata().and_then(|folder| folder.modified());
            if written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > Duration::from_hours(24))) {
                let _ = std::fs::remove_dir_all(other.path());
            }
        }
        folder
    });
    FOLDER.join(name)
}

/// An id of the demo set: organisation `a` or `b`, kind and number as the file's head explains.
pub fn id(organisation: char, kind: u8, number: u32) -> String {
    match kind {
        // A file's id has its place in the list of its data source, and the place of the data source.
        kind::DATASOURCE_FILE => format!("01900000-0000-7{organisation}04-8000-00010000{number:04x}"),
        _ => format!("01900000-0000-7000-8000-{organisation}0{kind:02x}{number:08x}"),
    }
}

/// The kinds of ids.
pub mod kind {
    pub const TAG: u8 = 1;
    pub const INTENT: u8 = 2;
    pub const FORM: u8 = 3;
    pub const DATASOURCE: u8 = 4;
    pub const DATASOURCE_FILE: u8 = 5;
    pub const ASSISTANT: u8 = 6;
    pub const WIDGET: u8 = 7;
    pub const CONTACT: u8 = 8;
    pub const CAMPAIGN: u8 = 9;
    pub const AGENCY: u8 = 10;
    pub const WEBHOOK: u8 = 11;
    pub const USER: u8 = 12;
    pub const LINK: u8 = 13;
    pub const API_KEY: u8 = 14;
    pub const CONVERSATION: u8 = 15;
    pub const MESSAGE: u8 = 16;
    pub const BILLING_PLAN: u8 = 17;
    pub const FAILED_CAMPAIGN: u8 = 20;
    pub const NEW_CAMPAIGN: u8 = 21;
}

/// A request with a key; `path` may have a query.
pub fn call(method: &str, path: &str, key: &str) -> Call {
    let (path, more) = path.split_once('?').unwrap_or((path, ""));
    let query = format!("api_key={key}&{}", more.trim_start_matches('&')).trim_end_matches('&').to_owned();
    Call { method: method.into(), path: path.into(), query, ..Call::default() }
}

pub fn post(path: &str, key: &str, body: impl Into<Vec<u8>>) -> Call {
    Call { body: body.into(), ..call("POST", path, key) }
}

/// The `data` that Acme reads at `path`.
pub async fn get(stack: &Stack, path: &str) -> Value {
    data(&stack.answer(&call("GET", path, ACME)).await)
}

/// The id that the demo set has for a path parameter, in `organisation`.
pub fn demo_id(organisation: char, parameter: &str) -> String {
    match parameter {
        "datasourcefile_id" => id(organisation, kind::DATASOURCE_FILE, 1),
        "campaign_contact_id" => id(organisation, kind::CAMPAIGN, 1),
        "campaign_id" => id(organisation, kind::CAMPAIGN, 0),
        "conversation_id" => id(organisation, kind::CONVERSATION, 1),
        // An event has the id of its conversation, and a delivery too, except for the place.
        "delivery_id" | "event_id" => id(organisation, kind::CONVERSATION, 0),
        "link_tag_entity_id" => id(organisation, kind::LINK, 1),
        // The first key is that of the calls.
        "api_key_id" => id(organisation, kind::API_KEY, 2),
        other => second_of_kind(organisation, other),
    }
}

/// The id of the second record of a kind in the demo set: of `notes` for the parameter `note_id`.
fn second_of_kind(organisation: char, parameter: &str) -> String {
    static SET: LazyLock<Value> = LazyLock::new(|| {
        serde_yaml_ng::from_str(&std::fs::read_to_string(Settings::of(&root()).demo.unwrap()).unwrap()).unwrap()
    });
    let name = parameter.strip_suffix("_id").unwrap();
    let plural = name.strip_suffix('y').map_or_else(|| format!("{name}s"), |stem| format!("{stem}ies"));
    let records = &SET["organisations"][usize::from(organisation == 'b')]["records"][&plural];
    let id_at = |place: usize| records[place]["id"].as_str().map(|id| id.parse::<Uuid>().unwrap());
    let id = match records[0]["repeat"].as_u64() {
        Some(_) => id_at(0).map(|id| with_ordinal(id, 1)),
        None => id_at(1),
    };
    id.unwrap_or_else(|| panic!("the demo set has no two {plural} of {organisation}")).to_string()
}

/// The path of `route`, with its parameters from `fill`.
pub fn path(route: &Route, fill: impl Fn(&str) -> String) -> String {
    filled(route.path, fill)
}

/// The name of the parameter that this part of a path is.
pub fn parameter(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// `path` with its parameters from `fill`.
pub fn filled(path: &str, fill: impl Fn(&str) -> String) -> String {
    let segment = |segment: &str| parameter(segment).map_or_else(|| segment.to_owned(), &fill);
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// A body that `route` accepts, or an empty one.
pub fn valid_body(route: &Route, organisation: char) -> String {
    (exercise(route).body)(organisation)
}

/// A call of `route` that succeeds for `organisation`, whose key is `key`.
pub fn valid_call(route: &Route, organisation: char, key: &str) -> Call {
    let Exercise { numbers, demo, query, .. } = exercise(route);
    let path = path(route, |parameter| {
        let demo = demo(organisation, parameter);
        match numbers.iter().find(|(name, _)| *name == parameter) {
            Some((_, number)) => format!("{}{number:08x}", &demo[..28]),
            None => demo,
        }
    });
    let body = valid_body(route, organisation).into_bytes();
    if route.access == Access::Signed {
        // Such a call has no key. It is signed with the secret of the demo set.
        return signed(&path, demo_payment_secret(organisation), body);
    }
    // Of the demo set's keys the read-only ones name a user: what the others make counts for nobody.
    let key = match key {
        ACME | ACME_FULL if *route == shared::routes::READ_OWN_USER => ACME_READ_ONLY,
        GLOBEX if *route == shared::routes::READ_OWN_USER => GLOBEX_READ_ONLY,
        key => key,
    };
    Call { body, ..call(route.method, &format!("{path}?{}", query(organisation)), key) }
}

/// The key of Acme in the query of `call`.
pub fn key_of(call: &Call) -> &'static str {
    [ACME, ACME_READ_ONLY].into_iter().find(|key| call.query.contains(key)).unwrap()
}

/// The secret of the payment webhook of the demo set's first agency.
pub fn demo_payment_secret(organisation: char) -> &'static str {
    if organisation == 'a' { "whsec_demo_acme" } else { "whsec_demo_globex" }
}

/// A call that the payment provider signs with `secret` at the time of the tests.
pub fn signed(path: &str, secret: &str, body: Vec<u8>) -> Call {
    let signature = signature(secret, NOW / 1000, &body);
    let headers = [("stripe-signature".to_owned(), signature)].into();
    Call { method: "POST".into(), path: path.into(), headers, body, ..Call::default() }
}

/// The answer's body.
pub fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

/// The `data` of a success.
pub fn data(answer: &Answer) -> Value {
    assert!(answer.status < 300, "{} {}", answer.status, answer.body);
    json(answer)["data"].clone()
}

/// The body of an answer without the parts that differ between stacks: ports and signatures.
pub fn portable(stack: &Stack, body: &str) -> String {
    let mut text = body.replace(&stack.url, "http://localhost").replace(&stack.s3_url, "http://localhost");
    let name = "X-Amz-Signature=";
    for (at, _) in text.clone().match_indices(name) {
        let digits = at + name.len()..at + name.len() + 64;
        assert!(text[digits.clone()].bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
        text.replace_range(digits, &"0".repeat(64));
    }
    text
}

/// The status of a failure, and the place and type of each issue.
pub fn failure(answer: &Answer) -> (u16, Vec<String>) {
    let issues = json(answer)["detail"].as_array().cloned().unwrap_or_default();
    (
        answer.status,
        issues.iter().map(|issue| format!("{} {}", issue["loc"], issue["type"].as_str().unwrap())).collect(),
    )
}

/// Every item of the table, as it is stored. Asks the database itself, because tests compare whole tables often and the
/// SDK is slow.
pub fn as_stored(stack: &Stack) -> Vec<BTreeMap<String, AttributeValue>> {
    let (mut items, mut next) = (Vec::<BTreeMap<String, AttributeValue>>::new(), None);
    loop {
        let request =
            ScanRequest { table_name: TABLE_NAME.to_owned(), exclusive_start_key: next, ..Default::default() };
        let page = stack.database.scan(request).unwrap();
        let found = page.items.unwrap_or_default().into_iter();
        items.extend(found.map(|item| item.into_iter().map(|(name, value)| (name, value_of(value))).collect()));
        next = page.last_evaluated_key;
        if next.is_none() {
            return items;
        }
    }
}

/// Every item of the table, in order, without the tokens of reservations, whose names are random, without the marks of
/// the guard of suppressions, which are random too, and without the days on which keys were used, which also a refused
/// request notes. Its secrets are open: they are never sealed into the
/// same bytes.
pub async fn everything(stack: &Stack) -> Vec<BTreeMap<String, AttributeValue>> {
    let mut items = as_stored(stack);
    open_secrets(&stack.kms.secrets(), &mut items).await;
    let text = |item: &BTreeMap<String, AttributeValue>, name| item[name].as_s().unwrap().clone();
    items.retain(|item| !["used_on", "mark"].iter().any(|name| item.contains_key(*name)));
    for head in items.iter_mut().filter(|item| text(item, "sk") == LIST_HEAD) {
        head.retain(|name, _| ["pk", "sk", "next_ordinal"].contains(&name.as_str()));
    }
    items.sort_by_cached_key(|item| (text(item, "pk"), text(item, "sk")));
    items
}

/// The SDK's form of a value of the database. A conversion by JSON would slow the tests by half.
fn value_of(value: dynoxide::AttributeValue) -> AttributeValue {
    use dynoxide::AttributeValue as Held;
    match value {
        Held::S(text) => AttributeValue::S(text),
        Held::N(number) => AttributeValue::N(number),
        Held::B(bytes) => AttributeValue::B(bytes.into()),
        Held::BOOL(is) => AttributeValue::Bool(is),
        Held::NULL(is) => AttributeValue::Null(is),
        Held::SS(texts) => AttributeValue::Ss(texts),
        Held::NS(numbers) => AttributeValue::Ns(numbers),
        Held::BS(all) => AttributeValue::Bs(all.into_iter().map(Into::into).collect()),
        Held::L(values) => AttributeValue::L(values.into_iter().map(value_of).collect()),
        Held::M(members) => {
            AttributeValue::M(members.into_iter().map(|(name, value)| (name, value_of(value))).collect())
        }
    }
}

/// The member `name` of a JSON object, as it is written.
pub fn member(object: &str, name: &str) -> String {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(object).unwrap();
    members[name].get().to_owned()
}
