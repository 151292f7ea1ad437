//! Tests of the limits per key: how many requests many processes admit, how a refusal answers, and what limits cost.
//! The tests set the clock by hand.

use local::faults::Fault;
use local::gateway::{Routed, endpoint};
use local::http::{Answer, Call};
use local::{Settings, Stack, functions};
use serde_json::{Value, json};
use shared::mcp::message::VERSIONS;
use shared::request::context::Service;
use shared::request::http::{HttpRequest, HttpResponse};
use shared::request::route::Route;
use shared::routes;
use shared::table::meter::Cost;
use shared::values::limits::Limits;
use shared::values::time::{Clock, Timestamp};

use crate::support::agents;
use crate::support::fixture::{
    ACME, ACME_READ_ONLY, GLOBEX, NOW, call, everything, failure, get, json, key_of, post, settings, valid_call,
    with_faults,
};

const POLICY: &str = "ratelimit-policy";
const TAGS: &str = "/api/v1/tag/list";

/// A stack with these limits of every key, and its clock.
async fn limited(requests_per_second: u32, burst: u32) -> (Stack, Clock) {
    let clock = Clock::at(Timestamp::from_unix_millis(NOW));
    let key_limits = Limits::new(requests_per_second, burst);
    (Stack::start(Settings { clock: clock.clone(), key_limits, ..settings() }).await.unwrap(), clock)
}

/// Many processes of functions, which share nothing but the table.
struct Processes {
    stack: Stack,
    clock: Clock,
    services: Vec<Service>,
}

impl Processes {
    async fn start(count: usize, requests_per_second: u32, burst: u32) -> Self {
        let (stack, clock) = limited(requests_per_second, burst).await;
        let services = (0..count).map(|_| stack.gateway.service.in_another_process()).collect();
        Self { stack, clock, services }
    }

    /// Sends `process` a request with `key`.
    async fn ask(&self, process: usize, key: &str) -> HttpResponse {
        let request = valid_call(&routes::READ_TAG, if key == GLOBEX { 'b' } else { 'a' }, key);
        let event = serde_json::from_value(self.stack.gateway.event(&request, "r")).unwrap();
        let Some(Routed::Operation(handler)) = endpoint("read-tag") else { panic!("no read-tag") };
        handler.answer(&self.services[process], &HttpRequest::from_event(event, "")).await
    }

    fn set(&self, millis: i64) {
        self.clock.set(Timestamp::from_unix_millis(NOW + millis));
    }
}

fn retry_after(answer: &HttpResponse) -> i64 {
    answer.headers["retry-after"].parse().unwrap()
}

/// 20 processes get three times the requests that the key allows. After the burst they admit the limit, give or take a
/// fifth. Another organisation, which uses the same processes, is never refused. A caller that waits for the time in
/// `Retry-After` is answered.
#[tokio::test]
async fn many_processes_admit_a_key_at_its_limit() {
    const PROCESSES: usize = 20;
    for (rate, burst) in [(20, 40), (20, 20), (30, 100)] {
        let world = Processes::start(PROCESSES, rate, burst).await;
        let (burst_used, seconds) = (i64::from(burst / rate) + 2, 5);
        let (mut admitted, mut asked, mut writes, mut refusal) = (0, 0, 0.0, None);
        let every = 1000 / (i64::from(rate) * 3);
        let end = (burst_used + seconds) * 1000;
        for millis in (0..end).step_by(usize::try_from(every).unwrap()) {
            world.set(millis);
            // The requests reach the processes in a mixed order.
            let process = asked * 7 % PROCESSES;
            let answer = world.ask(process, ACME).await;
            match answer.status_code {
                200 if millis >= burst_used * 1000 => admitted += 1,
                200 => {}
                429 => refusal = Some((millis, process, retry_after(&answer))),
                other => panic!("{other}: {}", answer.body),
            }
            writes += answer.cost.write_units;
            if asked % 10 == 0 {
                let other = world.ask(asked / 10 % PROCESSES, GLOBEX).await;
                assert_eq!(other.status_code, 200, "another organisation: {}", other.body);
            }
            asked += 1;
        }
        let wanted = f64::from(rate) * 5.0;
        let part = f64::from(admitted) / wanted;
        assert!((0.8..=1.2).contains(&part), "{admitted} of {wanted}, at {rate} a second and {burst} at once");
        // DynamoDB allows an item a thousand writes a second.
        let notes = f64::from(u32::try_from(PROCESSES).unwrap());
        let a_second = (writes - notes) / f64::from(u32::try_from(end / 1000).unwrap());
        assert!(a_second <= f64::from(rate) * 3.0, "{a_second} writes a second");
        let (millis, process, seconds) = refusal.unwrap();
        world.set(millis + seconds * 1000);
        assert_eq!(world.ask(process, ACME).await.status_code, 200);
        assert_eq!(world.ask((process + 1) % PROCESSES, ACME).await.status_code, 200);
    }
}

