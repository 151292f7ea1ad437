//! Tests of the gateway in `template.yaml`: what it answers by itself, how much it lets through, and which functions it invokes.

use std::collections::BTreeSet;

use local::template::function_name;
use repository::{camel_case, read};
use serde_json::{Value, json};
use shared::input::form::FORM;
use shared::routes;

use crate::support::gateway::{keyless, limited_path};
use crate::support::permits;
use crate::support::template::TEMPLATE;

/// The gateway's properties.
fn api() -> Value {
    TEMPLATE["Resources"]["Api"]["Properties"].clone()
}

/// A prefix of the name would also fit the functions of a stack called `NAME-2`.
#[test]
fn the_gateway_may_invoke_exactly_the_functions_with_a_route() {
    let role = &TEMPLATE["Resources"]["GatewayRole"]["Properties"];
    assert_eq!(role["ManagedPolicyArns"], Value::Null);
    let policies = role["Policies"].as_array().unwrap();
    assert_eq!(policies.len(), 1);
    let [allow, deny] = &policies[0]["PolicyDocument"]["Statement"].as_array().unwrap()[..] else { panic!("{role}") };
    let of_stack = json!({
        "Effect": "Allow",
        "Action": "lambda:InvokeFunction",
        "Resource": {"!Sub": "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:*"},
        "Condition": {"StringEquals": {"aws:ResourceTag/aws:cloudformation:stack-id": {"!Ref": "AWS::StackId"}}},
    });
    assert_eq!(*allow, of_stack);
    assert_eq!((&deny["Effect"], &deny["Action"]), (&json!("Deny"), &json!("lambda:InvokeFunction")));
    assert_eq!(deny["Condition"], Value::Null);
    let name = |arn: &Value| {
        let arn = arn["!Sub"].as_str().unwrap();
        function_name(arn.strip_prefix("${").and_then(|rest| rest.strip_suffix(".Arn}*")).unwrap())
    };
    let denied: BTreeSet<_> = deny["Resource"].as_array().unwrap().iter().map(name).collect();
    let local = permits::template();
    let routed: BTreeSet<_> = local.routes.iter().map(|route| route.function.clone()).collect();
    let every: BTreeSet<_> = local.permissions.keys().cloned().collect();
    assert_eq!(every.difference(&denied).cloned().collect::<BTreeSet<_>>(), routed);
}

/// A kind without an entry gets the default of its class.
#[test]
fn a_gateway_error_has_the_shape_of_a_service_error() {
    let responses = &api()["GatewayResponses"];
    let (nowhere, path, body): (&[&str], &[&str], &[&str]) = (&[], &["path"], &["body"]);
    for (kind, default, status, loc, msg, error, retry) in [
        ("MISSING_AUTHENTICATION_TOKEN", "DEFAULT_4XX", 404, path, "Not found", "not_found", None),
        ("RESOURCE_NOT_FOUND", "DEFAULT_4XX", 404, path, "Not found", "not_found", None),
        ("INVALID_SIGNATURE", "DEFAULT_4XX", 404, path, "Not found", "not_found", None),
        ("ACCESS_DENIED", "DEFAULT_4XX", 403, nowhere, "Forbidden", "forbidden", None),
        ("WAF_FILTERED", "DEFAULT_4XX", 403, nowhere, "Forbidden", "forbidden", None),
        ("REQUEST_TOO_LARGE", "DEFAULT_4XX", 413, body, "Payload too large", "payload_too_large", None),
        ("THROTTLED", "DEFAULT_4XX", 429, nowhere, "Too many requests", "throttled", Some("'1'")),
        ("QUOTA_EXCEEDED", "DEFAULT_4XX", 429, nowhere, "Too many requests", "throttled", Some("'3600'")),
        ("INTEGRATION_FAILURE", "DEFAULT_5XX", 500, nowhere, "Internal server error", "internal_error", None),
        ("INTEGRATION_TIMEOUT", "DEFAULT_5XX", 500, nowhere, "Internal server error", "internal_error", None),
        ("API_CONFIGURATION_ERROR", "DEFAULT_5XX", 500, nowhere, "Internal server error", "internal_error", None),
    ] {
        let response = responses.get(kind).unwrap_or(&responses[default]);
        assert_eq!(response["StatusCode"], status, "{kind}");
        let answer: Value =
            serde_json::from_str(response["ResponseTemplates"]["application/json"].as_str().unwrap()).unwrap();
        assert_eq!(answer, json!({"detail": [{"loc": loc, "msg": msg, "type": error}]}), "{kind}");
        let headers = &response["ResponseParameters"]["Headers"];
        assert_eq!(headers["x-request-id"], "context.requestId", "{kind}");
        let origin = json!({"!If": ["HasCors", {"!Sub": "'${CorsAllowOrigin}'"}, {"!Ref": "AWS::NoValue"}]});
        assert_eq!(headers["Access-Control-Allow-Origin"], origin, "{kind}");
        let exposed = json!({"!If": ["HasCors", "'*'", {"!Ref": "AWS::NoValue"}]});
        assert_eq!(headers["Access-Control-Expose-Headers"], exposed, "{kind}");
        assert_eq!(headers["Retry-After"].as_str(), retry, "{kind}");
        for (name, value) in [
            ("strict-transport-security", "'max-age=31536000'"),
            ("x-content-type-options", "'nosniff'"),
            ("cache-control", "'no-store'"),
        ] {
            assert_eq!(headers[name], value, "{kind}: {name}");
        }
    }
}

