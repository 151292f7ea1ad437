//! Tests that each `curl` command of the pages for callers is a request that the document of the API has, and that the page of
//! kept data has the times of the code. The pages whose commands a test runs are not among them.

use repository::read;
use serde_json::Value;
use shared::bucket::kept::KEPT_DAYS;
use shared::records::analytics::counters::COUNTED_DAYS;
use shared::records::{delivery, event};
use shared::request::claim;
use shared::routes;

use crate::support::documented::{DOCUMENT, compare, escaped};

const PAGES: [&str; 5] = ["README.md", "docs/API.md", "docs/COMPATIBILITY.md", "docs/PRIVACY.md", "docs/WEBHOOKS.md"];

/// Options of `curl` with a value that is no part of the request's body.
const WITH_VALUE: [&str; 2] = ["-H", "--form"];

/// The commands of a page, each as its words.
fn commands(page: &str) -> Vec<Vec<String>> {
    let text = read(page);
    let blocks = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.flat_map(lines).collect()
}

/// The words of each command, as a shell reads them. Variables stay as they are written.
fn lines(block: &str) -> Vec<Vec<String>> {
    let (mut found, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let (mut quote, mut letters) = (None, block.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if quote != Some('\'') => word.extend(letters.next().filter(|next| *next != '\n')),
            '\'' | '"' if quote.is_none() => quote = Some(letter),
            _ if quote == Some(letter) => quote = None,
            ' ' | '\n' if quote.is_none() => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                if letter == '\n' {
                    found.push(std::mem::take(&mut words));
                }
            }
            _ => word.push(letter),
        }
    }
    found
}

/// `text` with a value in place of each variable: an address for a server, and an id for anything else.
fn filled(text: &str) -> String {
    let mut parts = text.split('$');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let end = part.find(|letter: char| !letter.is_ascii_uppercase() && letter != '_').unwrap_or(part.len());
        let value =
            if &part[..end] == "RECEIVER" { "https://example.com" } else { "01900000-0000-7000-8000-000000000000" };
        text + value + &part[end..]
    })
}

/// What a `curl` command sends: its method, its address after the host, and its body.
fn request(words: &[String]) -> Option<(String, String, Option<Value>)> {
    let mut words = words.iter();
    words.next().filter(|program| *program == "curl")?;
    let (mut method, mut address, mut body, mut form) = (None, None, None, false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-X" => method = words.next().cloned(),
            "--json" => {
                let text = filled(words.next().unwrap());
                body = Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")));
            }
            option if WITH_VALUE.contains(&option) => {
                words.next();
                form |= option == "--form";
            }
            _ => address = word.find("/api/v1/").map(|at| filled(&word[at..])).or(address),
        }
    }
    let method = method.unwrap_or_else(|| if body.is_some() || form { "POST" } else { "GET" }.to_owned());
    Some((method, address?, body))
}

#[test]
fn each_command_of_the_pages_is_a_request_of_the_document() {
    for page in PAGES {
        let commands = commands(page);
        let requests: Vec<_> = commands.iter().filter_map(|words| request(words)).collect();
        assert!(!requests.is_empty(), "{page} has no command");
        for (method, address, body) in requests {
            let case = format!("{page}: {method} {address}");
            let (path, query) = address.split_once('?').unwrap_or((&address, ""));
            let route = routes::find(&method, path).unwrap_or_else(|| panic!("{case}: no operation answers"));
            let pointer = format!("/paths/{}/{}", escaped(route.path), method.to_lowercase());
            let operation = DOCUMENT.pointer(&pointer).unwrap_or_else(|| panic!("{case}: not in the document"));
            for pair in query.split('&').filter(|pair| !pair.is_empty()) {
                let name = pair.split('=').next().unwrap();
                let mut known = operation["parameters"].as_array().unwrap().iter();
                assert!(known.any(|parameter| parameter["name"] == name), "{case}: no parameter {name}");
            }
            if let Some(body) = body {
                compare(&format!("{pointer}/requestBody/content/application~1json/schema"), &body, &case);
            }
        }
    }
}

#[test]
fn the_page_of_kept_data_has_the_times_of_the_code() {
    let (page, template, settings) = (read("docs/PRIVACY.md"), read("template.yaml"), read("samconfig.toml"));
    let after = |text: &str, begin: &str| text.split(begin).nth(1).unwrap().to_owned();
    let number =
        |text: &str| text.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty()).unwrap().to_owned();
    let default = |parameter: &str| number(&after(&after(&template, &format!("\n  {parameter}:")), "Default:"));
    let logs = (default("LogRetentionInDays"), number(&after(&settings, "LogRetentionInDays=")));
    let rows = [
        ("the answer to a request with an `Idempotency-Key`", format!("{} hours", claim::KEPT / 3600)),
        ("events of the ", format!("{} days", event::EVENT_DAYS)),
        ("deliveries", format!("{} days after their end", delivery::KEPT / 86_400)),
        ("counts over time", format!("{COUNTED_DAYS} days")),
        ("changes that the service could not handle", format!("{KEPT_DAYS} days")),
        ("the audit list", format!("{} days (`AuditDays`)", default("AuditDays"))),
        ("logs of functions", format!("{} days, {} in production (`LogRetentionInDays`)", logs.0, logs.1)),
    ];
    for (data, kept) in rows {
        let row =
            page.lines().find(|line| line.starts_with(&format!("| {data}"))).unwrap_or_else(|| panic!("no {data}"));
        assert!(row.ends_with(&format!("| {kept} |")), "{kept}: {row}");
    }
}
