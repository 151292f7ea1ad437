//! Tests of the MCP server: in both revisions of the protocol every operation is a tool with the answers of the API.

use std::collections::BTreeSet;
use std::sync::mpsc;

use local::http::{Answer, Call};
use local::{Stack, functions};
use repository::read;
use serde_json::{Value, json};
use shared::mcp::message::VERSIONS;
use shared::request::http::HttpRequest;
use shared::request::route::{Access, Route};
use shared::routes::{self, MCP};
use shared::runtime::lambda::tracing::Level;
use tokio::sync::oneshot;

use crate::support::agents::{STATELESS, request, sent};
use crate::support::fixture::{
    ACME, ACME_READ_ONLY, GLOBEX, call, data, demo_id, failure, id, json, key_of, kind, portable, stack, valid_call,
};
use crate::support::generated::generated_between;
use crate::support::log::Log;
use crate::support::sweep::cases;

const HANDSHAKE: &str = VERSIONS[1];

/// The result of a request that succeeds.
async fn result(stack: &Stack, revision: &str, key: &str, method: &str, params: Value) -> Value {
    let answer = stack.answer(&request(revision, key, method, params)).await;
    let body = json(&answer);
    assert_eq!((answer.status, &body["id"], &body["jsonrpc"]), (200, &json!(1), &json!("2.0")), "{method}: {body}");
    assert_eq!(answer.headers["content-type"], "application/json");
    body["result"].clone()
}

/// The answer of a tool: whether it failed, and its JSON, which the answer holds twice.
async fn called(stack: &Stack, key: &str, tool: &str, arguments: Value) -> (bool, Value) {
    let params = json!({"name": tool, "arguments": arguments});
    let result = result(stack, STATELESS, key, "tools/call", params).await;
    assert_eq!((&result["content"][0]["type"], result["content"].as_array().unwrap().len()), (&json!("text"), 1));
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
    (result["isError"].as_bool().unwrap(), text)
}

/// The place and the type of each issue of a failure.
fn issues(failure: &(bool, Value)) -> Vec<String> {
    assert!(failure.0, "no failure: {}", failure.1);
    let issue = |issue: &Value| format!("{} {}", issue["loc"], issue["type"].as_str().unwrap());
    failure.1["detail"].as_array().unwrap().iter().map(issue).collect()
}

async fn tools(stack: &Stack, revision: &str, key: &str) -> Vec<Value> {
    result(stack, revision, key, "tools/list", json!({})).await["tools"].as_array().unwrap().clone()
}

/// The arguments that make the request `call` of `route`.
fn arguments(route: &Route, call: &Call) -> Value {
    let mut arguments = json!({});
    for (name, value) in route.match_path(&call.path).unwrap() {
        arguments["path"][name] = value.into();
    }
    let query = call.query.split('&').filter_map(|pair| pair.split_once('='));
    for (name, value) in query.filter(|(name, _)| *name != "api_key") {
        arguments["query"][name] = value.into();
    }
    if !call.body.is_empty() {
        arguments["body"] = serde_json::from_slice(&call.body).unwrap();
    }
    arguments
}

#[tokio::test]
async fn every_operation_is_a_tool_with_the_hints_of_its_route() {
    let stack = stack().await;
    let tools = tools(&stack, STATELESS, ACME).await;
    assert_eq!(tools, self::tools(&stack, HANDSHAKE, ACME).await);
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, routes::ALL.iter().map(|route| route.name).collect::<Vec<_>>());
    for (route, tool) in routes::ALL.iter().zip(&tools) {
        let (name, hints) = (route.name, &tool["annotations"]);
        assert!(name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{name}");
        assert!(!tool["title"].as_str().unwrap().is_empty() && !tool["description"].as_str().unwrap().is_empty());
        assert_eq!(hints["readOnlyHint"], !route.writes(), "{name}");
        assert_eq!(hints["idempotentHint"], route.method != "POST", "{name}");
        // These two may also change a record that exists.
        let changes = [routes::UPSERT_CONTACT, routes::CREATE_SUPPRESSION].contains(*route);
        let adds = route.success == 201 && !changes;
        assert_eq!(hints["destructiveHint"], route.writes() && !adds, "{name}");
    }
}