/// Each of 20 processes admits a few requests without a write. Together these are at most a fifth of burst and rate.
#[tokio::test]
async fn uncounted_requests_stay_within_a_fifth_of_the_limit() {
    const PROCESSES: usize = 20;
    let world = Processes::start(PROCESSES, 50, 100).await;
    let mut admitted = 0;
    // Each process gets as many requests as it may admit uncounted: two in four seconds.
    for second in (0..20).step_by(2) {
        for process in 0..PROCESSES {
            world.set(second * 1000 + 1);
            let answer = world.ask(process, ACME).await;
            // A process notes once that the key is used.
            let noted = if second == 0 { 1.0 } else { 0.0 };
            assert_eq!((answer.status_code, answer.cost.write_units), (200, noted), "{second} {process}");
            admitted += 1;
        }
    }
    assert!(f64::from(admitted) <= 0.2 * (100.0 + 50.0 * 20.0), "{admitted}");
    // One more request is counted, together with the ones before.
    assert!(world.ask(0, ACME).await.cost.write_units > 0.0);
}

#[tokio::test]
async fn a_steady_caller_writes_one_lease_a_second() {
    let world = Processes::start(1, 50, 100).await;
    let mut units = Vec::new();
    for millis in (0..10_000).step_by(25) {
        world.set(millis);
        let answer = world.ask(0, ACME).await;
        assert_eq!(answer.status_code, 200, "{}", answer.body);
        units.push(answer.cost.write_units);
    }
    // The first second has more writes: the process notes the use of the key, and does not know its demand yet. Then each second has one.
    let (first, later) = (units[..40].iter().sum::<f64>(), units[40..].iter().sum::<f64>());
    assert_eq!((first, later), (7.0, 9.0), "{units:?}");
}

fn headers(answer: &Answer) -> Vec<(&str, &str)> {
    let names = ["ratelimit", POLICY, "retry-after", "www-authenticate"];
    let found = names.into_iter().filter_map(|name| Some((name, answer.headers.get(name)?.as_str())));
    found.collect()
}