/// The setting of the gateway for this method of this path, and the condition under which it is there.
fn setting(method: &str, path: &str) -> Option<(Option<String>, Value)> {
    let settings = api()["MethodSettings"].take();
    let mut settings = settings.as_array().unwrap().iter().map(|setting| match setting["!If"].as_array() {
        Some(branches) => (branches[0].as_str().map(str::to_owned), branches[1].clone()),
        None => (None, setting.clone()),
    });
    settings.find(|(_, setting)| setting["HttpMethod"] == method && setting["ResourcePath"] == path)
}

#[test]
fn requests_without_a_key_have_limits_of_their_own() {
    let paths = [
        ("GET", "/~1api~1v1~1docs", Some("HasDocuments")),
        ("GET", "/~1api~1v1~1openapi.json", Some("HasDocuments")),
        ("POST", "/~1api~1v1~1agency~1webhook~1payment~1{agency_id}", None),
    ];
    assert_eq!(keyless().count(), paths.len());
    let (_, mut wanted) = setting("*", "/*").unwrap();
    assert_eq!(wanted["ThrottlingRateLimit"], json!({"!Ref": "ThrottlingRate"}));
    for (method, path, condition) in paths {
        let (of, setting) = setting(method, path).unwrap_or_else(|| panic!("{path} has no setting"));
        assert_eq!(of.as_deref(), condition, "{path}");
        // All other settings are those of the stage, so no query is logged.
        (wanted["HttpMethod"], wanted["ResourcePath"]) = (method.into(), path.into());
        wanted["ThrottlingRateLimit"] = json!({"!Ref": "KeylessRate"});
        wanted["ThrottlingBurstLimit"] = json!({"!Ref": "KeylessBurst"});
        assert_eq!(setting, wanted, "{path}");
    }
    let defaults = &TEMPLATE["Parameters"];
    let default = |name: &str| defaults[name]["Default"].as_u64().unwrap();
    assert!(default("KeylessRate") < default("ThrottlingRate") && default("KeylessBurst") < default("ThrottlingBurst"));
}

/// The command of the page that sets the rate to 0 would otherwise leave the paths without a key.
#[test]
fn the_command_that_stops_all_traffic_names_every_limit() {
    let page = read("docs/OPERATIONS.md");
    let command = page.lines().find(|line| line.starts_with("aws apigateway update-stage ")).unwrap();
    let paths = keyless().map(|route| format!("{}/{}", limited_path(route), route.method));
    for path in paths.chain(["/*/*".to_owned()]) {
        for limit in ["rateLimit", "burstLimit"] {
            let operation = format!("'op=replace,path={path}/throttling/{limit},value=0'");
            assert!(command.contains(&operation), "{operation}");
        }
    }
}

#[test]
fn a_parameter_switches_the_documents_off() {
    let template = &*TEMPLATE;
    assert_eq!(template["Parameters"]["Documents"]["AllowedValues"], json!(["Enabled", "Disabled"]));
    assert_eq!(template["Conditions"]["HasDocuments"], json!({"!Equals": [{"!Ref": "Documents"}, "Enabled"]}));
    for route in routes::DOCUMENTS {
        let path = &api()["DefinitionBody"]["paths"][route.path]["!If"];
        assert_eq!((&path[0], &path[2]), (&json!("HasDocuments"), &json!({"!Ref": "AWS::NoValue"})), "{}", route.name);
        let function = &template["Resources"][format!("{}Function", camel_case(route.name))];
        assert_eq!(function["Condition"], "HasDocuments", "{}", route.name);
    }
}