#[tokio::test]
async fn a_tool_schema_accepts_the_input_of_its_operation() {
    let stack = stack().await;
    let (document, mut examples): (Value, usize) = (serde_json::from_str(&read("openapi.json")).unwrap(), 0);
    for (route, tool) in routes::ALL.iter().zip(tools(&stack, STATELESS, ACME).await) {
        let (name, schema) = (route.name, &tool["inputSchema"]);
        assert!(!schema.to_string().contains("#/components/"), "{name}");
        let schema = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
        let valid = arguments(route, &valid_call(route, 'a', ACME));
        let takes = |arguments: &Value| {
            let wrong: Vec<_> = schema.iter_errors(arguments).map(|error| error.to_string()).collect();
            assert!(wrong.is_empty(), "{name}: {wrong:?}\n{arguments}");
        };
        takes(&valid);
        let operation = &document["paths"][route.path][route.method.to_lowercase()];
        let bodies = operation["requestBody"]["content"]["application/json"]["examples"].as_object();
        for body in bodies.into_iter().flat_map(|bodies| bodies.values()) {
            let mut with = valid.clone();
            with["body"] = body["value"].clone();
            takes(&with);
            examples += 1;
        }
        for parameter in operation["parameters"].as_array().unwrap() {
            let place = parameter["in"].as_str().unwrap();
            let names = &tool["inputSchema"]["properties"][place]["properties"];
            assert!(names.get(parameter["name"].as_str().unwrap().to_lowercase()).is_some(), "{name}: {parameter}");
        }
        let mut more = valid.clone();
        more["nothing"] = json!({});
        assert!(!schema.is_valid(&more), "{name}");
        if route.parameters().next().is_some() {
            assert!(!schema.is_valid(&json!({})), "{name}");
        }
    }
    assert!(examples > 20, "{examples}");
}

#[tokio::test]
async fn every_tool_gives_the_answer_of_its_operation() {
    for route in cases(routes::ALL) {
        let call = valid_call(route, 'a', ACME);
        let (by_itself, as_tool) = (stack().await, stack().await);
        let wanted = portable(&by_itself, &by_itself.answer(&call).await.body);
        let (failed, got) = called(&as_tool, key_of(&call), route.name, arguments(route, &call)).await;
        let got = portable(&as_tool, &got.to_string());
        let parsed = |body: &str| serde_json::from_str::<Value>(body).unwrap();
        assert_eq!((failed, parsed(&got)), (false, parsed(&wanted)), "{}", route.name);
    }
}

#[tokio::test]
async fn each_revision_has_its_own_opening_request() {
    let stack = stack().await;
    let found = result(&stack, STATELESS, ACME, "server/discover", json!({})).await;
    assert_eq!(found["supportedVersions"], json!([STATELESS, HANDSHAKE]));
    assert_eq!((&found["resultType"], &found["cacheScope"]), (&json!("complete"), &json!("private")));
    assert_eq!((&found["capabilities"], &found["ttlMs"]), (&json!({"tools": {}}), &json!(300_000)));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "assistants");
    let handshake = async |version: &str| {
        let params =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params});
        let answer = stack.answer(&sent(&[("authorization", &format!("Bearer {ACME}"))], message.to_string())).await;
        assert_eq!((answer.status, answer.headers.contains_key("mcp-session-id")), (200, false));
        json(&answer)
    };
    for version in [HANDSHAKE, "2024-11-05", "9999-01-01"] {
        let begun = handshake(version).await;
        assert_eq!((&begun["id"], &begun["result"]["protocolVersion"]), (&json!("a"), &json!(HANDSHAKE)), "{version}");
        assert_eq!(begun["result"]["serverInfo"]["name"], "assistants");
        assert_eq!(begun["result"]["instructions"], found["instructions"]);
    }
    let mut initialized = request(HANDSHAKE, ACME, "", json!({}));
    initialized.body = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string().into();
    let answer = stack.answer(&initialized).await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    assert_eq!(result(&stack, HANDSHAKE, ACME, "ping", json!({})).await, json!({}));
    let listed = result(&stack, HANDSHAKE, ACME, "tools/list", json!({})).await;
    assert_eq!(listed.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
}