#[tokio::test]
async fn a_refusal_has_retry_after_and_a_success_the_policy() {
    let (stack, clock) = limited(2, 5).await;
    let ask = async |key: &str| stack.answer(&call("GET", TAGS, key)).await;
    let policy = (POLICY, r#""key";q=5;w=3"#);
    for _ in 0..5 {
        let answer = ask(ACME).await;
        assert_eq!((answer.status, headers(&answer)), (200, vec![policy]));
    }
    let refused = ask(ACME).await;
    assert_eq!(failure(&refused), (429, vec!["[] rate_limited".to_owned()]));
    let message = "The API key allows 2 requests a second, and 5 at once. Try again in 1 second";
    assert_eq!(json(&refused)["detail"][0]["msg"], message);
    let nothing_left = ("ratelimit", r#""key";r=0;t=1"#);
    assert_eq!(headers(&refused), [nothing_left, policy, ("retry-after", "1")]);
    assert_eq!(headers(&ask(ACME).await), headers(&refused), "the next one is refused from memory");
    assert_eq!(refused.headers["content-type"], "application/json");
    // Another key of the same organisation has a limit of its own.
    assert_eq!(ask(ACME_READ_ONLY).await.status, 200);
    // The refusal of a bad key has no headers about limits.
    for bad in ["", "in-bad", &"in-x".repeat(11)] {
        assert_eq!(headers(&ask(bad).await), [("www-authenticate", "Bearer")], "{bad}");
    }
    // Other failures have no headers about limits either.
    clock.set(Timestamp::from_unix_millis(NOW + 10_000));
    let missing = stack.answer(&call("GET", "/api/v1/tag/x", ACME)).await;
    assert_eq!((missing.status, headers(&missing)), (422, vec![]));
    // Refused requests have no effect.
    let before = everything(&stack).await;
    let mut last = ask(ACME).await;
    while last.status == 200 {
        last = stack.answer(&call("GET", TAGS, ACME)).await;
    }
    let made = stack.answer(&post("/api/v1/tag", ACME, r#"{"name":"x"}"#)).await;
    assert_eq!((made.status, made.cost), (429, Cost::default()), "it is refused from memory");
    let rows = |items: &[std::collections::BTreeMap<_, _>]| items.iter().filter(|item| !is_bucket(item)).count();
    assert_eq!(rows(&everything(&stack).await), rows(&before));
}

/// The process that emptied the bucket is three seconds ahead. So the others wait longer than a token takes.
#[tokio::test]
async fn a_process_with_a_slow_clock_says_how_long_to_wait() {
    let world = Processes::start(2, 1, 1).await;
    world.set(3000);
    assert_eq!(world.ask(0, ACME).await.status_code, 200);
    world.set(0);
    let refused = world.ask(1, ACME).await;
    assert_eq!((refused.status_code, retry_after(&refused)), (429, 4));
}

/// Whether an item is the bucket of a key.
fn is_bucket(item: &std::collections::BTreeMap<String, aws_sdk_dynamodb::types::AttributeValue>) -> bool {
    item["pk"].as_s().unwrap().starts_with("RATE#")
}

/// The bucket holds neither the key nor its hash, and expires.
#[tokio::test]
async fn a_bucket_holds_only_the_id_of_its_key_and_a_ttl() {
    let (stack, _) = limited(2, 5).await;
    get(&stack, TAGS).await;
    let items = everything(&stack).await;
    let [bucket] = &items.iter().filter(|item| is_bucket(item)).collect::<Vec<_>>()[..] else { panic!() };
    let names: Vec<_> = bucket.keys().map(String::as_str).collect();
    assert_eq!(names, ["full_at", "pk", "sk", "ttl"]);
    assert_eq!(bucket["pk"].as_s().unwrap(), "RATE#01900000-0000-7000-8000-a00e00000001");
    assert_eq!(bucket["sk"].as_s().unwrap(), "2/5");
    let ttl: i64 = bucket["ttl"].as_n().unwrap().parse().unwrap();
    assert!(ttl > NOW / 1000 && ttl < NOW / 1000 + 24 * 60 * 60, "{ttl}");
}

/// Every fault of the one write. A request waits for one attempt, and the requests of the next second wait for none.
#[tokio::test]
async fn a_failed_lease_admits_the_request() {
    for fault in [Fault::Throttle, Fault::ServerError, Fault::BreakRequest, Fault::BreakAnswer, Fault::Conflict] {
        let clock = Clock::at(Timestamp::from_unix_millis(NOW));
        let key_limits = Limits::new(1, 1);
        let (stack, faults) = with_faults(Settings { clock: clock.clone(), key_limits, ..settings() }).await;
        get(&stack, TAGS).await;
        assert_eq!(stack.answer(&call("GET", TAGS, ACME)).await.status, 429, "{fault:?}");
        faults.plan(move |action, _| if action == "UpdateItem" { fault } else { Fault::None });
        let asked = || faults.requests().into_iter().filter(|action| action == "UpdateItem").count();
        for (second, attempts) in [(1, 1), (2, 2)] {
            clock.set(Timestamp::from_unix_millis(NOW + second * 1000));
            for _ in 0..5 {
                assert_eq!(stack.answer(&call("GET", TAGS, ACME)).await.status, 200, "{fault:?}");
            }
            assert_eq!(asked(), attempts, "{fault:?}");
        }
        faults.end();
        clock.set(Timestamp::from_unix_millis(NOW + 10_000));
        assert_eq!(stack.answer(&call("GET", TAGS, ACME)).await.status, 200);
        assert_eq!(stack.answer(&call("GET", TAGS, ACME)).await.status, 429, "{fault:?}");
    }
}

/// A valid call with the key [`ACME`].
fn call_of_acme(route: &Route) -> Call {
    let call = valid_call(route, 'a', ACME);
    Call { query: call.query.replace(key_of(&call), ACME), ..call }
}

/// The document describes the refusal of every operation: each answer is compared with it.
#[tokio::test]
async fn every_operation_refuses_a_limited_key_alike() {
    let (stack, _) = limited(1, 1).await;
    get(&stack, TAGS).await;
    assert_eq!(stack.answer(&call("GET", TAGS, ACME)).await.status, 429);
    // From now on the process refuses from memory.
    for route in routes::ALL {
        let answer = stack.answer(&call_of_acme(route)).await;
        assert_eq!(failure(&answer), (429, vec!["[] rate_limited".to_owned()]), "{}", route.name);
        assert_eq!(answer.cost, Cost::default(), "{}", route.name);
    }
    for route in routes::DOCUMENTS {
        let answer = stack.answer(&call(route.method, route.path, "")).await;
        assert_eq!((answer.status, headers(&answer)), (200, vec![]), "{}", route.name);
    }
}

#[tokio::test]
async fn functions_share_the_limit_of_a_key() {
    let clock = Clock::at(Timestamp::from_unix_millis(NOW));
    let settings = Settings { clock, key_limits: Limits::new(10, 30), processes: true, ..settings() };
    let stack = Stack::start(settings).await.unwrap();
    let reads = routes::ALL.iter().filter(|route| route.method == "GET");
    let mut admitted = 0;
    for route in reads.cycle().take(90) {
        let answer = stack.answer(&call_of_acme(route)).await;
        // The key names no user that read-own-user could read.
        let success = if **route == routes::READ_OWN_USER { 404 } else { 200 };
        assert!([success, 429].contains(&answer.status), "{} {}", route.name, answer.body);
        admitted += usize::from(answer.status == success);
    }
    assert_eq!(admitted, 30);
}

async fn invoke(stack: &Stack, function: &str, payload: &Value) -> Value {
    json(&stack.gateway.invoke_by_name(function, payload.to_string().as_bytes()).await)
}

/// A key with new limits has a new, full bucket. Processes use the cached limits for five more seconds.
#[tokio::test]
async fn limits_of_a_key_are_issued_changed_and_reset() {
    let (stack, clock) = limited(50, 100).await;
    let issued = invoke(&stack, "issue-api-key", &json!({"name": "A", "requests_per_second": 1, "burst": 2})).await;
    let (key, names) = (issued["api_key"].as_str().unwrap(), json!({"org_id": issued["org_id"], "id": issued["id"]}));
    let limits = |rate: u32, burst: u32| json!({"requests_per_second": rate, "burst": burst});
    assert_eq!(issued["limits"], limits(1, 2));
    let statuses = async || {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(stack.answer(&call("GET", TAGS, key)).await.status);
        }
        statuses
    };
    assert_eq!(statuses().await, [200, 200, 429, 429]);
    let with = |more: Value| {
        let mut names = names.clone();
        names.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        names
    };
    let set = invoke(&stack, "update-api-key", &with(json!({"burst": 3}))).await;
    assert_eq!((&set["requests_per_second"], &set["burst"], &set["limits"]), (&json!(1), &json!(3), &limits(1, 3)));
    assert!(set.get("api_key").is_none());
    assert_eq!(statuses().await, [429; 4], "the old limits are cached");
    clock.set(Timestamp::from_unix_millis(NOW + 5000));
    assert_eq!(statuses().await, [200, 200, 200, 429]);
    let listed = invoke(&stack, "list-api-keys", &json!({"org_id": issued["org_id"]})).await;
    assert_eq!(listed, json!([set]));
    let null = json!({"requests_per_second": null, "burst": null});
    let reset = invoke(&stack, "update-api-key", &with(null)).await;
    assert_eq!((&reset["requests_per_second"], &reset["burst"]), (&Value::Null, &Value::Null));
    assert_eq!(reset["limits"], limits(50, 100));
    assert_eq!(invoke(&stack, "revoke-api-key", &names).await["limits"], limits(50, 100));
}

#[tokio::test]
async fn invalid_limits_are_refused_with_their_field() {
    let (stack, _) = limited(50, 100).await;
    let before = everything(&stack).await;
    let (org, id) = ("01900000-0000-7000-8000-a00000000001", "01900000-0000-7000-8000-a00e00000001");
    let small = "burst: Value error, burst should be at least requests_per_second, which is";
    for (limits, wanted) in [
        (json!({"burst": 0}), "burst: Input should be greater than or equal to 1".to_owned()),
        (json!({"requests_per_second": 0}), "requests_per_second: Input should be greater than or equal to 1".into()),
        (
            json!({"requests_per_second": 1001, "burst": 10_001}),
            "requests_per_second: Input should be less than or equal to 1000; burst: Input should be less than or equal to 10000"
                .into(),
        ),
        (json!({"burst": "x"}), "burst: Input should be a valid integer, unable to parse string as an integer".into()),
        (json!({"burst": 49}), format!("{small} 50")),
        (json!({"requests_per_second": 10, "burst": 9}), format!("{small} 10")),
        (json!({"requests_per_second": 101}), format!("{small} 101, and the default is less")),
    ] {
        for (function, mut payload) in
            [("issue-api-key", json!({"name": "x"})), ("update-api-key", json!({"org_id": org, "id": id}))]
        {
            payload.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
            let answer = invoke(&stack, function, &payload).await;
            assert_eq!(answer["errorMessage"], wanted, "{function} {limits}");
        }
    }
    let nobodys = json!({"org_id": org, "id": org, "burst": 200});
    assert_eq!(invoke(&stack, "update-api-key", &nobodys).await["errorMessage"], "id: Not found");
    assert_eq!(everything(&stack).await, before);
}

/// A request of an agent, in the revision with a handshake.
fn of_agent(method: &str, params: Value) -> Call {
    agents::request(VERSIONS[1], ACME, method, params)
}

/// The operation counts the call of a tool, and the server all other requests.
#[tokio::test]
async fn a_tool_call_takes_one_token_and_fails_as_a_tool() {
    assert_eq!(functions::SERVERS.len(), 1);
    let (stack, clock) = limited(3, 3).await;
    let tool = of_agent("tools/call", json!({"name": "list-tags", "arguments": {}}));
    for _ in 0..3 {
        let answer = stack.answer(&tool).await;
        assert_eq!((answer.status, &json(&answer)["result"]["isError"]), (200, &json!(false)));
        assert_eq!(headers(&answer), [(POLICY, r#""key";q=3;w=1"#)]);
    }
    let answer = stack.answer(&tool).await;
    let result = &json(&answer)["result"];
    assert_eq!((answer.status, &result["isError"]), (200, &json!(true)));
    let issue = &result["structuredContent"]["detail"][0];
    assert_eq!(issue["type"], "rate_limited");
    assert!(issue["msg"].as_str().unwrap().ends_with("Try again in 1 second"), "{issue}");
    // A request that reaches no operation gets the plain refusal.
    let wrong = of_agent("tools/call", json!({"name": "no-tool", "arguments": {}}));
    for other in [of_agent("ping", json!({})), of_agent("tools/list", json!({})), wrong] {
        assert_eq!(failure(&stack.answer(&other).await), (429, vec!["[] rate_limited".to_owned()]));
    }
    clock.set(Timestamp::from_unix_millis(NOW + 10_000));
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(stack.answer(&of_agent("ping", json!({}))).await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 429]);
}
