//! Tests of `template.yaml`: its generated parts are up to date, and it has room for more operations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use local::bucket::FAILED_RECORDS_BUCKET;
use local::roles::{LIST_BUCKET, of_failed_records};
use local::template::{ANY_METHOD, Template};
use repository::functions::{Function, functions};
use repository::{around, camel_case, read, root};
use serde_json::Value;
use shared::sealing::CONTEXT;
use shared::{reactions, routes};

use crate::support::gateway::{self, condition};
use crate::support::generated::{generated, generated_between, generating};
use crate::support::permits::{Recorded, allowed, completed, recorded, write_of};
use crate::support::template::TEMPLATE;

const END: &str = "# End of the generated part.";

/// The partition keys of items of an organisation, and those of the token buckets of keys, in the condition of a role.
const ORG_ITEMS: &str = "ORG#*";
const RATE_ITEMS: &str = "RATE#*";

/// The lines around a generated part with this indent.
fn marks(part: &str, indent: usize) -> (String, String) {
    (format!("# Generated: {part}."), format!("{}{END}", " ".repeat(indent)))
}

#[test]
fn the_generated_parts_are_up_to_date() {
    let functions = functions();
    write_roles(&allowed());
    write_parts(vec![
        ("the limits of paths without a key", 8, gateway::limits()),
        ("the answers of the gateway", 8, gateway::answers()),
        ("the paths", 10, paths()),
        ("the functions without a route", 14, gateway::denied(&functions)),
        ("the filters of the reactions", 16, filters()),
        ("the alarms of functions on the stream", 2, iterator_age_alarms(&functions)),
    ]);
}

/// The roles allow only calls that a test makes. `cargo test` cannot know this while its tests run, so CI checks it after
/// a run of all tests. `cargo generate` writes the roles.
#[test]
#[ignore = "it needs a run of all tests before: SWEEP=all cargo test"]
fn roles_allow_exactly_the_calls_of_the_tests() {
    let Recorded { whole, calls, refused } = recorded();
    assert!(whole, "first run all tests with all their cases: SWEEP=all cargo test");
    let mut called: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (function, permission) in calls {
        called.entry(function).or_default().insert(permission);
    }
    let called = completed(called);
    if generating() {
        write_roles(&called);
        return;
    }
    assert_eq!(refused, BTreeSet::new(), "a test has made a call that its role refuses");
    let mut allowed = allowed();
    allowed.retain(|_, permissions| !permissions.is_empty());
    assert_eq!(allowed, called);
}

/// Writes the functions, and roles with these permissions, or compares them.
fn write_roles(allowed: &BTreeMap<String, BTreeSet<String>>) {
    let functions = functions();
    write_parts(vec![
        ("the functions", 2, function_blocks(&functions, allowed)),
        ("the roles", 2, roles(&functions, allowed)),
    ]);
}

/// Writes generated parts of the template, or compares them.
fn write_parts(parts: Vec<(&str, usize, String)>) {
    let mut template = read("template.yaml");
    for (part, indent, wanted) in parts {
        let (begin, end) = marks(part, indent);
        let (before, _, after) = around(&template, (&begin, &end));
        template = format!("{before}\n{wanted}{after}");
    }
    generated("template.yaml", &template);
}

/// The filters of the function that runs the reactions.
fn filters() -> String {
    reactions::filters().iter().map(|filter| format!("                - Pattern: '{filter}'\n")).collect()
}

/// The gateway's paths, each with the functions that answer its methods.
fn paths() -> String {
    let mut paths: BTreeMap<&str, (Option<&str>, BTreeMap<String, String>)> = BTreeMap::new();
    for (route, path) in routes::every_path() {
        let (wanted, methods) = paths.entry(path.trim_end_matches('/')).or_default();
        *wanted = condition(route);
        let method = if route.method == routes::ANY { ANY_METHOD.to_owned() } else { route.method.to_lowercase() };
        methods.insert(method, camel_case(route.name));
    }
    let mut text = String::new();
    for (path, (condition, methods)) in paths {
        let methods: String = methods.iter().map(|(method, function)| integration(method, function)).collect();
        if let Some(condition) = condition {
            let first = methods.trim_start();
            write!(
                text,
                "          {path}: !If\n          - {condition}\n          - {first}          - !Ref AWS::NoValue\n"
            )
            .unwrap();
        } else {
            write!(text, "          {path}:\n{methods}").unwrap();
        }
    }
    text
}

fn integration(method: &str, function: &str) -> String {
    let uri = "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions";
    format!(
        "            {method}:\n              x-amazon-apigateway-integration:\n                type: aws_proxy\n                \
         httpMethod: POST\n                credentials: !GetAtt GatewayRole.Arn\n                uri: !Sub \
         {uri}/${{{function}Function.Arn}}/invocations\n"
    )
}