#[tokio::test]
async fn a_read_only_key_sees_and_calls_only_reading_tools() {
    for revision in VERSIONS {
        let stack = stack().await;
        let shown = tools(&stack, revision, ACME_READ_ONLY).await;
        let shown: BTreeSet<_> = shown.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let reading = routes::ALL.iter().filter(|route| route.access == Access::Read).map(|route| route.name);
        assert_eq!(shown, reading.collect());
    }
    let stack = stack().await;
    let arguments = json!({"path": {"tag_id": demo_id('a', "tag_id")}});
    let refused = called(&stack, ACME_READ_ONLY, "delete-tag", arguments.clone()).await;
    let by_itself = stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME_READ_ONLY)).await;
    assert_eq!(refused, (true, json(&by_itself)));
    assert!(!called(&stack, ACME_READ_ONLY, "read-tag", arguments).await.0);
}

#[tokio::test]
async fn a_bad_key_gets_the_refusal_of_the_api() {
    let stack = stack().await;
    let refused = |answer: &Answer| (answer.status, answer.body.clone(), answer.headers["www-authenticate"].clone());
    for key in ["", "in-short", "in-demo-acme-admin-000000000000000000000000001"] {
        let wanted = refused(&stack.answer(&call("GET", "/api/v1/tag/list", key)).await);
        assert_eq!(wanted.0, 401);
        for (method, params) in [("server/discover", json!({})), ("tools/call", json!({"name": "list-tags"}))] {
            let request = request(STATELESS, key, method, params);
            assert_eq!(refused(&stack.answer(&request).await), wanted, "{method} {key}");
        }
    }
}

