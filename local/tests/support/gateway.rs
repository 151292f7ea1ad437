//! Writes the gateway's parts of `template.yaml`: its own answers, its limits, and the functions that it may not invoke.

use std::fmt::Write as _;

use repository::camel_case;
use repository::functions::Function;
use serde_json::json;
use shared::request::http::ALWAYS;
use shared::request::route::Route;
use shared::routes;

/// The condition under which a route is deployed, if a parameter switches it on or off.
pub fn condition(route: &Route) -> Option<&'static str> {
    if *route == routes::MCP {
        return Some("HasMcp");
    }
    routes::DOCUMENTS.contains(&route).then_some("HasDocuments")
}

/// An answer of the gateway itself, in the form of the functions' failures.
struct OwnAnswer {
    kind: &'static str,
    /// When the gateway gives it.
    when: &'static str,
    status: u16,
    loc: &'static [&'static str],
    msg: &'static str,
    error: &'static str,
    /// After how many seconds the caller may try again.
    retry: Option<u32>,
}

const NOT_FOUND: OwnAnswer = OwnAnswer {
    kind: "MISSING_AUTHENTICATION_TOKEN",
    when: "An unknown path, and a known one with another method.",
    status: 404,
    loc: &["path"],
    msg: "Not found",
    error: "not_found",
    retry: None,
};
const FORBIDDEN: OwnAnswer = OwnAnswer {
    kind: "ACCESS_DENIED",
    when: "A resource policy, if an operator adds one.",
    status: 403,
    loc: &[],
    msg: "Forbidden",
    error: "forbidden",
    retry: None,
};
const THROTTLED: OwnAnswer = OwnAnswer {
    kind: "THROTTLED",
    when: "Above the limits of the stage or of a path.",
    status: 429,
    loc: &[],
    msg: "Too many requests",
    error: "throttled",
    retry: Some(1),
};
const FAILED: OwnAnswer = OwnAnswer {
    kind: "INTEGRATION_FAILURE",
    when: "A function crashed, gave an invalid answer (502 by default) or could not be reached.",
    status: 500,
    loc: &[],
    msg: "Internal server error",
    error: "internal_error",
    retry: None,
};

const ANSWERS: &[OwnAnswer] = &[
    NOT_FOUND,
    OwnAnswer {
        kind: "DEFAULT_4XX",
        when: "Every other 4xx. No method requires authorization, so this is an unknown path, too, with an Authorization header that the \
               gateway tries to read as an AWS signature.",
        ..NOT_FOUND
    },
    FORBIDDEN,
    OwnAnswer { kind: "WAF_FILTERED", when: "The firewall.", ..FORBIDDEN },
    OwnAnswer {
        kind: "REQUEST_TOO_LARGE",
        when: "Above the gateway's own limit of 10 MB.",
        status: 413,
        loc: &["body"],
        msg: "Payload too large",
        error: "payload_too_large",
        retry: None,
    },
    THROTTLED,
    OwnAnswer {
        kind: "QUOTA_EXCEEDED",
        when: "Above a usage plan, if an operator adds one.",
        retry: Some(3600),
        ..THROTTLED
    },
    FAILED,
    OwnAnswer {
        kind: "DEFAULT_5XX",
        when: "Every other 5xx, such as a function that was too slow (504 by default).",
        ..FAILED
    },
];

/// The gateway's own answers, for the template.
pub fn answers() -> String {
    let mut text = String::new();
    for OwnAnswer { kind, when, status, loc, msg, error, retry } in ANSWERS {
        let body = json!({"detail": [{"loc": loc, "msg": msg, "type": error}]});
        write!(
            text,
            "        # {when}\n        {kind}:\n          StatusCode: {status}\n          ResponseTemplates: {{application/json: '{body}'}}\n          \
             ResponseParameters:\n            Headers:\n              x-request-id: context.requestId\n"
        )
        .unwrap();
        // The gateway takes a text in quotes as the value itself.
        for (name, value) in ALWAYS {
            writeln!(text, "              {name}: \"'{value}'\"").unwrap();
        }
        let of_cors = |value: &str| format!("!If [HasCors, {value}, !Ref AWS::NoValue]");
        let origin = of_cors("!Sub \"'${CorsAllowOrigin}'\"");
        writeln!(text, "              Access-Control-Allow-Origin: {origin}").unwrap();
        writeln!(text, "              Access-Control-Expose-Headers: {}", of_cors("\"'*'\"")).unwrap();
        if let Some(seconds) = retry {
            writeln!(text, "              Retry-After: \"'{seconds}'\"").unwrap();
        }
    }
    text
}

/// The routes that answer without a key.
pub fn keyless() -> impl Iterator<Item = &'static Route> {
    routes::SIGNED.iter().chain(routes::DOCUMENTS).copied()
}

/// The path of a route as a limit of the gateway names it.
pub fn limited_path(route: &Route) -> String {
    format!("/{}", route.path.trim_end_matches('/').replace('/', "~1"))
}

/// The limits of the routes without a key, for the template. A setting of a method replaces all settings of the stage.
pub fn limits() -> String {
    let limit = |route: &Route| {
        let setting = format!(
            "{{HttpMethod: {}, ResourcePath: '{}', ThrottlingRateLimit: !Ref KeylessRate, ThrottlingBurstLimit: !Ref KeylessBurst, \
             LoggingLevel: 'OFF', DataTraceEnabled: false, MetricsEnabled: false}}",
            route.method,
            limited_path(route)
        );
        match condition(route) {
            None => format!("        - {setting}\n"),
            Some(wanted) => {
                format!("        - !If\n          - {wanted}\n          - {setting}\n          - !Ref AWS::NoValue\n")
            }
        }
    };
    keyless().map(limit).collect()
}

/// The part of the gateway's role that keeps it from the functions without a route, for the template.
pub fn denied(functions: &[Function]) -> String {
    let without = functions.iter().filter(|function| routes::every().all(|route| route.name != function.name));
    // The name of a version follows the name of its function.
    let arn =
        |function: &Function| format!("                  - !Sub ${{{}Function.Arn}}*\n", camel_case(&function.name));
    let arns: String = without.map(arn).collect();
    format!(
        "              - Effect: Deny\n                Action: lambda:InvokeFunction\n                Resource:\n{arns}"
    )
}
