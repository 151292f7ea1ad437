//! Runs log lines of Lambda, the functions and the gateway through the template's filters: each failure raises its alarms.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use local::database::TABLE_NAME;
use local::event_source::StreamFaults;
use local::faults::Fault;
use local::{Settings, Stack};
use repository::functions::functions;
use serde_json::{Map, Value, json};
use shared::routes;
use shared::runtime::lambda::tracing::level_filters::LevelFilter;
use shared::runtime::lambda::{json_lines, tracing};
use shared::values::limits::Limits;
use tokio::sync::OnceCell;

use crate::support::fixture::{ACME, ACME_READ_ONLY, settings, stack, streaming, valid_call, with_faults};
use crate::support::generated::generated_between;
use crate::support::log::{Log, listening};
use crate::support::template::TEMPLATE;

fn resources(kind: &str) -> Map<String, Value> {
    let resources = TEMPLATE["Resources"].as_object().unwrap().iter();
    resources
        .filter(|(_, resource)| resource["Type"] == kind)
        .map(|(id, resource)| (id.clone(), resource["Properties"].clone()))
        .collect()
}

fn alarms() -> Map<String, Value> {
    resources("AWS::CloudWatch::Alarm")
}

/// The log lines of one call: the ones in `before`, and the report of Lambda at the end.
fn call(status: &str, error: Option<&str>, before: &[Value]) -> Vec<String> {
    let line = |kind: &str, record: Value| json!({"time": "2026-01-31T12:00:00.000Z", "type": kind, "record": record});
    let id = "8286a188-ba32-4475-8077-530cd35c09a9";
    let mut lines = vec![line("platform.start", json!({"requestId": id, "version": "$LATEST"}))];
    lines.extend_from_slice(before);
    let mut done = json!({"requestId": id, "status": status, "metrics": {"durationMs": 101.0, "producedBytes": 24}});
    let metrics = json!({"durationMs": 102.3, "billedDurationMs": 103, "memorySizeMB": 256, "maxMemoryUsedMB": 31});
    let mut report = json!({"requestId": id, "status": status, "metrics": metrics});
    if let Some(error) = error {
        (done["errorType"], report["errorType"]) = (error.into(), error.into());
    }
    lines.extend([line("platform.runtimeDone", done), line("platform.report", report)]);
    lines.iter().map(Value::to_string).collect()
}

/// The report of a function that fails to start.
fn failed_start(phase: &str, status: &str) -> Value {
    let report = json!({
        "initializationType": "on-demand", "phase": phase, "status": status, "errorType": "Runtime.ExitError",
        "metrics": {"durationMs": 12.5},
    });
    json!({"time": "2026-01-31T12:00:00.000Z", "type": "platform.initReport", "record": report})
}

/// The lines that the functions' own subscriber writes during `write`, at this log level.
async fn written(level: LevelFilter, write: impl AsyncFnOnce()) -> Vec<String> {
    let log = Log::default();
    let guard = listening(|| json_lines(level, log.clone()));
    write().await;
    drop(guard);
    log.text().lines().map(str::to_owned).collect()
}

/// The lines of a request with this `fault` of the table, or without a table.
async fn request(level: LevelFilter, table: bool, fault: Fault, wanted: u16) -> Vec<String> {
    let (stack, faults) = with_faults(settings()).await;
    if !table {
        stack.client.delete_table().table_name(TABLE_NAME).send().await.unwrap();
    }
    faults.plan(move |_, _| fault);
    let request = valid_call(&routes::READ_WEBHOOK, 'a', ACME);
    let mut lines = written(level, async || assert_eq!(stack.answer(&request).await.status, wanted)).await;
    lines.extend(call("success", None, &[]));
    lines
}

/// The lines of a run of `redrive`, `seconds` after the stream gave up two records.
async fn redriven(seconds: i64) -> Vec<String> {
    let stack = Stack::start(streaming()).await.unwrap();
    stack.settle().await.unwrap();
    stack.stream.set_faults(&StreamFaults { given_up: 1.0, ..StreamFaults::default() });
    for route in [&routes::DELETE_TAG, &routes::CLOSE_CONVERSATION] {
        assert_eq!(stack.answer(&valid_call(route, 'a', ACME)).await.status, 200);
        stack.stream.drain_for("record-changed").await.unwrap();
    }
    let clock = &stack.gateway.service.clock;
    clock.set(clock.now().plus_seconds(seconds));
    let mut lines = written(LevelFilter::ERROR, async || stack.tick("redrive").await.unwrap()).await;
    lines.extend(call("success", None, &[]));
    lines
}

