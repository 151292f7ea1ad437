//! A test that uses the whole API over HTTP, from the first record of an organisation to the deletion of its last one.
//! `docs/JOURNEY.md` shows its requests and answers; `cargo generate` writes that page, and `.ci/journey` runs its commands.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use shared::values::time::Clock;

use crate::support::fixture::{everything, json, portable, send};
use crate::support::generated::generated;
use crate::support::sending::{Org, Setup};

/// The longest time to wait for an event.
const PATIENCE: Duration = Duration::from_secs(30);

struct Journey {
    setup: Setup,
    org: Org,
    page: String,
    /// Values of answers that later requests use, by the names of their shell variables.
    variables: BTreeMap<&'static str, String>,
}

impl Journey {
    async fn begin() -> Self {
        // Signed addresses are good for fifteen minutes of the real time.
        let setup = Setup::with(|settings| local::Settings { clock: Clock::at(Clock::System.now()), ..settings }).await;
        let org = setup.org().await;
        let admin = json!({"org_id": org.id, "name": "Journey", "role": "admin"}).to_string();
        let admin = setup.stack.gateway.invoke_by_name("issue-api-key", admin.as_bytes()).await;
        let org = Org { key: json(&admin)["api_key"].as_str().unwrap().to_owned(), ..org };
        let variables = BTreeMap::from([("RECEIVER", setup.receiver.url.clone())]);
        Self { setup, org, page: String::new(), variables }
    }

    fn write(&mut self, text: &str) {
        writeln!(self.page, "{text}\n").unwrap();
    }

    /// `text` with the values of its variables.
    fn filled(&self, text: &str) -> String {
        // Longest names first: one name may be the beginning of another.
        let mut variables: Vec<_> = self.variables.iter().collect();
        variables.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        variables.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }

