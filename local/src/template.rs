//! Reads `template.yaml`: the table as it would be deployed, and the functions of all routes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use shared::routes;

use crate::{Trouble, event_filter};

/// The name in the gateway's definition for a path that accepts every method.
pub const ANY_METHOD: &str = "x-amazon-apigateway-any-method";

/// The parts of the template that the local stack uses.
#[derive(Debug, Clone)]
pub struct Template {
    /// The table's properties, in the words of DynamoDB's own API.
    pub table: Value,
    /// Name of the attribute with the time at which an item expires.
    pub ttl_attribute: Option<String>,
    /// Every function with a route.
    pub routes: Vec<TemplateRoute>,
    /// The headers of an answer to a preflight request, beside the allowed origin, if CORS is on.
    pub preflight: BTreeMap<String, String>,
    /// Every function's event source on the table's stream.
    pub sources: Vec<EventSource>,
    /// Every function's schedule.
    pub schedules: Vec<ScheduleSource>,
    /// The functions that are notified of new objects in a bucket.
    pub notified_of_objects: Vec<String>,
    /// The permissions of each function's role, with their resources.
    pub permissions: BTreeMap<String, Vec<Permission>>,
    /// The logical id of each function's role, if the template defines it.
    pub roles: BTreeMap<String, String>,
}

/// A function's event source of type `DynamoDB`.
#[derive(Debug, Clone, PartialEq)]
pub struct EventSource {
    /// Kebab-case name of the function.
    pub function: String,
    /// The most records of a batch.
    pub batch_size: usize,
    /// The filters' patterns.
    pub filters: Vec<Value>,
    /// How long a batch waits until it is full.
    pub window_seconds: u64,
    /// The number of batches of a shard that are processed at once.
    pub lanes: usize,
    /// The most retries of a batch.
    pub max_retries: u64,
    /// Whether a failed batch is repeated in halves.
    pub bisects: bool,
    /// Whether the function's answer names the first failed change.
    pub reports_failures: bool,
    /// The largest age of a record.
    pub max_age_seconds: i64,
    /// The logical id of the bucket for batches that are given up.
    pub destination: Option<String>,
}

/// A function's event source of type `Schedule` or `ScheduleV2`, unless it is switched off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleSource {
    /// Kebab-case name of the function.
    pub function: String,
    /// Its rate.
    pub every_seconds: u64,
    /// The most retries of a failed invocation.
    pub max_retries: usize,
}

/// A statement of a role's policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// The actions.
    pub actions: BTreeSet<String>,
    /// The resource, as JSON: `{"!GetAtt":"Table.Arn"}`.
    pub resource: String,
    /// The condition, as JSON: `null` if there is none.
    pub condition: String,
}

/// A method of a path in the gateway's definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateRoute {
    /// Kebab-case name, derived from the logical id: `DeleteTagFunction` is `delete-tag`.
    pub function: String,
    /// Upper case.
    pub method: String,
    /// As written: without a slash at its end.
    pub path: String,
}

impl Template {
    /// Reads the template at `path`.
    ///
    /// # Errors
    /// [`Trouble`] names the error in it.
    pub fn read(path: &Path) -> Result<Self, Trouble> {
        let text = std::fs::read_to_string(path).map_err(|error| Trouble(format!("{}: {error}", path.display())))?;
        Self::parse(&text).map_err(|trouble| Trouble(format!("{}: {trouble}", path.display())))
    }

    /// The template at `path`. A process reads it only once: that takes longer than the rest of a start.
    ///
    /// # Errors
    /// The same as for [`Template::read`].
    pub fn read_once(path: &Path) -> Result<Self, Trouble> {
        static READ: Mutex<BTreeMap<PathBuf, Template>> = Mutex::new(BTreeMap::new());
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(template) = read.get(path) {
            return Ok(template.clone());
        }
        let template = Self::read(path)?;
        read.insert(path.to_owned(), template.clone());
        Ok(template)
    }

    /// Removes the stream.
    pub fn without_stream(&mut self) {
        if let Some(table) = self.table.as_object_mut() {
            table.remove("StreamSpecification");
        }
    }

