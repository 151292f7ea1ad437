//! Tests of what a user uses up of a billing plan: what counts, what a plan blocks, and what is answered.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use local::http::{Answer, Call};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::records::user::User;
use shared::routes;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::crashes::crashes_everywhere;
use crate::support::customers::Customer;
use crate::support::fixture::{
    ACME, GLOBEX, NOW, acme, call, data, failure, few_streaming, get, id, kind, post, stack, stack_with_clock,
    valid_call,
};
use crate::support::keyed::{KEY, keyed};
use crate::support::records::{changes, detail, issue, items, nothing};
use crate::support::sending::{Setup, id_of};

const ASSISTANTS: &str = routes::CREATE_ASSISTANT.path;
const USAGE: &str = routes::READ_USAGE.path;
/// When the month of the tests ends.
const RESET: &str = "2026-03-01T00:00:00.000Z";

/// The refusal of a request that a plan blocks.
fn blocked(meter: &str) -> (u16, Value) {
    let msg = format!("The plan of the user has no room: meter {meter}, resets_at {RESET}");
    (402, json!([issue(&json!(["body"]), "quota_exceeded", &msg)]))
}

/// Opens a conversation for messages.
async fn conversation(stack: &Stack) -> String {
    let assistant = json!({"assistant_id": id('a', kind::ASSISTANT, 1)}).to_string();
    let opened = data(&stack.answer(&post(routes::OPEN_CONVERSATION.path, ACME, assistant)).await);
    format!("/api/v1/conversation/{}/message", id_of(&opened))
}

fn said_by(sender: &str) -> Value {
    json!({"sender_type": sender, "text": "Hello there"})
}

fn text_path() -> String {
    routes::ADD_DATASOURCE_TEXT_BLOB.path.replace("{datasource_id}", &id('a', kind::DATASOURCE, 1))
}

/// Changes the default plan of Acme.
async fn change_default_plan(stack: &Stack, changes: Value) {
    let path = format!("/api/v1/agency/billing/{}/billing_plan/{}", id('a', kind::AGENCY, 1), id('a', 17, 0));
    data(&stack.answer(&Call { body: changes.to_string().into(), ..call("PUT", &path, ACME) }).await);
}

async fn no_default_plan(stack: &Stack) {
    change_default_plan(stack, json!({"default_plan": false})).await;
}