/// Whether the template declares a function like all others: without an event source or limits of its own.
fn is_plain(function: &Function) -> bool {
    function.package != "background"
}

/// The functions that requests and operators invoke.
fn function_blocks(functions: &[Function], called: &BTreeMap<String, BTreeSet<String>>) -> String {
    let block = |function: &Function| {
        let (Function { package, name, .. }, role) = (function, role(function, called));
        let condition = routes::every().find(|route| route.name == name).and_then(condition);
        let condition = condition.map(|condition| format!("    Condition: {condition}\n")).unwrap_or_default();
        format!(
            "  {}Function:\n    Type: AWS::Serverless::Function\n{condition}    Metadata: {{BuildMethod: rust-cargolambda, BuildProperties: \
             {{Binary: {name}}}}}\n    Properties: {{CodeUri: functions/{package}, Role: !GetAtt {role}.Arn}}\n",
            camel_case(name)
        )
    };
    functions.iter().filter(|function| is_plain(function)).map(block).collect()
}

/// The logical id of a function's role. Plain functions with the same calls share a role, whose name lists the calls.
fn role(function: &Function, called: &BTreeMap<String, BTreeSet<String>>) -> String {
    if !is_plain(function) {
        return format!("{}Role", camel_case(&function.name));
    }
    if function.kind == "Document" {
        return "DocumentRole".to_owned();
    }
    let verb = |call: &String| {
        let (action, of) = match write_of(call) {
            Some((_, RATE_ITEMS)) => return "Lease".to_owned(),
            Some((action, ORG_ITEMS)) => (action, String::new()),
            Some((action, items)) => {
                (action, camel_case(&items.trim_end_matches("#*").to_lowercase().replace('_', "-")))
            }
            None => call
                .split_once(" index/")
                .map_or((call.as_str(), String::new()), |(call, index)| (call, index.to_owned())),
        };
        let action = action.split_once(':').unwrap().1;
        let action = action.strip_suffix(CONTEXT).map_or(action, str::trim_end);
        format!("{}{of}", action.strip_suffix("Item").unwrap_or(action))
    };
    // A function that is new in the template has no measured calls yet: the next run adds them.
    called.get(&function.name).into_iter().flatten().map(verb).collect::<String>() + "Role"
}

fn roles(functions: &[Function], called: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut of_role: BTreeMap<(bool, String), Vec<&Function>> = BTreeMap::new();
    for function in functions {
        of_role.entry((!is_plain(function), role(function, called))).or_default().push(function);
    }
    let mut text = String::new();
    for ((_, role), functions) in of_role {
        let names: Vec<_> = functions.iter().map(|function| function.name.as_str()).collect();
        for line in wrapped(&names.join(", ")) {
            writeln!(text, "  # {line}").unwrap();
        }
        write!(
            text,
            "  {role}:\n    Type: AWS::IAM::Role\n    Properties:\n      AssumeRolePolicyDocument:\n        Version: '2012-10-17'\n        \
             Statement: [{{Effect: Allow, Principal: {{Service: lambda.amazonaws.com}}, Action: sts:AssumeRole}}]\n      \
             ManagedPolicyArns: !If [IsTraced, [!Sub 'arn:${{AWS::Partition}}:iam::aws:policy/AWSXRayDaemonWriteAccess'], !Ref AWS::NoValue]\n      \
             Policies:\n        - PolicyName: calls\n          PolicyDocument:\n            Version: '2012-10-17'\n            Statement:\n"
        )
        .unwrap();
        let mut allow = |actions: &[&str], resource: &str| {
            writeln!(text, "              - Effect: Allow\n                Action: [{}]", actions.join(", ")).unwrap();
            writeln!(text, "                Resource: {resource}").unwrap();
        };
        let calls = called.get(names[0]).cloned().unwrap_or_default();
        let of_table = |call: &&String| !call.contains(' ') && !call.starts_with("s3:");
        let of_key = calls.iter().filter_map(|call| call.strip_suffix(CONTEXT).filter(|call| call.starts_with("kms:")));
        let of_key: Vec<_> = of_key.map(str::trim_end).collect();
        let of_table: Vec<_> = calls.iter().filter(of_table).map(String::as_str).collect();
        if !of_table.is_empty() {
            allow(&of_table, "!GetAtt Table.Arn");
        }
        for (action, index) in calls.iter().filter_map(|call| call.split_once(" index/")) {
            allow(&[action], &format!("!Sub ${{Table.Arn}}/index/{index}"));
        }
        let writes = calls.iter().filter_map(|call| write_of(call));
        let (tokens, others): (Vec<_>, Vec<_>) = writes.partition(|(_, items)| *items == RATE_ITEMS);
        for writes in [others, tokens].into_iter().filter(|writes| !writes.is_empty()) {
            let (actions, items): (BTreeSet<_>, BTreeSet<_>) = writes.into_iter().unzip();
            let items: Vec<_> = items.into_iter().map(|items| format!("'{items}'")).collect();
            let condition = format!("{{ForAllValues:StringLike: {{dynamodb:LeadingKeys: [{}]}}}}", items.join(", "));
            let actions: Vec<_> = actions.into_iter().collect();
            allow(&actions, &format!("!GetAtt Table.Arn\n                Condition: {condition}"));
        }
        if !of_key.is_empty() {
            let condition = format!("{{ForAllValues:StringEquals: {{kms:EncryptionContextKeys: [{CONTEXT}]}}}}");
            allow(&of_key, &format!("!GetAtt SecretsKey.Arn\n                Condition: {condition}"));
        }
        for (actions, resource) in of_buckets(&calls) {
            allow(&actions, &resource);
        }
        allow(&["logs:CreateLogStream", "logs:PutLogEvents"], "!GetAtt LogGroup.Arn");
        if functions[0].kind == "StreamConsumer" {
            let read = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"];
            allow(&read, "!GetAtt Table.StreamArn");
            allow(&["dynamodb:ListStreams"], "!Sub ${Table.Arn}/stream/*");
        }
        if functions[0].kind == "StreamConsumer" || notified_of_objects().contains(&functions[0].name) {
            allow(&["s3:PutObject"], "!Sub ${FailedRecordsBucket.Arn}/*");
            allow(&[LIST_BUCKET], "!GetAtt FailedRecordsBucket.Arn");
        }
    }
    text
}