    /// Limits the batches of a stream that a function processes at the same time.
    pub fn limit_lanes(&mut self, most: usize) {
        for source in &mut self.sources {
            source.lanes = source.lanes.min(most);
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Trouble> {
        let document = document(text)?;
        let resources = document["Resources"].as_object().ok_or_else(|| Trouble("it has no Resources".into()))?;
        let of_type = |kind: &'static str| resources.iter().filter(move |(_, resource)| resource["Type"] == kind);
        let (_, table) = of_type("AWS::DynamoDB::Table").next().ok_or_else(|| Trouble("it has no table".into()))?;
        let (mut routes, mut allowed_calls) = (Vec::new(), BTreeMap::new());
        for (id, api) in of_type("AWS::Serverless::Api") {
            routes.extend(api_routes(&api["Properties"]["DefinitionBody"]["paths"]).map_err(|route| {
                Trouble(format!("{id}: {route} is not integrated with a function of the template"))
            })?);
            allowed_calls.extend(preflight(&api["Properties"]["Cors"]));
        }
        routes.sort();
        let sources = sources(of_type("AWS::Serverless::Function"))?;
        let schedules = schedules(of_type("AWS::Serverless::Function"))?;
        let is_notified = |function: &Value| {
            let events = function["Properties"]["Events"].as_object();
            events.is_some_and(|events| events.values().any(|event| event["Type"] == "EventBridgeRule"))
        };
        let notified = of_type("AWS::Serverless::Function").filter(|(_, function)| is_notified(function));
        let notified_of_objects = notified.map(|(id, _)| function_name(id)).collect();
        let roles = of_type("AWS::Serverless::Function").filter_map(|(id, function)| {
            let role = function["Properties"]["Role"]["!GetAtt"].as_str()?.strip_suffix(".Arn")?;
            resources.contains_key(role).then(|| (function_name(id), role.to_owned()))
        });
        let roles: BTreeMap<_, _> = roles.collect();
        let allowed = |role: &String| permissions(&resources[role]["Properties"]["Policies"]);
        let permissions = roles.iter().map(|(function, role)| (function.clone(), allowed(role))).collect();
        let properties = &table["Properties"];
        Ok(Self {
            table: create_table(properties),
            ttl_attribute: properties["TimeToLiveSpecification"]["AttributeName"].as_str().map(str::to_owned),
            routes,
            preflight: allowed_calls,
            sources,
            schedules,
            notified_of_objects,
            permissions,
            roles,
        })
    }
}

/// The headers of an answer to a preflight request, if CORS is on: the first branch of each value.
fn preflight(cors: &Value) -> impl Iterator<Item = (String, String)> {
    let header = |(property, name): (&str, &str)| {
        let value = cors[property]["!If"][1].as_str()?;
        Some((name.to_owned(), value.trim_matches('\'').to_owned()))
    };
    [
        ("AllowHeaders", "access-control-allow-headers"),
        ("AllowMethods", "access-control-allow-methods"),
        ("MaxAge", "access-control-max-age"),
    ]
    .into_iter()
    .filter_map(header)
}

/// A template as JSON. A tag of CloudFormation (`!Ref`, `!Sub` and the like) becomes an object with the tag as its key.
///
/// # Errors
/// [`Trouble`] where it is no YAML.
pub fn document(text: &str) -> Result<Value, Trouble> {
    serde_yaml_ng::from_str(text).map(json_of).map_err(|error| Trouble(error.to_string()))
}

/// `DeleteTagFunction` as `delete-tag`.
pub fn function_name(logical_id: &str) -> String {
    kebab_case(logical_id.strip_suffix("Function").unwrap_or(logical_id))
}

/// The routes of the gateway's definition, or the route that leads to no function.
fn api_routes(paths: &Value) -> Result<Vec<TemplateRoute>, String> {
    let methods = paths.as_object().into_iter().flatten().flat_map(|(path, methods)| {
        // A part that a deployment may leave out is included.
        let methods = methods.get("!If").map_or(methods, |branches| &branches[1]);
        methods.as_object().into_iter().flatten().map(move |(method, operation)| (path, http_method(method), operation))
    });
    let route = |(path, method, operation): (&String, String, &Value)| {
        let uri = operation["x-amazon-apigateway-integration"]["uri"]["!Sub"].as_str().unwrap_or_default();
        let function = uri.split_once(":lambda:path/2015-03-31/functions/${").map(|(_, rest)| rest);
        let id = function.and_then(|rest| rest.strip_suffix(".Arn}/invocations"));
        let id = id.ok_or_else(|| format!("{method} {path}"))?;
        Ok(TemplateRoute { function: function_name(id), method, path: path.clone() })
    };
    methods.map(route).collect()
}

/// The method for `name` in the gateway's definition.
fn http_method(name: &str) -> String {
    if name == ANY_METHOD { routes::ANY.to_owned() } else { name.to_uppercase() }
}

fn sources<'a>(functions: impl Iterator<Item = (&'a String, &'a Value)>) -> Result<Vec<EventSource>, Trouble> {
    let mut sources = Vec::new();
    for (id, function) in functions {
        let events = function["Properties"]["Events"].as_object().into_iter().flat_map(Map::values);
        for event in events.filter(|event| event["Type"] == "DynamoDB") {
            let properties = &event["Properties"];
            let trouble = |what: &str| Trouble(format!("{id}: {what}"));
            // Without a bound, one bad record would block a shard for a day.
            let number = |name: &str| {
                properties[name].as_u64().ok_or_else(|| trouble(&format!("its {name} is missing, or without bound")))
            };
            let filter = |filter: &Value| {
                let pattern = serde_json::from_str(&text_of(&filter["Pattern"]))
                    .map_err(|error| trouble(&format!("a filter: {error}")))?;
                event_filter::check(&pattern).map_err(|unknown| trouble(&unknown.0))?;
                Ok(pattern)
            };
            let patterns = properties["FilterCriteria"]["Filters"].as_array().into_iter().flatten();
            let response_types = properties["FunctionResponseTypes"].as_array().into_iter().flatten();
            let lanes = properties["ParallelizationFactor"].as_u64().unwrap_or(1);
            let failed = &properties["DestinationConfig"]["OnFailure"];
            let bucket = failed["Destination"]["!GetAtt"].as_str().filter(|_| failed["Type"] == "S3");
            sources.push(EventSource {
                function: function_name(id),
                batch_size: usize::try_from(number("BatchSize")?).unwrap_or(usize::MAX).max(1),
                filters: patterns.map(filter).collect::<Result<_, _>>()?,
                window_seconds: properties["MaximumBatchingWindowInSeconds"].as_u64().unwrap_or_default(),
                lanes: usize::try_from(lanes).unwrap_or(1).clamp(1, 10),
                max_retries: number("MaximumRetryAttempts")?,
                bisects: properties["BisectBatchOnFunctionError"] == true,
                reports_failures: response_types.into_iter().any(|kind| kind == "ReportBatchItemFailures"),
                max_age_seconds: i64::try_from(number("MaximumRecordAgeInSeconds")?).unwrap_or(i64::MAX),
                destination: bucket.and_then(|arn| arn.strip_suffix(".Arn")).map(str::to_owned),
            });
        }
    }
    Ok(sources)
}

fn schedules<'a>(functions: impl Iterator<Item = (&'a String, &'a Value)>) -> Result<Vec<ScheduleSource>, Trouble> {
    let mut schedules = Vec::new();
    for (id, function) in functions {
        let events = function["Properties"]["Events"].as_object().into_iter().flat_map(Map::values);
        for event in events {
            let properties = &event["Properties"];
            let rate = match event["Type"].as_str() {
                Some("Schedule") => &properties["Schedule"],
                Some("ScheduleV2") => &properties["ScheduleExpression"],
                _ => continue,
            };
            if properties["Enabled"] == false || properties["State"] == "DISABLED" {
                continue;
            }
            let rate = text_of(rate);
            let every_seconds =
                seconds(&rate).ok_or_else(|| Trouble(format!("{id}: its schedule {rate} is no rate(…)")))?;
            // Lambda's own default, if the template has no value.
            let retries = function["Properties"]["EventInvokeConfig"]["MaximumRetryAttempts"].as_u64().unwrap_or(2);
            let max_retries = usize::try_from(retries).unwrap_or(usize::MAX);
            schedules.push(ScheduleSource { function: function_name(id), every_seconds, max_retries });
        }
    }
    Ok(schedules)
}

