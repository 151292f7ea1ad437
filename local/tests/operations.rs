//! Tests that `docs/OPERATIONS.md` agrees with the template, and that its commands work.

use std::collections::BTreeSet;

use local::prices;
use local::template::Template;
use repository::root;
use serde_json::Value;

use crate::support::fixture::{empty, json};
use crate::support::generated::generated_between;

fn page() -> String {
    std::fs::read_to_string(root().join("docs/OPERATIONS.md")).unwrap()
}

/// The names that begin a block of the template's section `section`.
fn template_names(section: &str) -> BTreeSet<String> {
    let template = std::fs::read_to_string(root().join("template.yaml")).unwrap();
    let lines = template.lines().skip_while(|line| *line != format!("{section}:")).skip(1);
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric())).map(str::to_owned).collect()
}

/// The words in backticks in the first cells of the table in the section `section`.
fn first_cells(page: &str, section: &str) -> BTreeSet<String> {
    let section = page.split("\n## ").find(|part| part.starts_with(section)).unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn the_page_explains_exactly_the_alarms_of_the_template() {
    let resources = template_names("Resources");
    let kind = |alarm: &String| {
        let suffix = "IteratorAgeAlarm";
        let function = alarm.strip_suffix(suffix).filter(|name| resources.contains(&format!("{name}Function")));
        function.map_or_else(|| alarm.clone(), |_| format!("<Function>{suffix}"))
    };
    let wanted: BTreeSet<_> = resources.iter().filter(|name| name.ends_with("Alarm")).map(kind).collect();
    assert!(wanted.len() > 4, "{wanted:?}");
    let explained = first_cells(&page(), "Act on an alarm").into_iter().filter(|name| name.ends_with("Alarm"));
    assert_eq!(explained.collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn the_page_explains_every_parameter() {
    assert_eq!(first_cells(&page(), "Change a setting"), template_names("Parameters"));
}

/// Runs the commands in their order. `ORG_ID` and `KEY_ID` come from earlier answers.
#[tokio::test]
async fn every_invoke_command_of_the_page_succeeds() {
    let stack = local::Stack::start(empty()).await.unwrap();
    let (mut org, mut id, mut invoked) = (String::new(), String::new(), BTreeSet::new());
    for command in page().lines().filter_map(|line| line.strip_prefix("sam remote invoke ")) {
        let (function, rest) = command.split_once(' ').unwrap();
        let payload = rest.split('\'').nth(1).unwrap().replace("ORG_ID", &org).replace("KEY_ID", &id);
        let answer = stack.gateway.invoke_by_name(function, payload.as_bytes()).await;
        assert!(answer.status == 200 && !answer.headers.contains_key("x-amz-function-error"), "{}", answer.body);
        let answer = json(&answer);
        if let (Value::String(_), Value::String(org_id), Value::String(key_id)) =
            (&answer["api_key"], &answer["org_id"], &answer["id"])
        {
            (org, id) = (org_id.clone(), key_id.clone());
        }
        invoked.insert(function.to_owned());
    }
    let wanted = [
        "GetOrganisationUseFunction",
        "IssueApiKeyFunction",
        "ListApiKeysFunction",
        "RedriveFunction",
        "RevokeApiKeyFunction",
        "UpdateApiKeyFunction",
    ];
    assert_eq!(invoked, wanted.map(str::to_owned).into());
}

/// Every field that a query of the page names is in a log line.
#[test]
fn the_queries_name_fields_that_are_logged() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let (page, template, pipeline) = (page(), read("template.yaml"), read("shared/src/request/pipeline.rs"));
    let words: BTreeSet<_> = page.split(|c: char| !c.is_ascii_alphanumeric() && !['.', '_'].contains(&c)).collect();
    // Every line has a message.
    let logged = words.iter().filter_map(|word| word.strip_prefix("fields.")).filter(|field| *field != "message");
    let logged: Vec<_> = logged.collect();
    assert!(logged.len() > 4, "{logged:?}");
    for field in logged {
        let writes = |line: &str| line.starts_with(&format!("{field} = ")) || line == format!("{field},");
        assert!(pipeline.lines().map(str::trim).any(writes), "no line has {field}");
    }
    for field in ["requestId", "functionRequestId", "route", "status", "error"] {
        assert!(words.contains(field) && template.contains(&format!("\"{field}\":")), "{field}");
    }
}

/// One command hands the alarms to CloudFormation. It keeps the template and every parameter.
#[test]
fn one_command_sets_the_rollback_triggers() {
    let page = page();
    let commands: Vec<_> = page.lines().filter(|line| line.contains(" --rollback-configuration \"$(")).collect();
    let [command] = commands[..] else { panic!("{commands:?}") };
    for part in [
        "aws cloudformation update-stack --stack-name assistants-prod --use-previous-template ",
        " --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND ",
        "printf 'ParameterKey=%s,UsePreviousValue=true ') --tags Key=rollback-triggers,Value=set --rollback-configuration ",
        "Outputs[?OutputKey=='RollbackConfiguration'].OutputValue",
    ] {
        assert!(command.contains(part), "{part}");
    }
    assert!(template_names("Outputs").contains("RollbackConfiguration"));
}

/// It is under $3.50 a month, alarms included.
#[test]
fn the_page_has_the_cost_of_an_idle_stack() {
    let template = Template::read_once(&root().join("template.yaml")).unwrap();
    let alarms = template_names("Resources").iter().filter(|name| name.ends_with("Alarm")).count();
    let schedules: Vec<u64> = template.schedules.iter().map(|schedule| schedule.every_seconds).collect();
    let (table, total) = prices::idle_month(alarms, &schedules);
    assert!(total < 3.5, "{total}");
    generated_between("docs/OPERATIONS.md", ("<!-- idle -->\n", "\n<!-- /idle -->"), &table);
}

#[test]
fn the_prices_follow_from_the_measured_costs() {
    let costs = std::fs::read_to_string(root().join("docs/COST.md")).unwrap();
    let marks = ("<!-- prices -->\n", "\n<!-- /prices -->");
    generated_between("docs/OPERATIONS.md", marks, &prices::table(&costs).unwrap());
    let marks = ("<!-- whole -->\n", "\n<!-- /whole -->");
    generated_between("docs/OPERATIONS.md", marks, &prices::whole(&costs).unwrap());
}