/// The functions that are notified of new objects.
fn notified_of_objects() -> Vec<String> {
    Template::read_once(&root().join("template.yaml")).unwrap().notified_of_objects
}

/// The allowed actions on each resource of the buckets.
fn of_buckets(calls: &BTreeSet<String>) -> Vec<(Vec<&str>, String)> {
    let mut allowed = Vec::new();
    // A permission ends with the name of its bucket, except for the first bucket.
    for (bucket, end) in [("FilesBucket", String::new()), (FAILED_RECORDS_BUCKET, of_failed_records())] {
        let of_it = calls.iter().filter(|call| call.starts_with("s3:"));
        let of_it = of_it.filter_map(|call| call.strip_suffix(&end).filter(|call| !call.contains(' ')));
        let (whole, objects): (Vec<&str>, Vec<&str>) = of_it.partition(|call| *call == LIST_BUCKET);
        allowed.push((objects, format!("!Sub ${{{bucket}.Arn}}/*")));
        allowed.push((whole, format!("!GetAtt {bucket}.Arn")));
    }
    allowed.retain(|(actions, _)| !actions.is_empty());
    allowed
}

/// Lines of at most 130 characters, broken at spaces.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        if lines.last().is_some_and(|line| line.len() + word.len() > 130) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            *line = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        }
    }
    lines
}

fn iterator_age_alarms(functions: &[Function]) -> String {
    let alarm = |Function { name, .. }: &Function| {
        format!(
            "  {id}IteratorAgeAlarm:\n    Type: AWS::CloudWatch::Alarm\n    Properties:\n      AlarmDescription: {name} is more than ten \
             minutes behind the table's stream, which keeps a day.\n      Namespace: AWS/Lambda\n      MetricName: IteratorAge\n      \
             Dimensions: [{{Name: FunctionName, Value: !Ref {id}Function}}]\n      Statistic: Maximum\n      Period: 60\n      \
             EvaluationPeriods: 5\n      ComparisonOperator: GreaterThanThreshold\n      Threshold: 600000\n      TreatMissingData: \
             notBreaching\n      AlarmActions: [!Ref AlarmTopic]\n      OKActions: [!Ref AlarmTopic]\n",
            id = camel_case(name)
        )
    };
    functions.iter().filter(|function| function.kind == "StreamConsumer").map(alarm).collect()
}

#[test]
fn the_template_has_at_most_720_handwritten_lines() {
    let (template, mut inside, mut by_hand) = (read("template.yaml"), false, 0);
    for line in template.lines() {
        inside &= line.trim() != END;
        by_hand += usize::from(!inside);
        inside |= line.trim().starts_with("# Generated: ");
    }
    assert!(!inside, "a generated part has no end");
    assert!(by_hand <= 720, "{by_hand} lines of template.yaml are written by hand");
}