#[test]
fn the_gateway_takes_tls_1_2_at_the_least() {
    let api = api();
    // The policy accepts TLS 1.2 and 1.3. CloudFormation requires `EndpointAccessMode` with such a policy.
    assert_eq!(api["SecurityPolicy"], "SecurityPolicy_TLS13_1_2_2021_06");
    assert_eq!(api["EndpointAccessMode"], "BASIC");
}

#[test]
fn the_gateway_passes_the_bytes_of_forms_unchanged() {
    // All other bodies are text. As base64 they would be a third longer.
    assert_eq!(api()["BinaryMediaTypes"], json!([FORM.replace('/', "~1")]));
}

#[test]
fn the_addresses_of_parameters_are_https_only() {
    for (parameter, may_be_empty) in [("ApiBaseUrl", true), ("PaymentApiBase", false)] {
        let parameter = &TEMPLATE["Parameters"][parameter];
        // CloudFormation matches the whole value.
        let pattern = format!("^(?:{})$", parameter["AllowedPattern"].as_str().unwrap());
        let schema = json!({"type": "string", "pattern": pattern});
        for (value, wanted) in [
            ("https://api.example.com", true),
            ("https://api.example.com/base", true),
            ("http://api.example.com", false),
            ("https://api.example.com/", false),
            ("api.example.com", false),
            ("", may_be_empty),
        ] {
            assert_eq!(jsonschema::is_valid(&schema, &json!(value)), wanted, "{value:?}");
        }
        assert!(jsonschema::is_valid(&schema, &parameter["Default"]));
    }
}

/// AWS WAF shows samples of requests. Both places of a key are covered there, and in every log of the firewall.
#[test]
fn the_firewall_limits_addresses_and_covers_keys() {
    let template = &*TEMPLATE;
    let off = json!({"!Not": [{"!Equals": [{"!Ref": "RequestsPerAddress"}, ""]}]});
    assert_eq!(template["Parameters"]["RequestsPerAddress"]["Default"], "");
    assert_eq!(template["Conditions"]["HasFirewall"], off);
    let firewall = &template["Resources"]["Firewall"];
    let association = &template["Resources"]["FirewallAssociation"];
    assert_eq!((&firewall["Condition"], &association["Condition"]), (&json!("HasFirewall"), &json!("HasFirewall")));
    let stage =
        json!({"!Sub": "arn:${AWS::Partition}:apigateway:${AWS::Region}::/restapis/${Api}/stages/${Api.Stage}"});
    let wanted = json!({"WebACLArn": {"!GetAtt": "Firewall.Arn"}, "ResourceArn": stage});
    assert_eq!(association["Properties"], wanted);
    let properties = &firewall["Properties"];
    let covered =
        |kind: &str, name: &str| json!({"Action": "SUBSTITUTION", "Field": {"FieldType": kind, "FieldKeys": [name]}});
    let keys = [covered("SINGLE_QUERY_ARGUMENT", "api_key"), covered("SINGLE_HEADER", "authorization")];
    assert_eq!(properties["DataProtectionConfig"]["DataProtections"], json!(keys));
    assert_eq!(properties["DefaultAction"], json!({"Allow": {}}));
    let rules = properties["Rules"].as_array().unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["Action"], json!({"Block": {}}));
    let rate = json!({"AggregateKeyType": "IP", "EvaluationWindowSec": 300, "Limit": {"!Ref": "RequestsPerAddress"}});
    assert_eq!(rules[0]["Statement"], json!({"RateBasedStatement": rate}));
    let pattern = template["Parameters"]["RequestsPerAddress"]["AllowedPattern"].as_str().unwrap().to_owned();
    let schema = json!({"type": "string", "pattern": format!("^(?:{pattern})$")});
    // AWS WAF takes no limit below 10.
    for (value, wanted) in [("", true), ("0", false), ("9", false), ("10", true), ("2000000000", false), ("1.5", false)]
    {
        assert_eq!(jsonschema::is_valid(&schema, &json!(value)), wanted, "{value:?}");
    }
}