/// `rate(5 minutes)` as 300.
fn seconds(rate: &str) -> Option<u64> {
    let (count, unit) = rate.trim().strip_prefix("rate(")?.strip_suffix(')')?.split_once(' ')?;
    let unit = match unit.trim().trim_end_matches('s') {
        "minute" => 60,
        "hour" => 60 * 60,
        "day" => 24 * 60 * 60,
        _ => return None,
    };
    count.trim().parse::<u64>().ok().filter(|count| *count > 0)?.checked_mul(unit)
}

fn permissions(policies: &Value) -> Vec<Permission> {
    let policies = policies.as_array().into_iter().flatten().map(|policy| &policy["PolicyDocument"]);
    let statements = policies.filter_map(|policy| policy["Statement"].as_array()).flatten();
    let permission = |statement: &Value| Permission {
        actions: match &statement["Action"] {
            Value::Array(actions) => actions.iter().map(text_of).collect(),
            action => BTreeSet::from([text_of(action)]),
        },
        resource: statement["Resource"].to_string(),
        condition: statement["Condition"].to_string(),
    };
    statements.map(permission).collect()
}

/// The properties from CloudFormation that CreateTable accepts; CloudFormation leaves out values that the presence of a
/// block implies.
fn create_table(properties: &Value) -> Value {
    let mut stream = properties["StreamSpecification"].clone();
    if let Some(stream) = stream.as_object_mut() {
        stream.insert("StreamEnabled".into(), true.into());
        stream.retain(|name, _| matches!(name.as_str(), "StreamEnabled" | "StreamViewType"));
    }
    let mut table = json!({
        "KeySchema": properties["KeySchema"],
        "AttributeDefinitions": properties["AttributeDefinitions"],
        "BillingMode": properties["BillingMode"],
        "GlobalSecondaryIndexes": properties["GlobalSecondaryIndexes"],
        "StreamSpecification": stream,
    });
    if let Some(table) = table.as_object_mut() {
        table.retain(|_, value| !value.is_null());
    }
    table
}