/// The line of the gateway's log about a request that was answered with this status.
fn access_line(status: u16) -> String {
    let format = resources("AWS::Serverless::Api")["Api"]["AccessLogSetting"]["Format"].as_str().unwrap().to_owned();
    let mut parts = format.split("$context.");
    let mut line = parts.next().unwrap().to_owned();
    for part in parts {
        let end = part.find(|character: char| !character.is_ascii_alphanumeric() && character != '.').unwrap();
        let (variable, rest) = part.split_at(end);
        // The other values are texts in quotes, and times in milliseconds.
        line += &if variable == "status" { status.to_string() } else { "12".to_owned() };
        line += rest;
    }
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["status"], status, "{line}");
    line
}

/// The lines of the gateway's log about as many requests without a key and writes with a read-only key, in turn.
async fn refused(requests: usize) -> Vec<String> {
    let stack = stack().await;
    let mut lines = Vec::new();
    for (key, wanted) in [("in-unknown", 401), (ACME_READ_ONLY, 403)] {
        let answer = stack.answer(&valid_call(&routes::DELETE_TAG, 'a', key)).await;
        assert_eq!(answer.status, wanted);
        lines.push(access_line(answer.status));
    }
    lines.into_iter().cycle().take(requests).collect()
}

/// A failure with the log lines of one call and the counts of these lines.
type Failure = (&'static str, Vec<String>, Metrics);

/// All failures. They happen once, and several tests look at them.
async fn failures() -> &'static [Failure] {
    static FAILURES: OnceCell<Vec<Failure>> = OnceCell::const_new();
    FAILURES.get_or_init(all_failures).await
}

async fn all_failures() -> Vec<Failure> {
    let failed = Metrics { failed_calls: 1, ..Metrics::default() };
    let start = |status| [failed_start("init", status), failed_start("invoke", status)];
    let unreadable = || tracing::error!(operation = "read-tag", "unreadable item");
    vec![
        ("A function crashes", call("error", Some("Runtime.ExitError"), &[]), failed),
        ("A function runs out of time", call("timeout", None, &[]), failed),
        ("A function runs out of memory", call("error", Some("Runtime.OutOfMemory"), &[]), failed),
        ("A function fails to start", call("error", Some("Runtime.ExitError"), &start("error")), failed),
        ("A start runs out of time", call("timeout", None, &start("timeout")), failed),
        ("A scheduled function, or one for operators, ends in an error", call("failure", Some("Error"), &[]), failed),
        (
            "A function answers 500: a defect, or a table or permission that is missing",
            request(LevelFilter::ERROR, false, Fault::None, 500).await,
            failed,
        ),
        (
            "An item of the table cannot be read",
            written(LevelFilter::ERROR, async || unreadable()).await,
            Metrics { unreadable_items: 1, ..Metrics::default() },
        ),
        (
            "Lambda gives up records of the stream",
            redriven(60).await,
            Metrics { failed_records: 2, ..Metrics::default() },
        ),
        (
            "Records that were given up are not handled within twelve hours",
            redriven(13 * 3600).await,
            Metrics { unhandled_records: 2, ..Metrics::default() },
        ),
        (
            "More than 300 responses in five minutes have the status 401 or 403",
            refused(301).await,
            Metrics { refused_requests: 301, ..Metrics::default() },
        ),
    ]
}

/// Whether `pattern` matches a line of the log, by the rules of CloudWatch for JSON that the template uses: `&&` binds
/// closer than `||`, and every comparison with a missing field is false, `!=` included.
fn matches(pattern: &str, line: &str) -> bool {
    let Ok(line) = serde_json::from_str::<Value>(line) else { return false };
    let holds = |comparison: &str| {
        let [field, operator, value] = comparison.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{pattern}") };
        let (field, value) = (field.strip_prefix('$').unwrap(), serde_json::from_str::<Value>(value).unwrap());
        let field = line.pointer(&field.replace('.', "/"));
        match operator {
            "=" => field.is_some_and(|field| *field == value),
            "!=" => field.is_some_and(|field| *field != value),
            other => panic!("{other}"),
        }
    };
    let inside = pattern.strip_prefix("{ ").and_then(|rest| rest.strip_suffix(" }")).unwrap();
    let all = |part: &str| {
        let comparisons = part.strip_prefix('(').map_or(part, |inside| inside.strip_suffix(')').unwrap());
        comparisons.split(" && ").all(holds)
    };
    inside.split(" || ").any(all)
}

/// The pattern of a metric filter of the template.
fn pattern(filter: &str) -> String {
    resources("AWS::Logs::MetricFilter")[filter]["FilterPattern"].as_str().unwrap().to_owned()
}

