//! Runs the built binary of a function of each kind at each log level of the template, and searches its output for
//! secrets.

use std::collections::BTreeSet;

use local::Stack;
use local::http::Call;
use local::payment_provider::signature;
use repository::functions::{Function, functions};
use repository::read;
use serde_json::{Value, json};
use shared::routes;
use shared::values::time::Clock;

use crate::support::agents::{STATELESS, request};
use crate::support::fixture::{ACME, demo_payment_secret, settings, valid_body, valid_call};
use crate::support::process::{built, environment, invoke};
use crate::support::sweep::cases;
use crate::support::template::TEMPLATE;

/// The text that each secret, query and body contains.
const SONG: &str = "CANARY";
const QUERY: &str = "note=CANARY-OF-THE-QUERY";

/// A function, the event for it, and a text of its answer that shows that it has done its work.
struct Case {
    function: &'static str,
    event: Value,
    done: &'static str,
    /// The message of its line in the log.
    message: &'static str,
}

/// `call` with the key and the canary of the query.
fn keyed(call: Call) -> Call {
    let headers = [("authorization".to_owned(), format!("Bearer {ACME}"))].into();
    Call { query: QUERY.into(), headers, ..call }
}

/// A function of each kind.
fn of_each_kind(stack: &Stack) -> Vec<Case> {
    let event = |call: &Call| stack.gateway.event(call, "request-id");
    let plan = json!({"billing_plan": {"payment_api_key": "sk_live_CANARY"}, "branding": {"name": "CANARY"}});
    let agency = Call { body: plan.to_string().into(), ..keyed(valid_call(&routes::CREATE_AGENCY, 'a', ACME)) };
    let signed = &routes::RECEIVE_PAYMENT_EVENT;
    let mut paid: Value = serde_json::from_str(&valid_body(signed, 'a')).unwrap();
    paid["data"]["object"]["metadata"] = json!({"note": SONG});
    let body = paid.to_string().into_bytes();
    // The process has the machine's time.
    let proof = signature(demo_payment_secret('a'), Clock::System.now().unix_seconds(), &body);
    let headers = [("stripe-signature".to_owned(), proof)].into();
    let payment = Call { headers, query: QUERY.into(), body, ..valid_call(signed, 'a', ACME) };
    let document = keyed(Call { method: "GET".into(), path: routes::READ_OPENAPI.path.into(), ..Call::default() });
    let arguments = json!({"name": "create-tag", "arguments": {"body": {"name": SONG}}});
    let tool = Call { query: QUERY.into(), ..request(STATELESS, ACME, "tools/call", arguments) };
    let mut changed: Value = serde_json::from_str(&read("events/record-changed.json")).unwrap();
    for record in changed["Records"].as_array_mut().unwrap() {
        record["dynamodb"]["NewImage"]["note"] = json!({"S": SONG});
    }
    let mut minute: Value = serde_json::from_str(&read("events/release-deliveries.json")).unwrap();
    minute["note"] = json!(SONG);
    let case = |function, event, done, message| Case { function, event, done, message };
    vec![
        case("create-agency", event(&agency), "Data created successfully", "request"),
        case("receive-payment-event", event(&payment), "\"statusCode\":200", "request"),
        case("read-openapi", event(&document), "\"statusCode\":200", "request"),
        case("mcp", event(&tool), "Data created successfully", "request"),
        case("issue-api-key", json!({"name": SONG}), "\"api_key\"", "task"),
        case("record-changed", changed, "{\"batchItemFailures\":[]}", "batch"),
        case("release-deliveries", minute, "null", "tick"),
    ]
}

#[tokio::test]
async fn no_log_level_shows_a_key_a_secret_a_query_or_a_body() {
    let stack = Stack::start(settings()).await.unwrap();
    let (invocations, all) = (of_each_kind(&stack), functions());
    let of_case = |case: &Case| all.iter().find(|function| function.name == case.function).unwrap();
    let kinds_of = |functions: &[&Function]| functions.iter().map(|function| function.kind).collect::<BTreeSet<_>>();
    let covered = kinds_of(&invocations.iter().map(of_case).collect::<Vec<_>>());
    assert_eq!(covered, kinds_of(&all.iter().collect::<Vec<_>>()), "a kind has no case");
    let levels = TEMPLATE["Parameters"]["LogLevel"]["AllowedValues"].as_array().unwrap();
    assert!(levels.contains(&json!("INFO")));
    // Cargo needs longer to link a binary than this test needs to run it at all levels. So a case has all levels.
    let taken = cases(invocations);
    let chosen: Vec<&Function> = taken.iter().map(of_case).collect();
    let (binaries, environment) = (built(&chosen), environment(&stack));
    for Case { function, event, done, message } in taken {
        for level in levels.iter().map(|level| level.as_str().unwrap()) {
            let with_level = [environment.clone(), vec![("AWS_LAMBDA_LOG_LEVEL", level.to_owned())]].concat();
            let invoked = invoke(&binaries[function], &with_level, &event.to_string()).await;
            let (answer, output) = (invoked.answer, invoked.output);
            assert!(answer.contains(done), "{function} {level}: {answer}\n{output}");
            let issued: Value = serde_json::from_str(&answer).unwrap();
            for secret in [SONG, ACME, issued["api_key"].as_str().unwrap_or(ACME)] {
                assert!(!output.contains(secret), "{function} {level} shows {secret}:\n{output}");
            }
            // It is the log that was searched.
            let shown = output.contains(&format!("\"message\":\"{message}\""));
            assert_eq!(shown, ["TRACE", "DEBUG", "INFO"].contains(&level), "{function} {level}: {output}");
        }
    }
}
