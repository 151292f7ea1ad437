//! Tests of `docs/guides`: the commands of each guide have its answers, and the document has each guide.

use std::time::Duration;

use local::openapi::guides::{FOLDER, GUIDES, guide};
use repository::{names_in, root};

use crate::support::commands::{blocks, compare, run};
use crate::support::documented::DOCUMENT;
use crate::support::sending::Setup;

/// Longer than a guide waits before it asks again, so that it also meets what has not happened yet.
const LATE: Duration = Duration::from_millis(1200);

/// Runs the commands of a guide while minutes pass, as an organisation without records.
async fn follow(name: &str) {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let (first, page) = (guide(&root(), GUIDES[0]), guide(&root(), name));
    let commands = [blocks(&first, "sh"), blocks(&page, "sh")].concat();
    let receiver = format!("{}/events", setup.receiver.url);
    let variables = [("API", setup.stack.url.as_str()), ("KEY", org.key.as_str()), ("RECEIVER", receiver.as_str())];
    let ended = run(&commands, &variables);
    tokio::pin!(ended);
    let output = loop {
        tokio::select! {
            output = &mut ended => break output,
            () = tokio::time::sleep(LATE) => setup.minutes(1).await,
        }
    };
    compare(&page, &output);
}

#[tokio::test]
async fn the_first_assistant_talks() {
    follow("first-assistant").await;
}

#[tokio::test]
async fn a_campaign_is_sent() {
    follow("send-a-campaign").await;
}

#[tokio::test]
async fn events_are_received() {
    follow("receive-events").await;
}

#[tokio::test]
async fn contacts_are_imported() {
    follow("import-contacts").await;
}

#[tokio::test]
async fn a_runtime_is_connected() {
    follow("connect-a-runtime").await;
}

#[test]
fn each_guide_is_short_and_a_section_of_the_document() {
    let files: Vec<String> = names_in(FOLDER).into_iter().collect();
    let mut known = GUIDES.map(|name| format!("{name}.md"));
    known.sort();
    assert_eq!(files, known);
    let description = DOCUMENT["info"]["description"].as_str().unwrap();
    for name in GUIDES {
        let page = guide(&root(), name);
        assert!(description.contains(&page), "the document does not have {name}");
        assert!(page.lines().count() <= 60, "{name} is too long");
        let headings = page.lines().filter(|line| line.starts_with('#'));
        assert_eq!(headings.count(), 1, "{name} is one section");
        // The page of the API has no other files.
        assert!(page.split("](").skip(1).all(|link| link.starts_with("https://")), "{name} links to a file");
    }
}
