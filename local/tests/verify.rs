//! Tests of the examples in docs/WEBHOOKS.md that verify events: each accepts real events and refuses forged ones.

use std::io::Write as _;
use std::process::{Command, Stdio};

use local::Settings;
use local::receiver::Received;
use repository::root;
use serde_json::{Value, json};
use shared::values::time::Clock;
use standardwebhooks::Webhook;

use crate::support::fixture::scratch;
use crate::support::sending::{Setup, id_of};

/// For each language, its interpreter and the code that calls the example with secret, id, timestamp and signatures,
/// and with the body on standard input. The examples need only the standard library of their language.
const LANGUAGES: [(&str, &str, &str); 3] = [
    ("python", "python3", include_str!("verify/call.py")),
    ("js", "node", include_str!("verify/call.js")),
    ("sh", "sh", include_str!("verify/call.sh")),
];

/// A request, and the secret it is verified with.
#[derive(Clone)]
struct Case {
    secret: String,
    id: String,
    timestamp: i64,
    signatures: String,
    body: Vec<u8>,
}

impl Case {
    fn of(request: &Received, secret: &Value) -> Self {
        Self {
            secret: secret.as_str().unwrap().to_owned(),
            id: request.headers["webhook-id"].clone(),
            timestamp: request.headers["webhook-timestamp"].parse().unwrap(),
            signatures: request.headers["webhook-signature"].clone(),
            body: request.body.clone(),
        }
    }

    /// The same event, signed with the secret so many seconds later.
    fn signed_after(&self, seconds: i64) -> Self {
        let timestamp = self.timestamp + seconds;
        let signatures = Webhook::new(&self.secret).unwrap().sign(&self.id, timestamp, &self.body).unwrap();
        Self { timestamp, signatures, ..self.clone() }
    }
}

/// The page's block of code in `language`.
fn example(language: &str) -> String {
    let page = std::fs::read_to_string(root().join("docs/WEBHOOKS.md")).unwrap();
    let block = page.split(&format!("\n```{language}\n")).nth(1).unwrap_or_else(|| panic!("no example in {language}"));
    block.split("```").next().unwrap().to_owned()
}

/// What `interpreter` says of the case: `accepted` or `refused`.
fn verdict(interpreter: &str, script: &std::path::Path, case: &Case) -> String {
    let mut command = Command::new(interpreter);
    command.arg(script).args([&case.secret, &case.id, &case.timestamp.to_string(), &case.signatures]);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut command = started.unwrap_or_else(|error| {
        panic!("{interpreter}, which runs an example of docs/WEBHOOKS.md, is missing: {error}")
    });
    // An example that refuses the headers does not read the body.
    let _ = command.stdin.take().unwrap().write_all(&case.body);
    let output = command.wait_with_output().unwrap();
    assert!(output.status.success(), "{interpreter}: {}", output.status);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn the_examples_of_the_page_accept_only_genuine_events() {
    let setup = Setup::with(|settings| Settings { clock: Clock::System, ..settings }).await;
    let org = setup.org().await;
    let webhook = setup.webhook(&org, "/hook").await;
    let assistant = setup.assistant(&org, &webhook).await;
    let next_request = async || {
        let conversation = setup.open(&org, &assistant).await;
        let words = json!({"sender_type": "user", "text": "Grüße 👋 \u{2028}\\"});
        setup.post(&org, &format!("/api/v1/conversation/{}/message", id_of(&conversation)), words).await;
        setup.close(&org, &conversation).await;
        setup.settle().await;
        setup.receiver.received("/hook").pop().unwrap()
    };
    let once = next_request().await;
    let rotated =
        setup.post(&org, &format!("/api/v1/outbound_webhook/{}/rotate_secret", id_of(&webhook)), Value::Null).await;
    let twice = next_request().await;
    let stranger = setup.webhook(&org, "/other").await;

    let ours = Case::of(&once, &webhook["secret"]);
    let both = Case::of(&twice, &webhook["secret"]);
    assert_eq!(both.signatures.split(' ').count(), 2);
    let other_body = [&ours.body[..ours.body.len() - 1], b" }"].concat();
    let cases = [
        ("as it came", ours.clone(), true),
        ("the old secret", both.clone(), true),
        ("the new secret", Case::of(&twice, &rotated["secret"]), true),
        (
            "another version beside ours",
            Case { signatures: format!("v1a,AAAA {}", ours.signatures), ..ours.clone() },
            true,
        ),
        ("a minute late", ours.signed_after(-60), true),
        ("another body", Case { body: other_body, ..ours.clone() }, false),
        ("no body", Case { body: vec![], ..ours.clone() }, false),
        ("another id", Case { id: both.id.clone(), ..ours.clone() }, false),
        ("another time", Case { timestamp: ours.timestamp + 1, ..ours.clone() }, false),
        ("another secret", Case { secret: stranger["secret"].as_str().unwrap().to_owned(), ..ours.clone() }, false),
        ("the new secret too early", Case::of(&once, &rotated["secret"]), false),
        ("no signature", Case { signatures: String::new(), ..ours.clone() }, false),
        ("a part of it", Case { signatures: ours.signatures[..20].to_owned(), ..ours.clone() }, false),
        ("without a version", Case { signatures: ours.signatures[3..].to_owned(), ..ours.clone() }, false),
        ("recorded", ours.signed_after(-600), false),
        ("from the future", ours.signed_after(600), false),
    ];
    std::thread::scope(|scope| {
        for (language, interpreter, call) in LANGUAGES {
            let cases = &cases;
            scope.spawn(move || {
                let script = scratch(&format!("verify.{language}"));
                std::fs::write(&script, example(language) + call).unwrap();
                for (what, case, accepted) in cases {
                    let wanted = if *accepted { "accepted" } else { "refused" };
                    assert_eq!(verdict(interpreter, &script, case), wanted, "{language}: {what}");
                }
            });
        }
    });
}
