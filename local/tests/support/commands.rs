//! Runs the commands of a page of `docs/`, and compares what they print with the page.

use std::process::{Command, Output};

use regex_automata::meta::Regex;
use serde_json::Value;

/// The code blocks of `page` in this language.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1).map(|block| block.split("```").next().unwrap());
    blocks.map(str::to_owned).collect()
}

/// The JSON values in `text`, with the same id in place of each one.
fn without_ids(text: &str) -> Vec<Value> {
    let ids = Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap();
    let mut found = text.to_owned();
    for place in ids.find_iter(text) {
        found.replace_range(place.range(), &"0".repeat(place.len()));
    }
    serde_json::Deserializer::from_str(&found).into_iter().collect::<Result<_, _>>().unwrap()
}

/// Runs these commands in one shell with these variables. The stack answers on the thread of the test.
pub async fn run(commands: &[String], variables: &[(&str, &str)]) -> Output {
    let script = format!("set -euo pipefail\n{}", commands.join("\n"));
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).envs(variables.iter().copied());
    tokio::task::spawn_blocking(move || shell.output()).await.unwrap().unwrap()
}

/// Compares what the commands of `page` have printed with its answers.
pub fn compare(page: &str, output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(without_ids(&printed), without_ids(&blocks(page, "json").join("\n")), "{printed}");
}
