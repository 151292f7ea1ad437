//! Tests of the samples in the document: each operation has three, and each command of `curl` is the recorded request.
//! `.ci/clients` compiles the others.

use local::openapi::samples::SAMPLES;
use repository::read;
use serde_json::Value;
use shared::request::route::Route;
use shared::routes;

use crate::support::commands::run;
use crate::support::documented::DOCUMENT;
use crate::support::fixture::{ACME, stack};
use crate::support::sweep::cases;

/// The operation of `route` in the document.
fn documented(route: &Route) -> &'static Value {
    &DOCUMENT["paths"][route.path][route.method.to_lowercase()]
}

/// The sample of `route` with this label.
fn sample<'a>(route: &Route, label: &str) -> &'a str {
    let samples = documented(route)[SAMPLES].as_array().unwrap_or_else(|| panic!("{} has no samples", route.name));
    samples.iter().find(|one| one["label"] == label).unwrap()["source"].as_str().unwrap()
}

#[test]
fn every_operation_with_a_key_has_three_samples() {
    for route in routes::ALL {
        let samples = documented(route)[SAMPLES].as_array().unwrap_or_else(|| panic!("{} has no samples", route.name));
        let labels: Vec<&str> = samples.iter().map(|one| one["label"].as_str().unwrap()).collect();
        assert_eq!(labels, ["curl", "TypeScript", "Python"], "{}", route.name);
        // The key stands in no sample: whoever copies one adds the own key.
        assert!(samples.iter().all(|one| !one["source"].as_str().unwrap().contains(ACME)), "{}", route.name);
    }
    assert!(routes::SIGNED.iter().all(|route| documented(route)[SAMPLES].is_null()));
}

#[test]
fn a_sample_reads_like_code_of_its_language() {
    assert_eq!(
        sample(&routes::CREATE_TAG, "curl"),
        "curl \"$API/api/v1/tag\" -H \"authorization: Bearer $KEY\" \\\n  --json '{\"color_code\": \"#2980b9\", \"name\": \"Returning\"}'"
    );
    assert_eq!(
        sample(&routes::CREATE_TAG, "TypeScript"),
        "import { Client } from \"assistants-client\";\n\n\
         const { ASSISTANTS_URL: url = \"\", ASSISTANTS_API_KEY: key = \"\" } = process.env;\n\
         const client = new Client({ url, key });\n\
         console.log(await client.tags.create({ color_code: \"#2980b9\", name: \"Returning\" }));"
    );
    assert_eq!(
        sample(&routes::READ_ANALYTICS, "Python"),
        "import os\n\nfrom assistants_client import Client\nfrom assistants_client.models import Grouping, Metric\n\n\
         with Client(os.environ[\"ASSISTANTS_URL\"], os.environ[\"ASSISTANTS_API_KEY\"]) as client:\n    \
         print(client.analytics.read(group_by=Grouping(\"assistant\"), metric=Metric(\"conversations_opened\")))"
    );
    assert!(
        sample(&routes::LIST_TAGS, "TypeScript")
            .ends_with("for await (const one of client.tags.list()) console.log(one);")
    );
    assert!(sample(&routes::LIST_TAGS, "Python").ends_with("    for one in client.tags.list():\n        print(one)"));
    let path = sample(&routes::READ_TAG, "Python");
    assert!(path.contains("from uuid import UUID\n") && path.contains("client.tags.read(UUID(\"01900000-"), "{path}");
}

/// The command prints the status of its answer, and nothing else.
const CURL: &str = "curl() { command curl --silent --output /dev/null --write-out '%{http_code}' \"$@\"; }";

#[tokio::test]
async fn the_commands_have_the_recorded_statuses() {
    let unchanged = stack().await;
    for route in cases(routes::ALL) {
        let own;
        let stack = if route.writes() {
            own = stack().await;
            &own
        } else {
            &unchanged
        };
        let commands = [CURL.to_owned(), sample(route, "curl").to_owned()];
        let output = run(&commands, &[("API", &stack.url), ("KEY", ACME)]).await;
        let recorded = read(&format!("local/tests/answers/{}.txt", route.name));
        // The recorded request has the key of a user; the key of the test names no user.
        let wanted = if **route == routes::READ_OWN_USER { "404" } else { recorded.lines().next().unwrap() };
        assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted, "{}", route.name);
    }
}
