//! A journey through the whole API, over HTTP, by an organisation that has nothing but a key: from its first record to the deletion of its
//! last one. `docs/JOURNEY.md` is what it asks and is answered; `UPDATE=1 cargo test` writes it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use local::gateway::Call;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use shared::request::context::Clock;

use crate::contract::updating;
use crate::fixture::{everything, portable, root, send};
use crate::sending::{Org, World};

/// How long a request that was sent is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

struct Journey {
    world: World,
    org: Org,
    page: String,
    /// What was answered and is used later: the name of its shell variable, and its value.
    variables: BTreeMap<&'static str, String>,
}

impl Journey {
    async fn begin() -> Self {
        // Signed addresses are good for fifteen minutes of the real time.
        let world = World::with(|settings| local::Settings { clock: Clock::at(Clock::System.now()), ..settings }).await;
        let org = world.org().await;
        let variables = BTreeMap::from([("RECEIVER", world.receiver.url.clone())]);
        Self { world, org, page: String::new(), variables }
    }

    fn write(&mut self, text: &str) {
        writeln!(self.page, "{text}\n").unwrap();
    }

    /// `text` with the values of its variables.
    fn filled(&self, text: &str) -> String {
        // The longest names first: one may begin as another does.
        let mut variables: Vec<_> = self.variables.iter().collect();
        variables.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        variables.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }

    /// Sends a request; the answer, which has this status.
    async fn ask(&self, method: &str, path: &str, body: &Value, wanted: u16) -> Value {
        let url = format!("{}{}", self.world.stack.url, self.filled(path));
        let headers = json!({"authorization": format!("Bearer {}", self.org.key), "content-type": "application/json"});
        let body = if body.is_null() { String::new() } else { self.filled(&body.to_string()) };
        let (status, _, answer) = send(method, &url, &headers, body.as_bytes()).await;
        let text = String::from_utf8(answer).unwrap();
        assert_eq!(status, wanted, "{method} {path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The command that sends this request.
    fn command(method: &str, path: &str, body: &Value) -> String {
        let method = match (method, body.is_null()) {
            ("GET", true) | ("POST", false) => String::new(),
            _ => format!("-X {method} "),
        };
        let json = if body.is_null() {
            String::new()
        } else {
            // A variable stands outside of the single quotes.
            let text = body.to_string().replace("\"$", "\"'$");
            let mut parts = text.split("'$");
            let first = parts.next().unwrap_or_default().to_owned();
            let text = parts.fold(first, |text, part| {
                let end = part.find(|character: char| !character.is_ascii_uppercase() && character != '_');
                let (name, rest) = part.split_at(end.unwrap_or(part.len()));
                format!("{text}'\"${name}\"'{rest}")
            });
            format!(" \\\n  --json '{text}'")
        };
        format!("curl {method}\"$API{path}\" -H \"authorization: Bearer $KEY\"{json}")
    }

    /// Makes a request, and writes it down with its answer. Keeps members of the answer's `data` as variables.
    async fn step(
        &mut self,
        says: &str,
        (method, path): (&str, &str),
        body: Value,
        keep: &[(&'static str, &str)],
    ) -> Value {
        let created = method == "POST" && !path.ends_with("/close") && !path.ends_with("/import");
        let wanted = if created && !path.starts_with("/api/v1/campaign/run") { 201 } else { 200 };
        let answer = self.ask(method, path, &body, wanted).await;
        self.write(says);
        let mut command = Self::command(method, path, &body);
        for (name, pointer) in keep {
            let value = answer["data"].pointer(pointer).unwrap().as_str().unwrap().to_owned();
            write!(command, "\n{name}={value}").unwrap();
            self.variables.insert(name, value);
        }
        self.write(&format!("```sh\n{command}\n```"));
        self.write(&format!("```json\n{}\n```", serde_json::to_string_pretty(&answer).unwrap()));
        answer["data"].clone()
    }

    /// Makes requests whose answers say nothing new, and writes them down.
    async fn steps(&mut self, says: &str, requests: &[(&str, &str)]) {
        let mut commands = Vec::new();
        for (method, path) in requests {
            self.ask(method, path, &Value::Null, 200).await;
            commands.push(Self::command(method, path, &Value::Null));
        }
        self.write(says);
        self.write(&format!("```sh\n{}\n```", commands.join("\n")));
    }

    /// The page, with the same ids, times and secrets whenever it is written.
    fn page(&self) -> String {
        let text = portable(&self.world.stack, &self.page);
        let text = text.replace(&self.world.receiver.url, "https://example.com");
        let words = |character: char| !character.is_ascii_alphanumeric() && !"-_:.+=/".contains(character);
        let (mut known, mut ids) = (BTreeMap::<String, String>::new(), 0);
        let mut stable = text.clone();
        for word in text.split(words) {
            // A path has ids as its parts.
            for part in word.split(['/', '=']) {
                if part.parse::<uuid::Uuid>().is_ok() && part.len() == 36 && !known.contains_key(part) {
                    known.insert(part.to_owned(), format!("01900000-0000-7000-8000-{ids:012}"));
                    ids += 1;
                }
            }
            if word.starts_with("whsec_") {
                known.insert(word.to_owned(), "whsec_…".to_owned());
            }
            if word.len() == 24 && word.ends_with('Z') && word.starts_with("20") {
                known.insert(word.to_owned(), "2026-02-01T12:00:00.000Z".to_owned());
            }
        }
        for (from, to) in known {
            stable = stable.replace(&from, &to);
        }
        // How an address is signed, and how long an attempt took.
        let signed = stable.split("?X-Amz-").enumerate().map(|(place, part)| {
            let end = if place == 0 { 0 } else { part.find(['"', '\n']).unwrap_or(part.len()) };
            format!("{}{}", if place == 0 { "" } else { "?X-Amz-…" }, &part[end..])
        });
        let timed = signed.collect::<String>();
        let milliseconds = |line: &str| match line.split_once("\"milliseconds\": ") {
            Some((before, _)) => format!("{before}\"milliseconds\": 12,\n"),
            None => format!("{line}\n"),
        };
        timed.lines().map(milliseconds).collect()
    }
}

/// What an organisation needs before anybody can talk to its assistant.
async fn prepare(journey: &mut Journey) {
    journey.write("## An assistant, and what it knows");
    let webhook = json!({"endpoint": "$RECEIVER/events", "name": "Events"});
    let says = "A webhook is told when a conversation has closed. Its secret is answered only now: it verifies the signatures.";
    journey.step(says, ("POST", "/api/v1/outbound_webhook"), webhook, &[("WEBHOOK", "/id")]).await;
    let assistant = json!({"name": "Reception", "assistant_type": "chat", "webhook_id": "$WEBHOOK"});
    journey.step("The assistant names it.", ("POST", "/api/v1/assistant"), assistant, &[("ASSISTANT", "/id")]).await;
    let source = json!({"name": "Handbook", "ds_type": "text_blob"});
    journey.step("A data source holds files.", ("POST", "/api/v1/datasource"), source, &[("SOURCE", "/id")]).await;
    let text = json!({"content": "We are open from nine to five."});
    let path = "/api/v1/datasource/$SOURCE/text_blob?ds_type=text_blob&name=hours.txt";
    journey.step("A text becomes a file at once.", ("POST", path), text, &[("TEXT", "/id")]).await;
    let file = json!({"name": "prices.csv", "size_bytes": 12, "content_type": "text/csv"});
    let says = "Any other file is made first, and then uploaded to the address in the answer.";
    let path = "/api/v1/datasource/$SOURCE/file";
    let made = journey.step(says, ("POST", path), file, &[("FILE", "/id"), ("UPLOAD", "/upload/url")]).await;
    let upload = &made["upload"];
    let url = upload["url"].as_str().unwrap();
    let (status, ..) = send("PUT", url, &upload["headers"], b"wash;12,50\r\n").await;
    assert_eq!(status, 200);
    let headers = upload["headers"].as_object().unwrap().iter();
    let headers: String = headers.map(|(name, value)| format!(" -H \"{name}: {}\"", value.as_str().unwrap())).collect();
    journey
        .write(&format!("```sh\nprintf 'wash;12,50\\r\\n' | curl -X PUT \"$UPLOAD\" --data-binary @-{headers}\n```"));
    let path = "/api/v1/datasource/datasourcefile/$FILE";
    let read = journey.step("Now it can be downloaded.", ("GET", path), Value::Null, &[]).await;
    let (_, _, bytes) = send("GET", read["download_url"].as_str().unwrap(), &json!({}), b"").await;
    assert_eq!(bytes, b"wash;12,50\r\n");
    let path = "/api/v1/assistant/$ASSISTANT/data_source/$SOURCE";
    journey.step("The assistant uses the data source.", ("POST", path), Value::Null, &[]).await;
    let intent = json!({"name": "Opening hours", "description": "Asks when we are open"});
    journey.step("It recognises an intent.", ("POST", "/api/v1/intent"), intent, &[("INTENT", "/id")]).await;
    let path = "/api/v1/assistant/$ASSISTANT/intent/$INTENT";
    journey.step("Both are linked.", ("POST", path), Value::Null, &[]).await;
    let widget = json!({
        "widget_type": "chat", "assistant_id": "$ASSISTANT", "opening_message": "Hello, how can we help?",
        "connector_url": "$RECEIVER/connector",
    });
    let says = "People reach it through a widget, whose connector sends the messages of campaigns.";
    journey.step(says, ("POST", "/api/v1/widget"), widget, &[("WIDGET", "/id")]).await;
}

/// A conversation, and its event.
async fn converse(journey: &mut Journey) {
    journey.write("## A conversation");
    let contacts = json!({"contacts": [
        {"first_name": "Ada", "email": "ada@example.com"},
        {"first_name": "Grace", "phone_number": "+31 20 123 45 67"},
    ]});
    let says = "Contacts are imported, up to five hundred at once. Sent again, it changes nothing.";
    let keep = [("ADA", "/items/0/id"), ("GRACE", "/items/1/id")];
    journey.step(says, ("POST", "/api/v1/contact/import"), contacts, &keep).await;
    let tag = json!({"name": "VIP"});
    journey.step("A tag marks one of them.", ("POST", "/api/v1/tag"), tag, &[("TAG", "/id")]).await;
    let link = json!({"tag_id": "$TAG", "entity_type": "contact", "entity_id": "$ADA"});
    journey.step("It is linked to her.", ("POST", "/api/v1/link_tag_entity"), link, &[("LINK", "/id")]).await;
    let open =
        json!({"assistant_id": "$ASSISTANT", "widget_id": "$WIDGET", "contact_id": "$ADA", "device_type": "mobile"});
    journey.step("She opens a conversation.", ("POST", "/api/v1/conversation"), open, &[("TALK", "/id")]).await;
    let says = "She asks, and the assistant answers.";
    let path = "/api/v1/conversation/$TALK/message";
    let asks = json!({"sender_type": "user", "text": "Until when are you open?"});
    journey.step(says, ("POST", path), asks, &[]).await;
    let answers = json!({"sender_type": "bot", "text": "Until five o'clock."});
    journey.ask("POST", path, &answers, 201).await;
    journey.write(&format!("```sh\n{}\n```", Journey::command("POST", path, &answers)));
    let path = "/api/v1/conversation/$TALK/transcript";
    journey.step("Both stand in the transcript.", ("GET", path), Value::Null, &[]).await;
    let path = "/api/v1/conversation/$TALK/close";
    journey.step("The conversation ends.", ("POST", path), Value::Null, &[]).await;
    journey.world.settle().await;
    let received = journey.world.receiver.wait_for("/events", 1, PATIENCE).await.unwrap().remove(0);
    let verifier = standardwebhooks::Webhook::new(&secret(journey)).unwrap();
    let headers: HeaderMap =
        received.headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    verifier.verify(&received.body, &headers).unwrap();
    let event: Value = serde_json::from_slice(&received.body).unwrap();
    journey.write("The webhook has received the event, signed by its secret, with the header `webhook-id` that is the event's id:");
    journey.write(&format!("```json\n{}\n```", serde_json::to_string_pretty(&event).unwrap()));
    let path = "/api/v1/outbound_webhook/$WEBHOOK/logs";
    let logs = journey.step("Its log says so.", ("GET", path), Value::Null, &[]).await;
    assert_eq!(logs["items"][0]["state"], "delivered");
}

/// The secret of the webhook, as it was answered.
fn secret(journey: &Journey) -> String {
    let at = journey.page.find("whsec_").unwrap();
    journey.page[at..].split('"').next().unwrap().to_owned()
}

/// A campaign that is sent.
async fn campaign(journey: &mut Journey) {
    journey.write("## A campaign");
    let run = json!({"contact_ids": ["$ADA", "$GRACE"], "message": "We open an hour earlier this week.", "start_new_conversation": true});
    let says = "A campaign sends a message to contacts through a widget.";
    journey.step(says, ("POST", "/api/v1/campaign/run/$WIDGET"), run, &[("CAMPAIGN", "/campaign_id")]).await;
    journey.world.minutes(1).await;
    assert_eq!(journey.world.receiver.wait_for("/connector", 2, PATIENCE).await.unwrap().len(), 2);
    let says = "Within a minute the connector has received both messages.";
    let read = journey.step(says, ("GET", "/api/v1/campaign/get/$CAMPAIGN"), Value::Null, &[]).await;
    assert_eq!((&read["status"], &read["counts"]["sent"]), (&json!("completed"), &json!(2)));
    let path = "/api/v1/campaign/contact/list/$CAMPAIGN";
    let listed = journey.step("Each has a conversation now.", ("GET", path), Value::Null, &[]).await;
    for (name, place) in [("CALL_1", 0), ("CALL_2", 1)] {
        let talk = listed["items"][place]["conversation_id"].as_str().unwrap().to_owned();
        journey.variables.insert(name, talk);
    }
    let [one, two] = ["CALL_1", "CALL_2"].map(|name| journey.variables[name].clone());
    journey.write(&format!("```sh\nCALL_1={one}\nCALL_2={two}\n```"));
}

/// An agency that sells the service.
async fn sell(journey: &mut Journey) {
    journey.write("## An agency, and its people");
    let agency = json!({"branding": {"name": "Acme"}, "billing_plan": {"payment_api_key": "sk_test_of_the_journey"}});
    let says = "An agency sells the service to others. The key for its payment provider is never answered.";
    journey.step(says, ("POST", "/api/v1/agency"), agency, &[("AGENCY", "/id")]).await;
    let plan = json!({
        "name": "Pro", "description": "All of it", "bots_count": 5, "queries_count": 1000, "words_count": 50000,
        "voice_seconds": 3600, "premium_support": true,
    });
    let path = "/api/v1/agency/billing/$AGENCY/billing_plan";
    journey.step("It has a billing plan.", ("POST", path), plan, &[("PLAN", "/id")]).await;
    let path = "/api/v1/agency/billing/$AGENCY/setup_payment_webhook";
    let answer = journey.ask("GET", path, &Value::Null, 200).await;
    journey.write("The payment provider is to tell what is paid.");
    journey.write(&format!("```sh\n{}\n```", Journey::command("GET", path, &Value::Null)));
    journey.write(&format!("```json\n{}\n```", serde_json::to_string_pretty(&answer).unwrap()));
    assert_eq!(journey.world.stack.payment_provider.endpoints().len(), 1);
    let user = json!({"first_name": "Joan", "last_name": "Clarke", "email": "joan@example.com"});
    journey.step("A user works with it.", ("POST", "/api/v1/user"), user, &[("USER", "/id")]).await;
}

/// Everything goes.
async fn clean_up(journey: &mut Journey) {
    journey.write("## And everything goes again");
    journey
        .steps(
            "A conversation is deleted when it is closed, a campaign when it is sent.",
            &[
                ("POST", "/api/v1/conversation/$CALL_1/close"),
                ("POST", "/api/v1/conversation/$CALL_2/close"),
                ("DELETE", "/api/v1/conversation/$CALL_1"),
                ("DELETE", "/api/v1/conversation/$CALL_2"),
                ("DELETE", "/api/v1/conversation/$TALK"),
                ("DELETE", "/api/v1/campaign/$CAMPAIGN"),
            ],
        )
        .await;
    journey
        .steps(
            "What belongs to a record goes with it: messages, files, links, plans, the log of a webhook, and the webhook at the payment provider.",
            &[
                ("DELETE", "/api/v1/contact/$ADA"),
                ("DELETE", "/api/v1/contact/$GRACE"),
                ("DELETE", "/api/v1/tag/$TAG"),
                ("DELETE", "/api/v1/widget/$WIDGET"),
                ("DELETE", "/api/v1/datasource/$SOURCE"),
                ("DELETE", "/api/v1/intent/$INTENT"),
                ("DELETE", "/api/v1/assistant/$ASSISTANT"),
                ("DELETE", "/api/v1/outbound_webhook/$WEBHOOK"),
                ("DELETE", "/api/v1/agency/$AGENCY"),
                ("DELETE", "/api/v1/user/$USER"),
            ],
        )
        .await;
}

#[tokio::test]
async fn an_organisation_with_nothing_but_a_key_does_everything_through_the_api() {
    let mut journey = Journey::begin().await;
    journey.write(
        "# From an empty organisation to a sent campaign, and back\n\n\
         Every command below was run by a test against `cargo local`, in this order, and every answer is what came. Ids, times and secrets differ\n\
         from run to run; here they are always the same. `$API` is the address of the API, `$KEY` a key of an organisation that has nothing yet:\n\
         `cargo local` prints both, and [OPERATIONS.md](OPERATIONS.md) says how a key is issued in a deployed stack.",
    );
    prepare(&mut journey).await;
    converse(&mut journey).await;
    campaign(&mut journey).await;
    sell(&mut journey).await;
    clean_up(&mut journey).await;
    journey.write(
        "Within seconds nothing of the organisation is left but its keys, and the numbers that its lists go on from.",
    );
    let page = journey.page().trim_end().to_owned() + "\n";

    let Journey { world, org, .. } = journey;
    world.settle().await;
    // What failed, or was to be tried once more, is looked at by the ticks.
    world.pass(3600);
    world.minutes(3).await;
    assert_eq!(world.stack.stream.given_up(), Vec::<Value>::new());
    assert_eq!(world.stack.payment_provider.endpoints().len(), 0);
    let of_it = format!("ORG#{}", org.id);
    let left = everything(&world.stack).await.into_iter().filter(|item| {
        let (pk, sk) = (item["pk"].as_s().unwrap(), item["sk"].as_s().unwrap());
        // Nothing but the keys, the heads of lists with their holes, and what expires by itself.
        let list = pk.contains("#LIST#") && (sk == "HEAD" || sk.starts_with("SECTION#") || pk.ends_with("#HOLES"));
        pk.starts_with(&of_it) && !pk.ends_with("#API_KEYS") && !list && !item.contains_key("ttl")
    });
    assert_eq!(left.collect::<Vec<_>>(), vec![]);
    let lists = everything(&world.stack).await.into_iter().filter(|item| item["sk"].as_s().unwrap() == "HEAD");
    for head in lists.filter(|item| item["pk"].as_s().unwrap().starts_with(&of_it)) {
        assert_eq!(head["pk"].as_s().unwrap().matches('#').count(), 3, "{head:?}: the list of a record that is gone");
    }
    let mut call = Call { method: "GET".into(), path: "/api/v1/link_tag_entity/list".into(), ..Call::default() };
    call.headers.insert("authorization".into(), format!("Bearer {}", org.key));
    assert!(world.stack.answer(&call).await.body.contains("\"total\":0"));

    let file = root().join("docs/JOURNEY.md");
    if updating() {
        std::fs::write(&file, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), page, "UPDATE=1 cargo test writes it");
}