fn statuses(answers: &[Answer]) -> BTreeSet<u16> {
    answers.iter().map(|answer| answer.status).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_at_once_make_exactly_the_assistants_of_a_plan() {
    let stack = stack().await;
    let customer = Customer::of(&stack, &json!({"bots_count": 10})).await;
    let empty = json!({});
    let answers = join_all((0..64).map(|_| customer.ask(&stack, "POST", ASSISTANTS, &empty))).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!((made, statuses(&answers)), (10, [201, 402].into()));
    assert_eq!(customer.used(&stack, "bots").await, 10);
}

#[tokio::test]
async fn a_full_plan_has_room_again_after_an_assistant_is_deleted() {
    let stack = stack().await;
    let customer = Customer::of(&stack, &json!({"bots_count": 1})).await;
    let made = data(&customer.ask(&stack, "POST", ASSISTANTS, &json!({})).await);
    let before = items(&stack).await;
    let refused = customer.ask(&stack, "POST", ASSISTANTS, &json!({})).await;
    assert_eq!(detail(&refused).0, 402);
    let msg = detail(&refused).1[0]["msg"].as_str().unwrap().to_owned();
    let wanted = format!("bots, limit 1, use 1, resets_at {RESET}; a deleted assistant makes room");
    assert!(msg.ends_with(&wanted), "{msg}");
    assert_eq!(changes(&stack, &before).await, nothing());
    // Assistants of other keys do not count, and others may delete the assistant.
    data(&stack.answer(&post(ASSISTANTS, ACME, "{}")).await);
    data(&stack.answer(&call("DELETE", &format!("{ASSISTANTS}/{}", id_of(&made)), ACME)).await);
    assert_eq!(customer.used(&stack, "bots").await, 0);
    data(&customer.ask(&stack, "POST", ASSISTANTS, &json!({})).await);
    assert_eq!(customer.used(&stack, "bots").await, 1);
    // A larger plan makes room as well.
    let larger = json!({"bots_count": 2}).to_string().into_bytes();
    data(&stack.answer(&Call { body: larger, ..call("PUT", &customer.plan, ACME) }).await);
    data(&customer.ask(&stack, "POST", ASSISTANTS, &json!({})).await);
}

#[tokio::test]
async fn answers_and_words_count_and_are_refused_beyond_the_plan() {
    let stack = stack().await;
    let customer = Customer::of(&stack, &json!({"queries_count": 2, "words_count": 5})).await;
    let messages = conversation(&stack).await;
    for (sender, status) in [("bot", 201), ("user", 201), ("bot", 201), ("agent", 201)] {
        assert_eq!(customer.ask(&stack, "POST", &messages, &said_by(sender)).await.status, status);
    }
    data(&customer.ask(&stack, "POST", &text_path(), &json!({"content": " three short  words\n"})).await);
    assert_eq!((customer.used(&stack, "queries").await, customer.used(&stack, "words").await), (2, 3));
    let before = items(&stack).await;
    let refused = customer.ask(&stack, "POST", &messages, &said_by("bot")).await;
    assert_eq!(detail(&refused), blocked("queries, limit 2, use 2"));
    let refused = customer.ask(&stack, "POST", &text_path(), &json!({"content": "three more words"})).await;
    assert_eq!(detail(&refused), blocked("words, limit 5, use 3, needed 3"));
    assert_eq!(changes(&stack, &before).await, nothing());
    // What still fits is taken, and others are not refused.
    data(&customer.ask(&stack, "POST", &text_path(), &json!({"content": "two words"})).await);
    data(&customer.ask(&stack, "POST", &messages, &said_by("user")).await);
    data(&stack.answer(&post(&messages, ACME, said_by("bot").to_string())).await);
    assert_eq!((customer.used(&stack, "queries").await, customer.used(&stack, "words").await), (2, 5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_at_once_get_all_answers_of_a_plan_and_no_more() {
    let stack = stack().await;
    let customer = Customer::of(&stack, &json!({"queries_count": 100})).await;
    customer.report(&stack, &json!({"external_id": "1", "queries": 30})).await;
    let task = async || {
        let messages = conversation(&stack).await;
        let mut answers = Vec::new();
        for _ in 0..2 {
            answers.push(customer.ask(&stack, "POST", &messages, &said_by("bot")).await);
        }
        answers
    };
    let answers = join_all((0..64).map(|_| task())).await.concat();
    let said = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!((said, statuses(&answers)), (70, [201, 402].into()));
    assert_eq!(customer.used(&stack, "queries").await, 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_under_sixty_four_tasks_stay_within_two_percent() {
    let stack = stack().await;
    let (limit, left) = (100_000, 4200);
    let customer = Customer::of(&stack, &json!({"words_count": limit})).await;
    customer.report(&stack, &json!({"external_id": "1", "words": limit - left})).await;
    let texts = ["word ".to_owned(), "word ".repeat(60)].map(|content| json!({"content": content}));
    let task = async || {
        for text in texts.iter().cycle().take(6) {
            let answer = customer.ask(&stack, "POST", &text_path(), text).await;
            let used = limit - left;
            match answer.status {
                201 => {}
                402 => {
                    let msg = detail(&answer).1[0]["msg"].as_str().unwrap().to_owned();
                    let number = |word: &str| -> u64 {
                        let rest = msg.split(&format!("{word} ")).nth(1).unwrap_or("1");
                        rest.split(',').next().unwrap().parse().unwrap()
                    };
                    let (used, needed) = (number("use"), number("needed"));
                    assert!(used + needed > limit, "refused early: {msg}");
                }
                other => panic!("{other} after {used}: {}", answer.body),
            }
        }
    };
    join_all((0..64).map(|_| task())).await;
    let used = customer.used(&stack, "words").await;
    assert!((limit - 60..=limit + limit / 50).contains(&used), "{used}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_counts_once_however_often_it_comes() {
    let stack = stack().await;
    let customer = Customer::of(&stack, &json!({})).await;
    let report = json!({"external_id": "call-7", "queries": 2, "words": 10, "voice_seconds": 30});
    let answers = join_all((0..8).map(|_| customer.report(&stack, &report))).await;
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let wanted = json!({
        "external_id": "call-7", "user_id": customer.user, "queries": 2, "words": 10, "voice_seconds": 30,
        "reported_at": "2026-02-01T12:00:00.000Z", "period_start": "2026-02-01T00:00:00.000Z", "resets_at": RESET,
    });
    assert_eq!(answers[0], wanted);
    // The first report counts, whatever a later one says, and whoever sends it.
    let other = json!({"external_id": "call-7", "queries": 500, "user_id": customer.user});
    assert_eq!(data(&stack.answer(&post(USAGE, ACME, other.to_string())).await), wanted);
    for (meter, used) in [("bots", 0), ("queries", 2), ("words", 10), ("voice_seconds", 30)] {
        assert_eq!(customer.used(&stack, meter).await, used, "{meter}");
    }
}

#[tokio::test]
async fn a_report_is_refused_only_if_it_is_wrong() {
    let stack = stack().await;
    let customer = Customer::of(&stack, &json!({"voice_seconds": 0})).await;
    let voice = json!({"external_id": "1", "voice_seconds": 60});
    customer.report(&stack, &voice).await;
    let meter = customer.meter(&stack, "voice_seconds").await;
    let wanted = json!({
        "meter": "voice_seconds", "limit": 0, "used": 60, "exceeded_at": "2026-02-01T12:00:00.000Z",
    });
    assert_eq!(meter, wanted);
    let send = async |body: Value| failure(&stack.answer(&post(USAGE, ACME, body.to_string())).await);
    let one = |issue: &str| (422, vec![issue.to_owned()]);
    let user = id('a', kind::USER, 1);
    assert_eq!(send(json!({"external_id": "2", "queries": 1})).await, one(r#"["body","user_id"] missing"#));
    assert_eq!(send(json!({"external_id": "2", "user_id": user})).await, one(r#"["body"] missing"#));
    let few = json!({"external_id": "", "queries": -1, "user_id": user});
    let issues = [r#"["body","external_id"] string_too_short"#, r#"["body","queries"] greater_than_equal"#];
    assert_eq!(send(few).await, (422, issues.map(str::to_owned).to_vec()));
    let others = json!({"external_id": "2", "queries": 1, "user_id": id('b', kind::USER, 1)});
    assert_eq!(send(others).await, one(r#"["body","user_id"] not_found"#));
}

#[tokio::test]
async fn the_counts_of_a_period_begin_again_and_assistants_stay() {
    let (stack, at) = stack_with_clock().await;
    let customer = Customer::of(&stack, &json!({"queries_count": 1, "bots_count": 1})).await;
    let messages = conversation(&stack).await;
    data(&customer.ask(&stack, "POST", ASSISTANTS, &json!({})).await);
    data(&customer.ask(&stack, "POST", &messages, &said_by("bot")).await);
    let end: Timestamp = serde_json::from_value(json!(RESET)).unwrap();
    at(end.unix_millis() - NOW - 1);
    assert_eq!(customer.ask(&stack, "POST", &messages, &said_by("bot")).await.status, 402);
    at(end.unix_millis() - NOW);
    data(&customer.ask(&stack, "POST", &messages, &said_by("bot")).await);
    assert_eq!(customer.ask(&stack, "POST", &messages, &said_by("bot")).await.status, 402);
    assert_eq!(customer.ask(&stack, "POST", ASSISTANTS, &json!({})).await.status, 402);
    let usage = customer.usage(&stack).await;
    assert_eq!((&usage["period_start"], &usage["resets_at"]), (&json!(RESET), &json!("2026-04-01T00:00:00.000Z")));
}

#[tokio::test]
async fn the_period_is_that_of_the_credits_once_they_are_known() {
    let stack = stack().await;
    let customer = Customer::of(&stack, &json!({})).await;
    let time = |text: &str| -> Timestamp { serde_json::from_value(json!(text)).unwrap() };
    let change = |user: &mut User| {
        user.last_credits_refresh = Some(time("2026-01-20T10:00:00.000Z"));
        user.next_credits_refresh = Some(time("2026-02-20T10:00:00.000Z"));
    };
    acme(&stack).change::<User>(customer.user.into(), Uuid::now_v7(), change).await.unwrap();
    customer.report(&stack, &json!({"external_id": "1", "queries": 1})).await;
    let usage = customer.usage(&stack).await;
    assert_eq!(usage["period_start"], "2026-01-20T10:00:00.000Z");
    assert_eq!(usage["resets_at"], "2026-02-20T10:00:00.000Z");
    assert_eq!(customer.used(&stack, "queries").await, 1);
}

#[tokio::test]
async fn a_plan_that_does_not_block_counts_beyond_its_limits() {
    for (overage, exceeded_at) in [("allow", Value::Null), ("notify", json!("2026-02-01T12:00:00.000Z"))] {
        let stack = stack().await;
        let limits = json!({"overage": overage, "bots_count": 0, "queries_count": 0, "words_count": 2});
        let customer = Customer::of(&stack, &limits).await;
        let messages = conversation(&stack).await;
        data(&customer.ask(&stack, "POST", ASSISTANTS, &json!({})).await);
        data(&customer.ask(&stack, "POST", &messages, &said_by("bot")).await);
        data(&customer.ask(&stack, "POST", &text_path(), &json!({"content": "two words"})).await);
        let usage = customer.usage(&stack).await;
        let wanted = json!([
            {"meter": "bots", "limit": 0, "used": 1, "exceeded_at": exceeded_at},
            {"meter": "queries", "limit": 0, "used": 1, "exceeded_at": exceeded_at},
            {"meter": "words", "limit": 2, "used": 2, "exceeded_at": null},
            {"meter": "voice_seconds", "limit": 1_000_000, "used": 0, "exceeded_at": null},
        ]);
        assert_eq!((&usage["overage"], &usage["meters"]), (&json!(overage), &wanted));
    }
}

#[tokio::test]
async fn a_plan_allows_more_than_its_limits_by_default() {
    let stack = stack().await;
    let plan = data(&stack.answer(&valid_call(&routes::CREATE_AGENCY_BILLING_PLAN, 'a', ACME)).await);
    assert_eq!(plan["overage"], "allow");
}

#[tokio::test]
async fn a_user_without_a_plan_in_force_has_the_default_plan() {
    let stack = stack().await;
    change_default_plan(&stack, json!({"overage": "block", "bots_count": 1})).await;
    let (user, key) = Customer::without_plan(&stack).await;
    data(&stack.answer(&post(ASSISTANTS, &key, "{}")).await);
    assert_eq!(stack.answer(&post(ASSISTANTS, &key, "{}")).await.status, 402);
    let usage = get(&stack, &format!("{USAGE}?user_id={user}")).await;
    assert_eq!((&usage["billing_plan_id"], &usage["overage"]), (&json!(id('a', 17, 0)), &json!("block")));
    no_default_plan(&stack).await;
    data(&stack.answer(&post(ASSISTANTS, &key, "{}")).await);
}

#[tokio::test]
async fn without_a_plan_nothing_is_counted_and_no_unit_is_added() {
    let stack = stack().await;
    let messages = conversation(&stack).await;
    let text = json!({"content": "two words"});
    let calls = [(ASSISTANTS, json!({})), (&messages, said_by("bot")), (&text_path(), text)];
    no_default_plan(&stack).await;
    let (user, planless) = Customer::without_plan(&stack).await;
    for (path, body) in calls {
        let ask = async |key: &str| {
            let answer = stack.answer(&post(path, key, body.to_string())).await;
            assert_eq!(answer.status, 201, "{}", answer.body);
            answer.cost
        };
        // The first calls read the key, and whether its user has a plan.
        for key in [ACME, &planless] {
            ask(key).await;
        }
        assert_eq!(ask(ACME).await, ask(&planless).await, "{path}");
    }
    let usage = get(&stack, &format!("{USAGE}?user_id={user}")).await;
    assert_eq!((&usage["billing_plan_id"], &usage["overage"]), (&Value::Null, &json!("allow")));
    for meter in usage["meters"].as_array().unwrap() {
        assert_eq!((&meter["limit"], &meter["used"]), (&Value::Null, &json!(0)), "{meter}");
    }
}

#[tokio::test]
async fn a_user_of_another_organisation_is_unknown() {
    let stack = stack().await;
    let customer = Customer::of(&stack, &json!({})).await;
    let unknown = (404, vec![r#"["query","user_id"] not_found"#.to_owned()]);
    for (key, query) in [
        (GLOBEX, format!("?user_id={}", customer.user)),
        (ACME, format!("?user_id={}", Uuid::now_v7())),
        (ACME, String::new()),
    ] {
        let answer = stack.answer(&call("GET", &format!("{USAGE}{query}"), key)).await;
        assert_eq!(failure(&answer), unknown, "{query}");
    }
    // The same identifier in another organisation is another report.
    customer.report(&stack, &json!({"external_id": "1", "queries": 1})).await;
    let other = json!({"external_id": "1", "queries": 2, "user_id": id('b', kind::USER, 1)});
    assert_eq!(data(&stack.answer(&post(USAGE, GLOBEX, other.to_string())).await)["queries"], 2);
    assert_eq!(customer.used(&stack, "queries").await, 1);
}

#[tokio::test]
async fn a_deleted_plan_limits_nothing() {
    let stack = stack().await;
    let customer = Customer::of(&stack, &json!({"bots_count": 0})).await;
    assert_eq!(customer.ask(&stack, "POST", ASSISTANTS, &json!({})).await.status, 402);
    data(&stack.answer(&call("DELETE", &customer.plan, ACME)).await);
    data(&customer.ask(&stack, "POST", ASSISTANTS, &json!({})).await);
    assert_eq!(customer.usage(&stack).await["billing_plan_id"], Value::Null);
}

/// A service with a stream, a customer, and the calls that count one of each meter, which the plan then has used up.
struct Full {
    setup: Setup,
    customer: Customer,
    calls: Vec<Call>,
}

impl Full {
    async fn new() -> Self {
        let setup = Setup::with(|settings| Settings { data: few_streaming().data, ..settings }).await;
        let limits = json!({"bots_count": 1, "queries_count": 1, "words_count": 1, "voice_seconds": 1});
        let customer = Customer::of(&setup.stack, &limits).await;
        let messages = conversation(&setup.stack).await;
        let calls = [
            (ASSISTANTS, json!({})),
            (&messages, said_by("bot")),
            (&text_path(), json!({"content": "word"})),
            (USAGE, json!({"external_id": "1", "voice_seconds": 1})),
        ];
        let key = |place: usize| format!("{}{place}", &KEY[1..]);
        let call = |(place, (path, body)): (usize, (&str, Value))| {
            keyed(post(path, &customer.key, body.to_string()), &key(place))
        };
        let calls = calls.into_iter().enumerate().map(call).collect();
        Self { setup, customer, calls }
    }
}

#[tokio::test]
async fn a_crash_at_any_write_counts_once_and_refuses_no_repeat() {
    let work = async |full: &Full| {
        for call in &full.calls {
            full.setup.stack.answer(call).await;
        }
    };
    let look = async |full: &Full, case: String| {
        // A crashed process has its lease for thirty seconds.
        full.setup.pass(31);
        for call in &full.calls {
            let answer = full.setup.stack.answer(call).await;
            assert_eq!(answer.status, 201, "{case}, {}: {}", call.path, answer.body);
        }
        let usage = full.customer.usage(&full.setup.stack).await;
        for meter in usage["meters"].as_array().unwrap() {
            assert_eq!(meter["used"], 1, "{case}: {meter}");
        }
    };
    crashes_everywhere(Full::new, |full| &full.setup, work, look).await;
}