/// Each suppression is in its tool's configuration file, once, with a reason.
#[test]
fn suppressions_stand_in_configuration_files() {
    let template = read("template.yaml");
    for word in ["checkov", "cfn-lint", "cfn_nag", "ignore_checks", "ignore_reasons"] {
        assert!(!template.contains(word), "template.yaml has {word}");
    }
    for (file, list) in [(".checkov.yaml", "skip-check:"), (".cfnlintrc.yaml", "ignore_checks:")] {
        let (text, mut reason, mut checks) = (read(file), false, BTreeSet::new());
        for line in text.split_once(list).unwrap().1.lines().skip(1).map(str::trim) {
            match line.strip_prefix("- ") {
                Some(check) => {
                    assert!(reason, "{file}: {check} has no reason above it");
                    assert!(checks.insert(check), "{file}: {check} stands twice");
                }
                None => assert!(line.starts_with("# "), "{file}: {line}"),
            }
            reason = line.starts_with("# ");
        }
        assert!(!checks.is_empty(), "{file}");
    }
}

/// CloudFormation's quotas for one stack.
const RESOURCES: usize = 500;
const OUTPUTS: usize = 200;
const BYTES: usize = 1_000_000;

/// The most bytes that an operation takes in the template that SAM has expanded, and the bytes of all else.
/// `template/expand.py` beside this file measures them.
const BYTES_OF_AN_OPERATION: usize = 2_990;
const OTHER_BYTES: usize = 93_000;

/// The least number of operations that must fit.
const OPERATIONS: usize = 300;

/// The resources that SAM makes of `template`.
fn resources_after_sam(template: &Value) -> usize {
    let of_event = |event: &Value| match event["Type"].as_str() {
        Some("DynamoDB") => 1,
        // The schedule, and the role with which it invokes; the rule, and its permission to invoke.
        Some("ScheduleV2" | "EventBridgeRule") => 2,
        other => panic!("nothing here knows what SAM makes of an event {other:?}"),
    };
    let of_resource = |(id, resource): (&String, &Value)| {
        let properties = &resource["Properties"];
        match resource["Type"].as_str().unwrap() {
            // Definition, deployment, stage.
            "AWS::Serverless::Api" => 3,
            "AWS::Serverless::Function" => {
                for more in ["AutoPublishAlias", "DeploymentPreference", "FunctionUrlConfig"] {
                    assert!(properties[more].is_null(), "{id}: nothing here knows what SAM makes of {more}");
                }
                assert!(properties["Role"].is_object(), "{id}: SAM makes a role for it");
                let events = properties["Events"].as_object().into_iter().flatten();
                1 + usize::from(properties["EventInvokeConfig"].is_object())
                    + events.map(|(_, event)| of_event(event)).sum::<usize>()
            }
            other => {
                assert!(!other.starts_with("AWS::Serverless::"), "nothing here knows what SAM makes of {other}");
                1
            }
        }
    };
    template["Resources"].as_object().unwrap().iter().map(of_resource).sum()
}

/// How many operations more fit into the stack.
fn room(template: &Value) -> usize {
    let bytes = (BYTES - OTHER_BYTES) / BYTES_OF_AN_OPERATION - routes::ALL.len();
    bytes.min(RESOURCES - resources_after_sam(template))
}

#[test]
fn the_stack_has_room_for_300_operations() {
    let template = &*TEMPLATE;
    let (resources, room) = (resources_after_sam(template), room(template));
    let fit = routes::ALL.len() + room;
    assert!(fit >= OPERATIONS, "only {fit} operations fit");
    let outputs = template["Outputs"].as_object().unwrap().len();
    assert!(
        outputs <= OUTPUTS && template["Outputs"].as_object().unwrap().keys().all(|name| !name.contains("Function"))
    );

    // Made-up ones take a resource each, as the real ones do.
    let mut more = template.clone();
    for number in 0..room {
        more["Resources"][format!("MadeUp{number}Function")] = template["Resources"]["DeleteTagFunction"].clone();
    }
    assert_eq!(resources_after_sam(&more), resources + room);

    let nodes: BTreeSet<_> = routes::every_path()
        .flat_map(|(_, path)| {
            let path = path.trim_end_matches('/');
            let ends: Vec<_> = path.match_indices('/').map(|(at, _)| at).chain([path.len()]).collect();
            ends.into_iter().map(move |end| &path[..end])
        })
        .collect();
    let stated = format!(
        "One stack holds everything: {resources} resources today, of the {RESOURCES} that CloudFormation allows, and {outputs} outputs of \
         {OUTPUTS}. An operation takes one\nresource. It takes two if it needs a role of its own, because no other function makes the same \
         calls.\n\nThe first limit is the size of the template, {BYTES} bytes after SAM has expanded it. An operation takes \
         {BYTES_OF_AN_OPERATION} bytes, and everything else {OTHER_BYTES}.\nThere is room for {room} more operations, {fit} in \
         all. `.ci/validate` expands the template with SAM's own translator, as it is and with that\nmany made-up operations.\n\n\
         The gateway counts each part of its paths as a resource: {} today, of 300. That quota (`L-01C8A9E0` of `apigateway`) can be \
         raised.\n",
        nodes.len()
    );
    generated_between("docs/OPERATIONS.md", ("<!-- room -->\n", "\n<!-- /room -->"), &stated);
}