#[tokio::test]
async fn a_key_in_the_query_is_refused() {
    let stack = stack().await;
    let in_header = request(STATELESS, ACME, "server/discover", json!({}));
    let mut without = in_header.clone();
    without.headers.remove("authorization");
    for call in [in_header.clone(), without] {
        for key in [ACME, "in-bad"] {
            let answer = stack.answer(&Call { query: format!("api_key={key}"), ..call.clone() }).await;
            assert_eq!(failure(&answer), (401, vec![r#"["query","api_key"] api_key_in_query"#.to_owned()]), "{key}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
    assert_eq!(stack.answer(&Call { query: "api_key=".into(), ..in_header }).await.status, 200);
}

#[tokio::test]
async fn tools_do_not_find_records_of_other_organisations() {
    let stack = stack().await;
    for (tool, place) in [("read-tag", "tag_id"), ("delete-tag", "tag_id"), ("read-contact", "contact_id")] {
        let found = called(&stack, GLOBEX, tool, json!({"path": {place: demo_id('a', place)}})).await;
        assert_eq!(issues(&found), [format!(r#"["path","{place}"] not_found"#)], "{tool}");
    }
}

#[tokio::test]
async fn invalid_arguments_are_reported_with_their_place() {
    let stack = stack().await;
    let tag = demo_id('a', "tag_id");
    for (tool, arguments, wanted) in [
        ("read-tag", json!({}), vec![r#"["path","tag_id"] missing"#]),
        ("read-tag", json!({"path": {"tag_id": ""}}), vec![r#"["path","tag_id"] missing"#]),
        ("read-tag", json!({"path": {"tag_id": null}}), vec![r#"["path","tag_id"] missing"#]),
        ("read-tag", json!({"path": {"tag_id": ["x"]}}), vec![r#"["path","tag_id"] string_type"#]),
        ("read-tag", json!({"path": "x"}), vec![r#"["path"] dict_type"#, r#"["path","tag_id"] missing"#]),
        ("read-tag", json!({"path": {"tag_id": 7}}), vec![r#"["path","tag_id"] uuid_parsing"#]),
        ("read-tag", json!({"tag_id": tag}), vec![r#"["tag_id"] extra_forbidden"#, r#"["path","tag_id"] missing"#]),
        (
            "read-tag",
            json!({"path": {"tag_id": tag, "id": tag}, "body": {}, "query": {"size": 1}}),
            vec![r#"["body"] extra_forbidden"#, r#"["path","id"] extra_forbidden"#, r#"["query"] extra_forbidden"#],
        ),
        ("list-tags", json!({"query": {"sizes": 1}}), vec![r#"["query","sizes"] extra_forbidden"#]),
        ("list-tags", json!({"query": {"size": {"a": 1}}}), vec![r#"["query","size"] string_type"#]),
        ("list-tags", json!({"query": {"size": "x"}}), vec![r#"["query","size"] int_parsing"#]),
        ("create-tag", json!({}), vec![r#"["body"] missing"#]),
        ("create-tag", json!({"body": {"name": 7}}), vec![r#"["body","name"] string_type"#]),
        ("create-tag", json!({"body": [1]}), vec![r#"["body"] model_attributes_type"#]),
        (
            "create-tag",
            json!({"body": {"name": "x"}, "header": {"idempotency-key": "a\nb"}}),
            vec![r#"["header","idempotency-key"] string_pattern_mismatch"#],
        ),
        ("list-tags", json!({"header": {"idempotency-key": "a"}}), vec![r#"["header"] extra_forbidden"#]),
        ("list-contacts", json!({"query": {"email": "x".repeat(9000)}}), vec![r#"["query"] too_long"#]),
    ] {
        assert_eq!(issues(&called(&stack, ACME, tool, arguments.clone()).await), wanted, "{tool} {arguments}");
    }
}

/// Each of these would be the path of another operation, or of none.
#[tokio::test]
async fn an_argument_cannot_reach_another_operation() {
    let stack = stack().await;
    let (no_path, no_id) = (r#"["path"] not_found"#, r#"["path","tag_id"] uuid_parsing"#);
    for (value, wanted) in [
        ("list", no_path),
        (".", no_path),
        ("..", no_path),
        ("%2e%2e", no_id),
        ("../tag/list", no_id),
        ("list/", no_id),
        ("a/b", no_id),
        ("a?api_key=x", no_id),
        ("a#b", no_id),
        ("\\..", no_id),
        ("é", no_id),
        ("{tag_id}", no_id),
    ] {
        let found = called(&stack, ACME, "read-tag", json!({"path": {"tag_id": value}})).await;
        assert_eq!(issues(&found), [wanted], "{value}");
    }
    let braces = json!({"path": {"tag_id": format!("{{{}}}", demo_id('a', "tag_id"))}});
    assert!(!called(&stack, ACME, "read-tag", braces).await.0, "an id takes every form");
}

#[tokio::test]
async fn a_body_reaches_the_operation_unchanged() {
    let stack = stack().await;
    let assistant = demo_id('a', "assistant_id");
    let body = format!(r#"{{"assistant_id":"{assistant}","attributes":{{"big":123456789012345678901234567890}}}}"#);
    let text = format!(r#"{{"name":"open-conversation","arguments":{{"body":{body}}}}}"#);
    let request = request(HANDSHAKE, ACME, "tools/call", json!("ARGUMENTS"));
    let body = String::from_utf8(request.body.clone()).unwrap().replace("\"ARGUMENTS\"", &text);
    let answer = stack.answer(&Call { body: body.into(), ..request }).await;
    let number = "123456789012345678901234567890";
    assert_eq!((answer.status, answer.body.matches(number).count()), (200, 2), "{}", answer.body);
}

#[tokio::test]
async fn an_idempotency_key_reaches_the_operation() {
    let stack = stack().await;
    let make = async |key: &str| {
        let arguments = json!({"body": {"name": "Once"}, "header": {"idempotency-key": key}});
        called(&stack, ACME, "create-tag", arguments).await.1["data"]["id"].clone()
    };
    let first = make("a").await;
    assert!(first.is_string());
    assert_eq!(make("a").await, first);
    assert_ne!(make("b").await, first);
}

/// The status and the code of an answer that is an error.
fn error(answer: &Answer) -> (u16, i64) {
    let body = json(answer);
    assert_eq!(body["jsonrpc"], "2.0", "{body}");
    assert!(!body["error"]["message"].as_str().unwrap().is_empty() && body.get("result").is_none());
    (answer.status, body["error"]["code"].as_i64().unwrap())
}

#[tokio::test]
async fn an_invalid_message_is_refused() {
    let stack = stack().await;
    let headers = [("authorization", &*format!("Bearer {ACME}")), ("mcp-protocol-version", HANDSHAKE)];
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("{\"jsonrpc\": \"2.0\",}", -32700),
        ("nonsense", -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]"#, -32600),
        ("7", -32600),
        ("null", -32600),
        ("{}", -32600),
        (r#"{"id": 1, "method": "ping"}"#, -32600),
        (r#"{"jsonrpc": "1.0", "id": 1, "method": "ping"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": {}, "method": "ping"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": 7}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}"#, -32600),
    ] {
        assert_eq!(error(&stack.answer(&sent(&headers, body)).await), (400, code), "{body}");
    }
    assert_eq!(error(&stack.answer(&sent(&headers, b"\xff\xfe".to_vec())).await), (400, -32700));
    let long = json!({"jsonrpc": "2.0", "id": "x".repeat(1000), "method": "ping"}).to_string();
    assert_eq!(error(&stack.answer(&sent(&headers, long)).await), (400, -32600));
    let deep = format!(
        r#"{{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {{"a": {}{}}}}}"#,
        "[".repeat(9000),
        "]".repeat(9000)
    );
    // Deep parameters are valid JSON, and `ping` reads no parameter.
    let answer = stack.answer(&sent(&headers, deep)).await;
    assert_eq!((answer.status, &json(&answer)["result"]), (200, &json!({})), "{}", answer.body);
    let huge = stack.answer(&sent(&headers, vec![b' '; MCP.body_limit + 1])).await;
    assert_eq!((huge.status, &json(&huge)["detail"][0]["type"]), (413, &json!("payload_too_large")));
    assert!(routes::ALL.iter().all(|route| route.body_limit < MCP.body_limit));
}

#[tokio::test]
async fn each_revision_refuses_unknown_methods_and_wrong_headers() {
    let stack = stack().await;
    let call = json!({"name": "list-tags", "arguments": {}});
    for (revision, method, params, wanted) in [
        (STATELESS, "initialize", json!({}), (404, -32601)),
        (STATELESS, "ping", json!({}), (404, -32601)),
        (STATELESS, "subscriptions/listen", json!({}), (404, -32601)),
        (STATELESS, "x", json!({}), (404, -32601)),
        (HANDSHAKE, "server/discover", json!({}), (200, -32601)),
        (HANDSHAKE, "resources/list", json!({}), (200, -32601)),
        (STATELESS, "tools/list", json!({"cursor": "x"}), (200, -32602)),
        (HANDSHAKE, "tools/list", json!({"cursor": "x"}), (200, -32602)),
        (STATELESS, "tools/call", json!({"name": "x"}), (200, -32602)),
        (HANDSHAKE, "tools/call", json!({"name": "x".repeat(100_000)}), (200, -32602)),
        (HANDSHAKE, "tools/call", json!({}), (200, -32602)),
        (HANDSHAKE, "tools/call", json!({"name": 7}), (200, -32602)),
        (HANDSHAKE, "tools/call", json!({"name": "list-tags", "arguments": []}), (200, -32602)),
        ("2025-06-18", "tools/list", json!({}), (400, -32022)),
        ("x", "tools/list", json!({}), (400, -32022)),
    ] {
        let answer = stack.answer(&request(revision, ACME, method, params)).await;
        assert_eq!(error(&answer), wanted, "{revision} {method} {}", answer.body);
        assert_eq!(json(&answer)["id"], 1);
        if wanted.1 == -32022 {
            assert_eq!(json(&answer)["error"]["data"], json!({"supported": VERSIONS, "requested": revision}));
        }
    }
    // Each header is required and must agree with the message.
    for header in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        let good = request(STATELESS, ACME, "tools/call", call.clone());
        assert_eq!(stack.answer(&good).await.status, 200);
        let (mut without, mut other) = (good.clone(), good);
        without.headers.remove(header);
        other.headers.insert(header.to_owned(), HANDSHAKE.to_owned());
        assert_eq!(error(&stack.answer(&without).await), (400, -32020), "{header}");
        assert_eq!(error(&stack.answer(&other).await), (400, -32020), "{header}");
    }
    let mut encoded = request(STATELESS, ACME, "tools/call", call.clone());
    encoded.headers.insert("mcp-name".to_owned(), "=?base64?bGlzdC10YWdz?=".to_owned());
    assert_eq!(stack.answer(&encoded).await.status, 200);
    for missing in ["protocolVersion", "clientCapabilities"] {
        let mut request = request(STATELESS, ACME, "tools/call", call.clone());
        let mut body: Value = serde_json::from_slice(&request.body).unwrap();
        body["params"]["_meta"].as_object_mut().unwrap().remove(&format!("io.modelcontextprotocol/{missing}"));
        request.body = body.to_string().into();
        assert_eq!(error(&stack.answer(&request).await), (400, -32602), "{missing}");
    }
    let mut unnamed = request(HANDSHAKE, ACME, "tools/list", json!({}));
    unnamed.headers.remove("mcp-protocol-version");
    assert_eq!(error(&stack.answer(&unnamed).await), (400, -32020));
}

#[tokio::test]
async fn methods_other_than_post_answer_405() {
    let stack = stack().await;
    for method in ["GET", "DELETE", "PUT"] {
        for path in [MCP.path.to_owned(), format!("{}/", MCP.path)] {
            let answer = stack.answer(&call(method, &path, ACME)).await;
            assert_eq!((answer.status, answer.headers["allow"].as_str()), (405, "POST"), "{method}");
        }
    }
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let stack = stack().await;
    for (origin, status) in [(stack.url.as_str(), 200), ("https://other.example", 403), ("null", 403)] {
        let mut request = request(STATELESS, ACME, "server/discover", json!({}));
        request.headers.insert("origin".to_owned(), origin.to_owned());
        assert_eq!(stack.answer(&request).await.status, status, "{origin}");
    }
}

#[tokio::test]
async fn a_tool_fails_when_the_api_does_not_answer() {
    let stack = stack().await;
    let mut service = stack.gateway.service.in_another_process();
    service.config.api_base_url = Some("http://127.0.0.1:1".to_owned());
    let call = request(HANDSHAKE, ACME, "tools/call", json!({"name": "list-tags"}));
    let event = serde_json::from_value(stack.gateway.event(&call, "r")).unwrap();
    let answer = functions::SERVERS[0].answer(&service, &HttpRequest::from_event(event, "")).await;
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((answer.status_code, &body["result"]["isError"]), (200, &json!(true)), "{body}");
    assert_eq!(body["result"]["structuredContent"]["detail"][0]["type"], "unavailable");
}

#[tokio::test]
async fn a_tool_refuses_an_answer_too_large_for_lambda() {
    let stack = stack().await;
    let opened = stack.answer(&valid_call(&routes::OPEN_CONVERSATION, 'a', ACME)).await;
    let path = json!({"conversation_id": data(&opened)["id"]});
    for _ in 0..20 {
        let body = json!({"sender_type": "user", "text": "\"".repeat(32_000)});
        let said = called(&stack, ACME, "add-message", json!({"path": path, "body": body})).await;
        assert!(!said.0, "{}", said.1);
    }
    let read = async |size: u32| {
        let params = json!({"name": "read-conversation", "arguments": {"path": path, "query": {"size": size}}});
        let answer = stack.answer(&request(STATELESS, ACME, "tools/call", params)).await;
        // The answer as the function prints it.
        assert!(serde_json::to_string(&answer.body).unwrap().len() < 6_291_556 - 4096, "{size}");
        json(&answer)["result"].clone()
    };
    assert_eq!(read(2).await["isError"], false);
    let refused = read(20).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(refused["structuredContent"]["detail"][0]["type"], "answer_too_large");
}

#[tokio::test]
async fn the_page_shows_a_call_and_its_answer() {
    let stack = stack().await;
    let params = json!({"name": "create-tag", "arguments": {"body": {"name": "From a tool"}}});
    let request = request(STATELESS, ACME, "tools/call", params);
    let answer = json(&stack.answer(&request).await);
    let headers: String =
        request.headers.iter().map(|(name, value)| format!("  --header '{name}: {value}' \\\n")).collect();
    let pretty = |json: &Value| serde_json::to_string_pretty(json).unwrap();
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let call = format!(
        "```sh\ncurl 'http://127.0.0.1:3000{}' \\\n{headers}  --data '{}'\n```\n\n```json\n{}\n```\n",
        MCP.path,
        pretty(&body),
        pretty(&answer)
    );
    generated_between(
        "docs/MCP.md",
        ("<!-- call -->\n", "<!-- /call -->"),
        &call.replace(&stack.url, "http://127.0.0.1:3000"),
    );
}

/// Starts a stack in a thread of its own. Returns its address. It runs until the sender is dropped.
fn elsewhere() -> (String, oneshot::Sender<()>) {
    let ((started, url), (stop, stopped)) = (mpsc::channel(), oneshot::channel());
    let serve = async move {
        let stack = stack().await;
        started.send(stack.url.clone()).unwrap();
        let _ = stopped.await;
    };
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::spawn(move || runtime().block_on(serve));
    (url.recv().unwrap(), stop)
}

/// The operations run in another thread, so this log holds only the lines of the MCP function.
#[tokio::test]
async fn the_log_names_the_tool_but_no_key_or_argument() {
    let (log, stack) = (Log::default(), stack().await);
    let (api, _serving) = elsewhere();
    let mut service = stack.gateway.service.in_another_process();
    service.config.api_base_url = Some(api);
    let nobodys = id('a', kind::TAG, 9999);
    let guard = log.listen(Level::TRACE);
    for (tool, arguments, failed) in [
        ("create-tag", json!({"body": {"name": "Confidential"}, "header": {"idempotency-key": "Unspoken"}}), false),
        ("list-contacts", json!({"query": {"email": "somebody@example.com"}}), false),
        ("read-tag", json!({"path": {"tag_id": nobodys}}), true),
    ] {
        let call = request(STATELESS, ACME, "tools/call", json!({"name": tool, "arguments": arguments}));
        let event = serde_json::from_value(stack.gateway.event(&call, "r")).unwrap();
        let answer = functions::SERVERS[0].answer(&service, &HttpRequest::from_event(event, "")).await;
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(body["result"]["isError"], failed, "{body}");
    }
    drop(guard);
    let text = log.text();
    assert!(text.contains(r#"operation="mcp" tool="create-tag" status=200"#), "{text}");
    for hidden in [ACME, "Confidential", "Unspoken", "somebody", &nobodys] {
        let line = text.lines().find(|line| line.contains(hidden));
        assert_eq!(line, None, "{hidden} is in the log");
    }
}