#[test]
fn a_filter_matches_reports_and_answers_of_failures() {
    let failed = pattern("FailedCalls");
    assert_eq!(failed, r#"{ ($.type = "platform.report" && $.record.status != "success") || $.fields.status = 500 }"#);
    for (line, wanted) in [
        (r#"{"type":"platform.report","record":{"status":"timeout"}}"#, true),
        (r#"{"type":"platform.report","record":{"status":"success"}}"#, false),
        (r#"{"type":"platform.runtimeDone","record":{"status":"timeout"}}"#, false),
        // A comparison with a missing field is false.
        (r#"{"type":"platform.report","record":{}}"#, false),
        (r#"{"level":"ERROR","fields":{"status":500}}"#, true),
        (r#"{"level":"ERROR","fields":{"status":503}}"#, false),
        ("status 500", false),
    ] {
        assert_eq!(matches(&failed, line), wanted, "{line}");
    }
    for (filter, message) in [
        ("UnreadableItems", "unreadable item"),
        ("FailedRecords", "failed records"),
        ("UnhandledRecords", "unhandled records"),
        ("UncheckedLimits", "limit not checked"),
    ] {
        let pattern = pattern(filter);
        assert_eq!(pattern, format!(r#"{{ $.level = "ERROR" && $.fields.message = "{message}" }}"#));
        for (level, wanted) in [("ERROR", true), ("WARN", false)] {
            let line = json!({"level": level, "fields": {"message": message}}).to_string();
            assert_eq!(matches(&pattern, &line), wanted, "{line}");
        }
    }
}

/// The counts of the metric filters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Metrics {
    failed_calls: usize,
    unreadable_items: usize,
    unchecked_limits: usize,
    failed_records: usize,
    unhandled_records: usize,
    refused_requests: usize,
}

impl Metrics {
    fn of(lines: &[String]) -> Self {
        let count_in = |log: &str, filter: &str| {
            let filter = resources("AWS::Logs::MetricFilter")[filter].clone();
            assert_eq!(filter["LogGroupName"], json!({"!Ref": log}));
            let pattern = filter["FilterPattern"].as_str().unwrap();
            let value = filter["MetricTransformations"][0]["MetricValue"].as_str().unwrap();
            // The value is a number or the name of a numeric field.
            let value = |line: &String| match value.strip_prefix("$.fields.") {
                None => value.parse().unwrap(),
                Some(field) => {
                    let line: Value = serde_json::from_str(line).unwrap();
                    usize::try_from(line["fields"][field].as_u64().unwrap()).unwrap()
                }
            };
            lines.iter().filter(|line| matches(pattern, line)).map(value).sum()
        };
        let count = |filter: &str| count_in("LogGroup", filter);
        Self {
            failed_calls: count("FailedCalls"),
            unreadable_items: count("UnreadableItems"),
            unchecked_limits: count("UncheckedLimits"),
            failed_records: count("FailedRecords"),
            unhandled_records: count("UnhandledRecords"),
            refused_requests: count_in("AccessLogGroup", "RefusedRequests"),
        }
    }

    fn named(self, metric: &str) -> usize {
        match metric {
            "FailedCalls" => self.failed_calls,
            "UnreadableItems" => self.unreadable_items,
            "FailedRecords" => self.failed_records,
            "UnhandledRecords" => self.unhandled_records,
            "RefusedRequests" => self.refused_requests,
            other => panic!("no alarm is for {other}"),
        }
    }

    /// The alarms that these counts raise within the period of each.
    fn raised(self) -> BTreeSet<String> {
        let raised = |(id, alarm): (String, Value)| {
            // The metrics in the stack's namespace come from filters.
            let metric =
                (alarm["Namespace"] == json!({"!Ref": "AWS::StackName"})).then(|| alarm["MetricName"].as_str())??;
            let (sum, threshold) = (self.named(metric), usize::try_from(alarm["Threshold"].as_u64()?).ok()?);
            let beyond = match alarm["ComparisonOperator"].as_str()? {
                "GreaterThanThreshold" => sum > threshold,
                "GreaterThanOrEqualToThreshold" => sum >= threshold,
                other => panic!("{id}: {other}"),
            };
            beyond.then_some(id)
        };
        alarms().into_iter().filter_map(raised).collect()
    }
}

#[tokio::test]
async fn each_failed_call_is_counted_once() {
    for (failure, lines, wanted) in failures().await {
        assert_eq!(Metrics::of(lines), *wanted, "{failure}: {lines:#?}");
    }
}

/// If the table fails, a request passes without a check, and no alarm is raised. The next check follows after a second.
#[tokio::test]
async fn an_unchecked_limit_is_counted_at_any_log_level() {
    for (fault, wanted) in [(Fault::None, 0), (Fault::Throttle, 1), (Fault::BreakRequest, 1)] {
        let key_limits = Limits::new(50, 99);
        let (stack, faults) = with_faults(Settings { key_limits, ..settings() }).await;
        faults.plan(move |action, _| if action == "UpdateItem" { fault } else { Fault::None });
        let request = valid_call(&routes::READ_WEBHOOK, 'a', ACME);
        let ask = async || {
            for _ in 0..3 {
                assert_eq!(stack.answer(&request).await.status, 200);
            }
        };
        let counted = Metrics::of(&written(LevelFilter::ERROR, ask).await);
        assert_eq!(counted, Metrics { unchecked_limits: wanted, ..Metrics::default() }, "{fault:?}");
        assert!(counted.raised().is_empty());
        // A failing table gets one request for the limit. Another one notes the use of the key.
        let tries = 1 + if fault == Fault::None { 2 } else { 1 };
        let asked = faults.requests().into_iter().filter(|action| action == "UpdateItem").count();
        assert_eq!(asked, tries, "{fault:?}");
    }
}

#[tokio::test]
async fn lines_without_a_failure_are_not_counted() {
    for (case, lines) in [
        ("a success", call("success", None, &[])),
        ("an answer of a function", request(LevelFilter::TRACE, true, Fault::None, 200).await),
        (
            "a refusal of the table, which has a cause outside",
            request(LevelFilter::TRACE, true, Fault::ServerError, 503).await,
        ),
        (
            "a run that finds nothing",
            written(LevelFilter::TRACE, async || {
                Stack::start(streaming()).await.unwrap().tick("redrive").await.unwrap();
            })
            .await,
        ),
        ("another error line", written(LevelFilter::TRACE, async || tracing::error!(consumer = "x", "change")).await),
        ("the same words as a warning", written(LevelFilter::TRACE, async || tracing::warn!("unreadable item")).await),
        ("other answers of the gateway", [200, 400, 404, 422, 429, 500].map(access_line).to_vec()),
        ("a line that is no JSON", vec!["status != success, 500, unreadable item".to_owned()]),
    ] {
        assert!(!lines.is_empty(), "{case}");
        assert_eq!(Metrics::of(&lines), Metrics::default(), "{case}: {lines:#?}");
    }
}

/// An unhappy caller with a wrong key is no reason for an alarm.
#[tokio::test]
async fn three_hundred_refused_requests_raise_no_alarm() {
    let counted = Metrics::of(&refused(300).await);
    assert_eq!(counted, Metrics { refused_requests: 300, ..Metrics::default() });
    assert_eq!(counted.raised(), BTreeSet::new());
    assert_eq!(alarms()["RefusedRequestsAlarm"]["Period"], 300);
}

/// The failures that raise an alarm without a line in the log.
const WITHOUT_A_LINE: &[(&str, &str)] = &[
    ("Lambda has no room for a call", "ThrottlesAlarm"),
    ("More than 1 % of the requests are answered 5xx, 502 and 503 among them", "ServerErrorsAlarm"),
    ("Answers are slow", "LatencyAlarm"),
    ("The table refuses reads", "ReadThrottlesAlarm"),
    ("The table refuses writes", "WriteThrottlesAlarm"),
    ("Lambda cannot store records of the stream that it gives up", "LostRecordsAlarm"),
    ("A function falls behind the stream", "<Function>IteratorAgeAlarm"),
];

#[tokio::test]
async fn the_operations_page_lists_the_alarms_of_each_failure() {
    let mut table = "| Failure | Once | Three times in a minute |\n| --- | --- | --- |\n".to_owned();
    let list = |alarms: &BTreeSet<String>| alarms.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    let mut named = BTreeSet::new();
    for (failure, lines, _) in failures().await {
        let once = Metrics::of(lines).raised();
        let three_times = Metrics::of(&[&lines[..], lines, lines].concat()).raised();
        assert!(!once.is_empty(), "{failure} raises no alarm");
        writeln!(table, "| {failure} | {} | {} |", list(&once), list(&three_times)).unwrap();
        named.extend(three_times);
    }
    for (failure, alarm) in WITHOUT_A_LINE {
        writeln!(table, "| {failure} | `{alarm}` | |").unwrap();
        named.insert((*alarm).to_owned());
    }
    let of_stream =
        |id: &String| if id.ends_with("IteratorAgeAlarm") { "<Function>IteratorAgeAlarm".into() } else { id.clone() };
    assert_eq!(
        named,
        alarms().keys().map(of_stream).collect(),
        "an alarm without a failure, or a failure without an alarm"
    );
    generated_between("docs/OPERATIONS.md", ("<!-- failures -->\n", "\n<!-- /failures -->"), &table);
}

#[test]
fn at_most_fifteen_alarms_exist_and_the_dashboard_shows_all() {
    let alarms = alarms();
    assert!(alarms.len() <= 15, "{} alarms", alarms.len());
    let dashboard = resources("AWS::CloudWatch::Dashboard")["Dashboard"]["DashboardBody"]["!Sub"].to_string();
    for (id, alarm) in &alarms {
        for actions in ["AlarmActions", "OKActions"] {
            assert_eq!(alarm[actions], json!([{"!Ref": "AlarmTopic"}]), "{id}");
        }
        assert_eq!(alarm["TreatMissingData"], "notBreaching", "{id}");
        assert!(dashboard.contains(&format!("${{{id}.Arn}}")), "the dashboard does not show {id}");
    }
    let of_stream = functions().into_iter().filter(|function| function.kind == "StreamConsumer").count();
    assert_eq!(alarms.keys().filter(|id| id.ends_with("IteratorAgeAlarm")).count(), of_stream);
}

/// The alarms that roll a deployment back, as the output for CloudFormation names them.
fn triggers() -> Vec<String> {
    let output = TEMPLATE["Outputs"]["RollbackConfiguration"]["Value"]["!Sub"].as_str().unwrap().to_owned();
    let configuration: Value = serde_json::from_str(&output).unwrap();
    let minutes = configuration["MonitoringTimeInMinutes"].as_u64().unwrap();
    assert!((1..=180).contains(&minutes), "{minutes}");
    let trigger = |trigger: &Value| {
        assert_eq!(trigger["Type"], "AWS::CloudWatch::Alarm");
        let arn = trigger["Arn"].as_str().unwrap();
        arn.strip_prefix("${").and_then(|rest| rest.strip_suffix(".Arn}")).unwrap().to_owned()
    };
    configuration["RollbackTriggers"].as_array().unwrap().iter().map(trigger).collect()
}

/// No such alarm depends on successes: it has no rate, no average and no arithmetic over metrics.
#[test]
fn each_rollback_alarm_counts_failures() {
    let (alarms, filters, triggers) = (alarms(), resources("AWS::Logs::MetricFilter"), triggers());
    assert!((1..=5).contains(&triggers.len()), "CloudFormation takes at most five");
    for id in &triggers {
        let alarm = &alarms[id];
        let fields = json!({
            "Namespace": {"!Ref": "AWS::StackName"}, "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1,
            "TreatMissingData": "notBreaching",
        });
        for (field, wanted) in fields.as_object().unwrap() {
            assert_eq!(&alarm[field], wanted, "{id}: {field}");
        }
        for field in ["Metrics", "Dimensions", "ExtendedStatistic", "DatapointsToAlarm", "ThresholdMetricId", "Unit"] {
            assert_eq!(alarm[field], Value::Null, "{id}: {field}");
        }
        // Each line that the filter matches counts one.
        let transformation = json!([{
            "MetricNamespace": {"!Ref": "AWS::StackName"}, "MetricName": alarm["MetricName"], "MetricValue": "1", "Unit": "Count",
        }]);
        assert_eq!(filters[alarm["MetricName"].as_str().unwrap()]["MetricTransformations"], transformation, "{id}");
    }
    let repeated = &alarms["RepeatedFailuresAlarm"];
    assert!(triggers.iter().any(|id| id == "RepeatedFailuresAlarm"));
    assert_eq!(repeated["MetricName"], "FailedCalls");
    assert_eq!(
        (&repeated["ComparisonOperator"], &repeated["Threshold"]),
        (&"GreaterThanOrEqualToThreshold".into(), &3.into())
    );
}

/// Three failed calls within a minute raise an alarm beside any number of successes, and two raise none.
#[tokio::test]
async fn successes_do_not_hide_three_failures() {
    let triggers = triggers();
    for (failure, lines, _) in failures().await.iter().filter(|(_, _, counted)| counted.failed_calls > 0) {
        for (times, wanted) in [(3, true), (2, false)] {
            let failures = std::iter::repeat_n(lines.clone(), times);
            let successes = std::iter::repeat_n(call("success", None, &[]), 1000);
            let minute: Vec<_> = failures.chain(successes).flatten().collect();
            let raised = Metrics::of(&minute).raised();
            assert_eq!(triggers.iter().any(|id| raised.contains(id)), wanted, "{failure}, {times} times");
        }
    }
}