    /// Sends a request and returns its answer, which must be a success.
    async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        self.ask_by(&self.org.key, (method, path), body, success(method, path)).await
    }

    /// Sends a request with this key and returns its answer, which must have this status.
    async fn ask_by(&self, key: &str, (method, path): (&str, &str), body: &Value, wanted: u16) -> Value {
        let url = format!("{}{}", self.setup.stack.url, self.filled(path));
        let headers = json!({"authorization": format!("Bearer {key}"), "content-type": "application/json"});
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
            let text = body.to_string().replace('\'', r"'\''").replace("\"$", "\"'$");
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

    /// Sends a request, and writes it down with its answer. Keeps members of the answer, by their `jq` paths, as variables.
    async fn step(
        &mut self,
        says: &str,
        (method, path): (&str, &str),
        body: Value,
        keep: &[(&'static str, &str)],
    ) -> Value {
        let answer = self.ask(method, path, &body).await;
        let command = Self::command(method, path, &body);
        let command = if keep.is_empty() { command } else { format!("{command} | tee answer.json") };
        self.write_step(says, command, keep, &answer)
    }

    /// Sends a request of the user, and writes it down with its answer: a success, or a refusal with the status `refused`.
    async fn step_of_user(
        &mut self,
        says: &str,
        (method, path): (&str, &str),
        body: Value,
        result: Result<&[(&'static str, &str)], u16>,
    ) {
        let wanted = result.err().unwrap_or_else(|| success(method, path));
        let answer = self.ask_by(&self.variables["USER_KEY"], (method, path), &body, wanted).await;
        let command = Self::command(method, path, &body).replace("$KEY", "$USER_KEY");
        let end = if result.is_ok() { "| tee answer.json" } else { "|| echo refused" };
        self.write_step(says, format!("{command} {end}"), result.unwrap_or_default(), &answer);
    }

    /// Repeats a request until a member of its answer has a value, and writes it down with the last answer.
    async fn step_until(&mut self, says: &str, path: &str, (member, value): (&str, &str)) -> Value {
        let mut tries = 0;
        let answer = loop {
            let answer = self.ask("GET", path, &Value::Null).await;
            if at(&answer, member) == value {
                break answer;
            }
            tries += 1;
            assert!(tries < 10, "{member} is not {value}: {answer}");
            self.setup.minutes(1).await;
        };
        let command = Self::command("GET", path, &Value::Null);
        let is = format!("jq --exit-status '{member} == \"{value}\"' answer.json");
        let command = format!("until {command} > answer.json && {is}; do sleep 2; done\ncat answer.json");
        self.write_step(says, command, &[], &answer)
    }

    /// Writes down a command and its answer, and keeps members of it.
    fn write_step(&mut self, says: &str, mut command: String, keep: &[(&'static str, &str)], answer: &Value) -> Value {
        for (name, member) in keep {
            write!(command, "\n{name}=$(jq --raw-output '{member}' answer.json)").unwrap();
            self.variables.insert(name, at(answer, member).as_str().unwrap().to_owned());
        }
        self.write(says);
        self.write(&format!("```sh\n{command}\n```"));
        self.write(&format!("```json\n{}\n```", serde_json::to_string_pretty(answer).unwrap()));
        answer["data"].clone()
    }

    /// Sends requests, and writes them down without their answers.
    async fn steps(&mut self, says: &str, requests: &[(&str, &str)]) {
        let mut commands = Vec::new();
        for (method, path) in requests {
            self.ask(method, path, &Value::Null).await;
            commands.push(Self::command(method, path, &Value::Null));
        }
        self.write(says);
        self.write(&format!("```sh\n{}\n```", commands.join("\n")));
    }

    /// The page. Its ids, times and secrets are the same in every run.
    fn page(&self) -> String {
        let text = portable(&self.setup.stack, &self.page);
        let text = text.replace(&self.setup.receiver.url, "https://example.com");
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
            if word.starts_with("in-") && word.len() == 46 {
                // An answer also shows the beginning of a key.
                known.extend([word, &word[..7]].map(|part| (part.to_owned(), "in-…".to_owned())));
            }
            if word.starts_with("whsec_") {
                known.insert(word.to_owned(), "whsec_…".to_owned());
            }
            if word.len() == 24 && word.ends_with('Z') && word.starts_with("20") {
                known.insert(word.to_owned(), "2026-02-01T12:00:00.000Z".to_owned());
            }
        }
        // Longest first: one part may be the beginning of another.
        for (from, to) in known.into_iter().rev() {
            stable = stable.replace(&from, &to);
        }
        // The signature of an address and the duration of an attempt differ from run to run.
        let signed = stable.split("X-Amz-Algorithm").enumerate().map(|(place, part)| {
            let end = if place == 0 { 0 } else { part.find(['"', '\n']).unwrap_or(part.len()) };
            format!("{}{}", if place == 0 { "" } else { "X-Amz-…" }, &part[end..])
        });
        let timed = signed.collect::<String>();
        let milliseconds = |line: &str| match line.split_once("\"milliseconds\": ") {
            Some((before, _)) => format!("{before}\"milliseconds\": 12,\n"),
            None => format!("{line}\n"),
        };
        timed.lines().map(milliseconds).collect()
    }
}

/// The member of `answer` at a `jq` path.
fn at<'a>(answer: &'a Value, path: &str) -> &'a Value {
    answer.pointer(&path.replace(['.', '['], "/").replace(']', "")).unwrap_or(&Value::Null)
}

/// The status of a success of the operation at a path, which may have variables.
fn success(method: &str, path: &str) -> u16 {
    let path = path.split('?').next().unwrap_or_default();
    shared::routes::find(method, path).unwrap_or_else(|| panic!("{method} {path}")).success
}

/// What an organisation needs before anybody can talk to its assistant.
async fn prepare(journey: &mut Journey) {
    journey.write("## An assistant, and what it knows");
    let webhook = json!({"endpoint": "$RECEIVER/events", "name": "Events"});
    let says = "Make a webhook: it gets an event when a conversation has closed. Keep its secret, which verifies the signatures. No other answer shows it.";
    journey.step(says, ("POST", "/api/v1/outbound_webhook"), webhook, &[("WEBHOOK", ".data.id")]).await;
    let assistant = json!({"name": "Reception", "assistant_type": "chat", "webhook_id": "$WEBHOOK"});
    journey
        .step(
            "Make an assistant that sends its events to the webhook.",
            ("POST", "/api/v1/assistant"),
            assistant,
            &[("ASSISTANT", ".data.id")],
        )
        .await;
    let source = json!({"name": "Handbook", "ds_type": "text_blob"});
    journey
        .step(
            "Make a data source, which holds files.",
            ("POST", "/api/v1/datasource"),
            source,
            &[("SOURCE", ".data.id")],
        )
        .await;
    let text = json!({"content": "We are open from nine to five."});
    let path = "/api/v1/datasource/$SOURCE/text_blob?ds_type=text_blob&name=hours.txt";
    journey.step("Store a text as a file, in one request.", ("POST", path), text, &[("TEXT", ".data.id")]).await;
    let file = json!({"name": "prices.csv", "size_bytes": 12, "content_type": "text/csv"});
    let says = "Make any other file first, and then upload it to the address in the answer.";
    let path = "/api/v1/datasource/$SOURCE/file";
    let made = journey.step(says, ("POST", path), file, &[("FILE", ".data.id"), ("UPLOAD", ".data.upload.url")]).await;
    let upload = &made["upload"];
    let url = upload["url"].as_str().unwrap();
    let (status, ..) = send("PUT", url, &upload["headers"], b"wash;12,50\r\n").await;
    assert_eq!(status, 200);
    let headers = upload["headers"].as_object().unwrap().iter();
    let headers: String = headers.map(|(name, value)| format!(" -H \"{name}: {}\"", value.as_str().unwrap())).collect();
    journey
        .write(&format!("```sh\nprintf 'wash;12,50\\r\\n' | curl -X PUT \"$UPLOAD\" --data-binary @-{headers}\n```"));
    let path = "/api/v1/datasource/datasourcefile/$FILE";
    let read =
        journey.step("Read the file. `download_url` is where to download it.", ("GET", path), Value::Null, &[]).await;
    let (_, _, bytes) = send("GET", read["download_url"].as_str().unwrap(), &json!({}), b"").await;
    assert_eq!(bytes, b"wash;12,50\r\n");
    let path = "/api/v1/assistant/$ASSISTANT/data_source/$SOURCE";
    journey.step("Let the assistant use the data source.", ("POST", path), Value::Null, &[]).await;
    let intent = json!({"name": "Opening hours", "description": "Asks when we are open"});
    journey
        .step(
            "Make an intent, which the assistant is to recognise.",
            ("POST", "/api/v1/intent"),
            intent,
            &[("INTENT", ".data.id")],
        )
        .await;
    let path = "/api/v1/assistant/$ASSISTANT/intent/$INTENT";
    journey.step("Link the intent to the assistant.", ("POST", path), Value::Null, &[]).await;
    let widget =
        json!({"widget_type": "chat", "assistant_id": "$ASSISTANT", "opening_message": "Hello, how can we help?"});
    let says = "Make a widget, through which people reach the assistant. A widget without a `connector_url` sends nothing to a server: its messages are in the conversations.";
    journey.step(says, ("POST", "/api/v1/widget"), widget, &[("WIDGET", ".data.id")]).await;
}

/// A conversation, and its event.
async fn converse(journey: &mut Journey) {
    journey.write("## A conversation");
    let contacts = json!({"contacts": [
        {"first_name": "Ada", "email": "ada@example.com"},
        {"first_name": "Grace", "phone_number": "+31 20 123 45 67"},
    ]});
    let says = "Import contacts, up to five hundred at once. The same request again changes nothing.";
    let keep = [("ADA", ".data.items[0].id"), ("GRACE", ".data.items[1].id")];
    journey.step(says, ("POST", "/api/v1/contact/import"), contacts, &keep).await;
    let tag = json!({"name": "VIP"});
    journey.step("Make a tag.", ("POST", "/api/v1/tag"), tag, &[("TAG", ".data.id")]).await;
    let link = json!({"tag_id": "$TAG", "entity_type": "contact", "entity_id": "$ADA"});
    journey
        .step("Link the tag to the contact Ada.", ("POST", "/api/v1/link_tag_entity"), link, &[("LINK", ".data.id")])
        .await;
    let open =
        json!({"assistant_id": "$ASSISTANT", "widget_id": "$WIDGET", "contact_id": "$ADA", "device_type": "mobile"});
    journey
        .step("Open a conversation with Ada.", ("POST", "/api/v1/conversation"), open, &[("TALK", ".data.id")])
        .await;
    let says = "Add Ada's question, and the assistant's answer.";
    let path = "/api/v1/conversation/$TALK/message";
    let asks = json!({"sender_type": "user", "text": "Until when are you open?"});
    journey.step(says, ("POST", path), asks, &[]).await;
    let answers = json!({"sender_type": "bot", "text": "Until five o'clock."});
    journey.ask("POST", path, &answers).await;
    journey.write(&format!("```sh\n{}\n```", Journey::command("POST", path, &answers)));
    let path = "/api/v1/conversation/$TALK/transcript";
    journey.step("Read the transcript, which has both messages.", ("GET", path), Value::Null, &[]).await;
    let path = "/api/v1/conversation/$TALK/close";
    journey.step("Close the conversation.", ("POST", path), Value::Null, &[]).await;
    journey.setup.settle().await;
    let received = journey.setup.receiver.wait_for("/events", 1, PATIENCE).await.unwrap().remove(0);
    let verifier = standardwebhooks::Webhook::new(&secret(journey)).unwrap();
    let headers: HeaderMap =
        received.headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    verifier.verify(&received.body, &headers).unwrap();
    let event: Value = serde_json::from_slice(&received.body).unwrap();
    journey.write(
        "The webhook has received this event, signed with its secret. The header `webhook-id` is the event's id:",
    );
    journey.write(&format!("```json\n{}\n```", serde_json::to_string_pretty(&event).unwrap()));
    let path = "/api/v1/outbound_webhook/$WEBHOOK/logs";
    journey
        .step_until("The list of deliveries shows that the event arrived.", path, (".data.items[0].state", "delivered"))
        .await;
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
    let says = "Run a campaign, which sends a message to contacts through a widget.";
    journey.step(says, ("POST", "/api/v1/campaign/run/$WIDGET"), run, &[("CAMPAIGN", ".data.campaign_id")]).await;
    let says = "Wait. Within a minute each contact has a conversation with the message.";
    let path = "/api/v1/campaign/get/$CAMPAIGN";
    let read = journey.step_until(says, path, (".data.status", "completed")).await;
    assert_eq!(read["counts"]["stored"], 2);
    let keep = [("CALL_1", ".data.items[0].conversation_id"), ("CALL_2", ".data.items[1].conversation_id")];
    let path = "/api/v1/campaign/contact/list/$CAMPAIGN";
    journey
        .step(
            "List the contacts of the campaign. Each has the id of its conversation.",
            ("GET", path),
            Value::Null,
            &keep,
        )
        .await;
    let says = "Grace wants no more messages: suppress her telephone number. Campaigns leave her out from now on.";
    let grace = json!({"phone_number": "+31 20 123 45 67", "channel": "message", "reason": "Asked by letter"});
    journey.step(says, ("POST", "/api/v1/suppression"), grace, &[("SUPPRESSION", ".data.id")]).await;
}

/// An agency that sells the service.
async fn sell(journey: &mut Journey) {
    journey.write("## An agency, and its people");
    let agency = json!({"branding": {"name": "Acme"}, "billing_plan": {"payment_api_key": "sk_test_of_the_journey"}});
    let says =
        "Make an agency, which sells the service to others. No answer shows the key for its payment provider in full.";
    journey.step(says, ("POST", "/api/v1/agency"), agency, &[("AGENCY", ".data.id")]).await;
    let plan = json!({
        "name": "Free", "description": "To begin with", "bots_count": 1, "queries_count": 1000, "words_count": 50000,
        "voice_seconds": 3600, "premium_support": false, "default_plan": true, "overage": "block",
    });
    let path = "/api/v1/agency/billing/$AGENCY/billing_plan";
    let says = "Make a billing plan of the agency. Users without another plan have the default plan, and this one blocks what goes beyond its limits.";
    journey.step(says, ("POST", path), plan, &[("PLAN", ".data.id")]).await;
    let path = "/api/v1/agency/billing/$AGENCY/setup_payment_webhook";
    journey
        .step("Set up the webhook by which the payment provider reports payments.", ("GET", path), Value::Null, &[])
        .await;
    assert_eq!(journey.setup.stack.payment_provider.endpoints().len(), 1);
    let user = json!({"first_name": "Joan", "last_name": "Clarke", "email": "joan@example.com"});
    journey
        .step("Make a user, who works with the service.", ("POST", "/api/v1/user"), user, &[("USER", ".data.id")])
        .await;
}

/// A plan whose limit is reached, and the way out of it.
async fn use_up(journey: &mut Journey) {
    journey.write("## A plan that is used up");
    let key = json!({"name": "Joan", "user_id": "$USER"});
    let says = "Make a key for the user. What is done with it counts for the user.";
    journey.step(says, ("POST", "/api/v1/api_key"), key, &[("USER_KEY", ".data.api_key")]).await;
    let (path, bot) = ("/api/v1/assistant", |name: &str| json!({"name": name}));
    let says = "Make an assistant with this key.";
    journey.step_of_user(says, ("POST", path), bot("Sales"), Ok(&[("SALES", ".data.id")])).await;
    let says = "The plan has room for one assistant, so the next one is refused with 402. The message says what is used up, and until when.";
    journey.step_of_user(says, ("POST", path), bot("Support"), Err(402)).await;
    let plan = "/api/v1/agency/billing/$AGENCY/billing_plan/$PLAN";
    let says = "The way out is a larger plan, or a deleted assistant. Either counts at once.";
    journey.step(says, ("PUT", plan), json!({"bots_count": 2}), &[]).await;
    let says = "Now there is room.";
    journey.step_of_user(says, ("POST", path), bot("Support"), Ok(&[("SUPPORT", ".data.id")])).await;
    let says = "Read what the user has used.";
    journey.step_of_user(says, ("GET", "/api/v1/usage"), Value::Null, Ok(&[])).await;
}

/// Deletes every record.
async fn clean_up(journey: &mut Journey) {
    journey.write("## Delete everything");
    journey
        .steps(
            "Close each conversation before you delete it. Delete a campaign after it is sent.",
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
            "Delete the other records. The service also deletes everything that belongs to them: messages, files, links, plans, the deliveries of a webhook, and the webhook at the payment provider.",
            &[
                ("DELETE", "/api/v1/contact/$ADA"),
                ("DELETE", "/api/v1/contact/$GRACE"),
                ("DELETE", "/api/v1/suppression/$SUPPRESSION"),
                ("DELETE", "/api/v1/tag/$TAG"),
                ("DELETE", "/api/v1/widget/$WIDGET"),
                ("DELETE", "/api/v1/datasource/$SOURCE"),
                ("DELETE", "/api/v1/intent/$INTENT"),
                ("DELETE", "/api/v1/assistant/$ASSISTANT"),
                ("DELETE", "/api/v1/assistant/$SALES"),
                ("DELETE", "/api/v1/assistant/$SUPPORT"),
                ("DELETE", "/api/v1/outbound_webhook/$WEBHOOK"),
                ("DELETE", "/api/v1/agency/$AGENCY"),
                ("DELETE", "/api/v1/user/$USER"),
            ],
        )
        .await;
}

#[tokio::test]
async fn an_organisation_with_only_a_key_completes_the_journey() {
    let mut journey = Journey::begin().await;
    journey.write(
        "# From an empty organisation to a sent campaign, and back\n\n\
         This page goes through the whole API in `curl` commands, with their answers. It begins with an assistant and ends with the deletion of all\n\
         records. Each command runs as it stands, in one shell and in this order. `.ci/journey` runs them too.\n\
         \n\
         You need `jq`, and three variables:\n\
         \n\
         | Variable | Value |\n\
         | --- | --- |\n\
         | `API` | the address of the API without `/api/v1`; with `cargo local`, `http://127.0.0.1:3000` |\n\
         | `KEY` | a key with the role `admin` of an organisation that has no records yet. With `cargo local`, take the first key that it prints, although its organisation has records. [OPERATIONS.md](OPERATIONS.md#issue-and-revoke-keys) says how to issue a key in a deployed stack |\n\
         | `RECEIVER` | the address of a server that receives events; with `cargo local`, `$API/inbox/events` leads to its [inbox](CONSOLE.md#the-inbox) |\n\
         \n\
         The answers are real: a test sent every request below to `cargo local`, in this order. Ids, times and secrets differ from run to run. On\n\
         this page they are always the same.",
    );
    prepare(&mut journey).await;
    converse(&mut journey).await;
    campaign(&mut journey).await;
    sell(&mut journey).await;
    use_up(&mut journey).await;
    clean_up(&mut journey).await;
    journey.write(
        "Within seconds only three things of the organisation are left: its keys, the next number of each list, and the counters of its quotas and of the user's assistants, which say 0.",
    );
    let page = journey.page().trim_end().to_owned() + "\n";

    let Journey { setup, org, .. } = journey;
    setup.settle().await;
    // The ticks look at failed records and due retries.
    setup.pass(3600);
    setup.minutes(3).await;
    assert_eq!(setup.stack.stream.given_up(), Vec::<Value>::new());
    assert_eq!(setup.stack.payment_provider.endpoints().len(), 0);
    let of_it = format!("ORG#{}", org.id);
    let left = everything(&setup.stack).await.into_iter().filter(|item| {
        let (pk, sk) = (item["pk"].as_s().unwrap(), item["sk"].as_s().unwrap());
        // Keys, heads of lists with their holes, counters that say 0, and items that expire may stay.
        let list = pk.contains("#LIST#") && (sk == "HEAD" || sk.starts_with("SECTION#") || pk.ends_with("#HOLES"));
        let counter = (pk.ends_with("#USE") || pk.contains("#METERS#"))
            && item.values().filter_map(|value| value.as_n().ok()).all(|count| count == "0");
        let kept = list || counter || pk.ends_with("#API_KEYS") || item.contains_key("ttl");
        pk.starts_with(&of_it) && !kept
    });
    assert_eq!(left.collect::<Vec<_>>(), vec![]);
    let lists = everything(&setup.stack).await.into_iter().filter(|item| item["sk"].as_s().unwrap() == "HEAD");
    for head in lists.filter(|item| item["pk"].as_s().unwrap().starts_with(&of_it)) {
        assert_eq!(head["pk"].as_s().unwrap().matches('#').count(), 3, "{head:?}: the list of a deleted record");
    }
    assert_eq!(setup.get(&org, "/api/v1/link_tag_entity/list").await["total"], 0);

    generated("docs/JOURNEY.md", &page);
}