fn json_of(value: serde_yaml_ng::Value) -> Value {
    use serde_yaml_ng::Value as Yaml;
    match value {
        Yaml::Tagged(tagged) => json!({ tagged.tag.to_string(): json_of(tagged.value) }),
        Yaml::Sequence(items) => items.into_iter().map(json_of).collect(),
        Yaml::Mapping(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (text_of(&json_of(name)), json_of(value))).collect())
        }
        scalar => serde_json::to_value(scalar).unwrap_or_default(),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `DeleteTag` as `delete-tag`.
pub fn kebab_case(camel: &str) -> String {
    camel.char_indices().fold(String::new(), |mut name, (index, character)| {
        if character.is_ascii_uppercase() && index > 0 {
            name.push('-');
        }
        name.push(character.to_ascii_lowercase());
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_template_is_refused_with_a_reason() {
        for (text, wanted) in [
            ("a: [", "did not find expected node content"),
            ("a: 1", "it has no Resources"),
            ("Resources: {}", "it has no table"),
        ] {
            let trouble = Template::parse(text).unwrap_err().to_string();
            assert!(trouble.contains(wanted), "{trouble}");
        }
    }

    /// A template with this integration of the one path, and this role of the one function.
    fn with_route(uri: &str, role: &str) -> Result<Template, Trouble> {
        Template::parse(&format!(
            "Resources:\n  Table: {{Type: 'AWS::DynamoDB::Table', Properties: {{KeySchema: [], StreamSpecification: \
             {{StreamViewType: KEYS_ONLY}}}}}}\n  Api:\n    Type: AWS::Serverless::Api\n    Properties:\n      \
             DefinitionBody:\n        paths:\n          /x/{{id}}: {{get: {{x-amazon-apigateway-integration: {{uri: !Sub \
             '{uri}'}}}}}}\n  ARole:\n    Type: AWS::IAM::Role\n    Properties:\n      Policies: [{{PolicyDocument: \
             {{Statement: [{{Action: [a:B], Resource: !GetAtt Table.Arn}}]}}}}]\n  DoThisFunction: {{Type: \
             'AWS::Serverless::Function', Properties: {{Role: !GetAtt {role}.Arn}}}}\n"
        ))
    }

    #[test]
    fn routes_roles_and_table_are_read_with_their_tags() {
        let uri = "arn:aws:apigateway:r:lambda:path/2015-03-31/functions/${DoThisFunction.Arn}/invocations";
        let template = with_route(uri, "ARole").unwrap();
        let route = TemplateRoute { function: "do-this".into(), method: "GET".into(), path: "/x/{id}".into() };
        assert_eq!(template.routes, [route]);
        assert_eq!(template.table["StreamSpecification"]["StreamEnabled"], true);
        assert_eq!(template.roles["do-this"], "ARole");
        let resource = r#"{"!GetAtt":"Table.Arn"}"#.to_owned();
        let condition = "null".to_owned();
        let permission = Permission { actions: BTreeSet::from(["a:B".to_owned()]), resource, condition };
        assert_eq!(template.permissions["do-this"], [permission]);
        assert!(with_route(uri, "NoRole").unwrap().roles.is_empty());
        let trouble = with_route("https://example.com", "ARole").unwrap_err().to_string();
        assert_eq!(trouble, "Api: GET /x/{id} is not integrated with a function of the template");
    }

    /// A template with these events of one function.
    fn with_events(events: &str) -> Result<Template, Trouble> {
        Template::parse(&format!(
            "Resources:\n  Table: {{Type: 'AWS::DynamoDB::Table', Properties: {{}}}}\n  DoThisFunction:\n    Type: \
             AWS::Serverless::Function\n    Properties:\n      Events:\n{events}"
        ))
    }

    #[test]
    fn schedules_are_read_unless_they_are_disabled() {
        let template = with_events(
            "        A: {Type: Schedule, Properties: {Schedule: rate(1 minute), Enabled: true}}\n        B: {Type: \
             ScheduleV2, Properties: {ScheduleExpression: rate(2 hours), State: ENABLED}}\n        C: {Type: Schedule, \
             Properties: {Schedule: rate(1 day), Enabled: false}}\n        D: {Type: ScheduleV2, Properties: \
             {ScheduleExpression: rate(1 day), State: DISABLED}}\n",
        )
        .unwrap();
        let schedule = |every_seconds| ScheduleSource { function: "do-this".into(), every_seconds, max_retries: 2 };
        assert_eq!(template.schedules, [schedule(60), schedule(7200)]);
        for rate in ["cron(0 * * * ? *)", "rate(0 minutes)", "rate(1 week)", "rate(minute)"] {
            let event = format!("        A: {{Type: Schedule, Properties: {{Schedule: {rate:?}}}}}\n");
            let trouble = with_events(&event).unwrap_err().to_string();
            assert_eq!(trouble, format!("DoThisFunction: its schedule {rate} is no rate(…)"));
        }
    }

    #[test]
    fn sources_are_read_with_all_their_rules() {
        let source = |more: &str| {
            format!(
                "        A:\n          Type: DynamoDB\n          Properties:\n            BatchSize: 10\n            \
                 MaximumRetryAttempts: 3\n            MaximumRecordAgeInSeconds: 60\n{more}"
            )
        };
        let plain = EventSource {
            function: "do-this".into(),
            batch_size: 10,
            filters: vec![],
            window_seconds: 0,
            lanes: 1,
            max_retries: 3,
            bisects: false,
            reports_failures: false,
            max_age_seconds: 60,
            destination: None,
        };
        assert_eq!(with_events(&source("")).unwrap().sources, vec![plain.clone()]);
        let all = "            MaximumBatchingWindowInSeconds: 2\n            ParallelizationFactor: 4\n            \
                   BisectBatchOnFunctionError: true\n            FunctionResponseTypes: [ReportBatchItemFailures]\n            \
                   DestinationConfig: {OnFailure: {Type: S3, Destination: !GetAtt ABucket.Arn}}\n            \
                   FilterCriteria: {Filters: [{Pattern: '{\"eventName\":[\"REMOVE\"]}'}, {Pattern: '{}'}]}\n";
        let full = EventSource {
            filters: vec![json!({"eventName": ["REMOVE"]}), json!({})],
            window_seconds: 2,
            lanes: 4,
            bisects: true,
            reports_failures: true,
            destination: Some("ABucket".into()),
            ..plain
        };
        assert_eq!(with_events(&source(all)).unwrap().sources, [full]);
        for (more, wanted) in [
            ("            FilterCriteria: {Filters: [{Pattern: '{'}]}\n", "DoThisFunction: a filter: EOF"),
            (
                "            FilterCriteria: {Filters: [{Pattern: '{\"a\":[{\"numeric\":[\">\",1]}]}'}]}\n",
                "DoThisFunction: the filter rule numeric",
            ),
        ] {
            let trouble = with_events(&source(more)).unwrap_err().to_string();
            assert!(trouble.starts_with(wanted), "{trouble}");
        }
        let unbounded = source("").replace("Attempts: 3", "Attempts: -1");
        let trouble = with_events(&unbounded).unwrap_err().to_string();
        assert_eq!(trouble, "DoThisFunction: its MaximumRetryAttempts is missing, or without bound");
    }
}
