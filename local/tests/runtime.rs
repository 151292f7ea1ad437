//! Tests of runtimes, which answer users: what the event of a message brings, the page and the program of `docs/RUNTIME.md`.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use local::Settings;
use local::faults::Fault;
use repository::root;
use serde_json::{Value, json};
use shared::records::event::LONGEST;
use shared::values::time::Clock;
use tokio::net::TcpListener;

use crate::support::fixture::{http_client, send};
use crate::support::sending::{Org, Setup, id_of};

/// A webhook at `/hook` that wants the context of messages.
async fn subscribed(setup: &Setup, org: &Org) -> Value {
    let endpoint = format!("{}/hook", setup.receiver.url);
    let webhook = json!({"endpoint": endpoint, "events": ["message.created"], "context": true});
    setup.post(org, "/api/v1/outbound_webhook", webhook).await
}

async fn say(setup: &Setup, org: &Org, conversation: &str, sender: &str, text: &str) -> Value {
    let path = format!("/api/v1/conversation/{conversation}/message");
    setup.post(org, &path, json!({"sender_type": sender, "text": text})).await
}

/// The bodies that `path` has got by now.
async fn bodies(setup: &Setup, path: &str) -> Vec<Value> {
    setup.settle().await;
    setup.receiver.received(path).iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

#[tokio::test]
async fn the_message_of_a_user_brings_what_is_needed_to_answer_it() {
    // Signed addresses are good for fifteen minutes of the real time.
    let setup = Setup::with(|settings| Settings { clock: Clock::at(Clock::System.now()), ..settings }).await;
    let org = setup.org().await;
    subscribed(&setup, &org).await;
    let plain = format!("{}/plain", setup.receiver.url);
    setup.post(&org, "/api/v1/outbound_webhook", json!({"endpoint": plain, "events": ["message.created"]})).await;
    let make = async |path: &str, body: Value| setup.post(&org, path, body).await;
    let prompt =
        json!({"system_prompt": "Help {{name}} at table {{table}}, {{nobody}}.", "voice_languages": ["en-GB"]});
    let assistant = make("/api/v1/assistant", prompt).await;
    let of_assistant = format!("/api/v1/assistant/{}", id_of(&assistant));
    let intent = make("/api/v1/intent", json!({"name": "Hours"})).await;
    make("/api/v1/intent", json!({"name": "Of another assistant"})).await;
    make(&format!("{of_assistant}/intent/{}", id_of(&intent)), Value::Null).await;
    let form =
        make("/api/v1/form", json!({"name": "Order", "form_type": "simple", "fields": [{"name": "size"}]})).await;
    let source = make("/api/v1/datasource", json!({"name": "Handbook", "ds_type": "text_blob"})).await;
    let text = format!("/api/v1/datasource/{}/text_blob?name=hours.txt", id_of(&source));
    let file = make(&text, json!({"content": "Open from nine to five."})).await;
    make(&format!("{of_assistant}/data_source/{}", id_of(&source)), Value::Null).await;
    let widget = json!({"widget_type": "telnyx_call", "assistant_id": assistant["id"], "connector_url": plain});
    let widget = make("/api/v1/widget", widget).await;
    let call = json!({"to": "+49 151 2345678", "prompt_dynamic_variables": {"name": "Ada", "table": 7}});
    let called = make(&format!("/api/v1/call/{}", id_of(&widget)), call).await;
    let conversation = called["conversation_id"].as_str().unwrap();
    let spoken = say(&setup, &org, conversation, "user", "When are you open?").await;
    say(&setup, &org, conversation, "bot", "From nine to five.").await;

    let events = bodies(&setup, "/hook").await;
    let [of_user, of_bot] = events.as_slice() else { panic!("{events:?}") };
    let of = |sender: &str| [of_user, of_bot].into_iter().find(|event| event["data"]["sender_type"] == sender).unwrap();
    assert!(of("bot")["data"].get("context").is_none());
    let context = &of("user")["data"]["context"];
    assert_eq!(context["assistant"]["system_prompt"], "Help Ada at table 7, {{nobody}}.");
    assert_eq!(context["assistant"]["llm_model"], assistant["llm_model"]);
    assert_eq!(context["assistant"]["voice_languages"], json!(["en-GB"]));
    assert_eq!(context["messages"], json!([spoken]));
    assert_eq!(context["contact"]["id"], called["contact_id"]);
    assert_eq!((&context["intents"], &context["forms"]), (&json!([intent]), &json!([form])));
    assert_eq!(context["datasources"][0]["id"], source["id"]);
    let files = context["datasources"][0]["files"].as_array().unwrap();
    assert_eq!((files.len(), &files[0]["id"]), (1, &file["id"]));
    let (status, _, bytes) = send("GET", files[0]["download_url"].as_str().unwrap(), &json!({}), b"").await;
    assert_eq!((status, bytes.as_slice()), (200, &b"Open from nine to five."[..]));
    assert_eq!(context["truncated"], json!([]));

    let sent = bodies(&setup, "/plain").await;
    let log = setup.get(&org, "/api/v1/event?type=message.created").await;
    let without =
        sent.iter().filter(|event| event["event"] == "message.created").chain(log["items"].as_array().unwrap());
    assert_eq!(without.clone().count(), 4);
    assert!(without.into_iter().all(|event| event["data"].get("context").is_none()));
}

#[tokio::test]
async fn a_context_has_fifty_messages_as_far_as_an_event_has_room() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    subscribed(&setup, &org).await;
    let assistant = setup.post(&org, "/api/v1/assistant", json!({})).await;
    let conversation = setup.open(&org, &assistant).await;
    let conversation = id_of(&conversation);
    for number in 0..59 {
        say(&setup, &org, conversation, "agent", &number.to_string()).await;
    }
    say(&setup, &org, conversation, "user", "short").await;
    for _ in 0..20 {
        say(&setup, &org, conversation, "agent", &"x".repeat(20_000)).await;
    }
    say(&setup, &org, conversation, "user", "long").await;
    let events = bodies(&setup, "/hook").await;
    let context = |text: &str| &events.iter().find(|event| event["data"]["text"] == text).unwrap()["data"]["context"];
    let texts = |text: &str| -> Vec<Value> {
        context(text)["messages"].as_array().unwrap().iter().map(|message| message["text"].clone()).collect()
    };
    let wanted: Vec<Value> = (10..59).map(|number: u32| number.to_string().into()).chain(["short".into()]).collect();
    assert_eq!((texts("short"), &context("short")["truncated"]), (wanted, &json!([])));
    assert_eq!(context("long")["truncated"], json!(["messages"]));
    assert_eq!((texts("long").len(), texts("long").pop().unwrap()), (13, json!("long")));
    assert!(setup.receiver.all().iter().all(|request| request.body.len() < LONGEST + 1024));
    assert_eq!(context("long")["contact"], Value::Null);
}

#[tokio::test]
async fn a_failing_bucket_delays_only_the_events_that_need_it() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    subscribed(&setup, &org).await;
    let plain = json!({"endpoint": format!("{}/plain", setup.receiver.url), "events": ["message.created"]});
    setup.post(&org, "/api/v1/outbound_webhook", plain).await;
    let assistant = setup.post(&org, "/api/v1/assistant", json!({})).await;
    let source = setup.post(&org, "/api/v1/datasource", json!({"name": "Handbook", "ds_type": "pdf"})).await;
    let file = json!({"name": "handbook.pdf", "size_bytes": 12});
    setup.post(&org, &format!("/api/v1/datasource/{}/file", id_of(&source)), file).await;
    let link = format!("/api/v1/assistant/{}/data_source/{}", id_of(&assistant), id_of(&source));
    setup.post(&org, &link, Value::Null).await;
    let conversation = setup.open(&org, &assistant).await;
    setup.faults.plan(|action, _| if action == "GetObject" { Fault::ServerError } else { Fault::None });
    say(&setup, &org, id_of(&conversation), "user", "Hello").await;
    assert_eq!((bodies(&setup, "/plain").await.len(), bodies(&setup, "/hook").await.len()), (1, 0));
    setup.faults.end();
    setup.minutes(1).await;
    let events = bodies(&setup, "/hook").await;
    assert_eq!((events.len(), bodies(&setup, "/plain").await.len()), (1, 1));
    // Its bytes are not uploaded.
    let file = &events[0]["data"]["context"]["datasources"][0]["files"][0];
    assert_eq!((&file["uploaded"], &file["download_url"]), (&json!(false), &Value::Null));
}

#[tokio::test]
async fn a_message_of_a_deleted_conversation_is_given_up() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let webhook = subscribed(&setup, &org).await;
    let assistant = setup.post(&org, "/api/v1/assistant", json!({})).await;
    let conversation = setup.open(&org, &assistant).await;
    say(&setup, &org, id_of(&conversation), "user", "Hello").await;
    setup.stack.stream.drain_for("record-changed").await.unwrap();
    setup.close(&org, &conversation).await;
    let path = format!("/api/v1/conversation/{}", id_of(&conversation));
    setup.ask(&org, "DELETE", &path, &Value::Null).await;
    setup.stack.stream.drain_for("send-delivery").await.unwrap();
    let deliveries = setup.outbox(&org, &webhook).await;
    assert_eq!(deliveries[0].error.as_deref(), Some("the conversation is gone"));
    assert_eq!(bodies(&setup, "/hook").await, Vec::<Value>::new());
}

/// A server that speaks chat completions: it answers with the prompt and the last message, and keeps what it was asked.
async fn chat_server() -> (String, Arc<Mutex<Vec<Value>>>) {
    async fn complete(State(asked): State<Arc<Mutex<Vec<Value>>>>, Json(body): Json<Value>) -> Json<Value> {
        let messages = body["messages"].as_array().unwrap();
        let said = format!("{} {}", messages[0]["content"], messages[messages.len() - 1]["content"]);
        asked.lock().unwrap().push(body);
        Json(json!({"choices": [{"message": {"role": "assistant", "content": said}}]}))
    }
    let asked = Arc::new(Mutex::new(Vec::new()));
    let router = Router::new().route("/v1/chat/completions", post(complete)).with_state(Arc::clone(&asked));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, asked)
}

/// The commands of the page, in their order.
fn commands() -> String {
    let page = std::fs::read_to_string(root().join("docs/RUNTIME.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_commands_of_the_page_connect_a_runtime() {
    let setup = Setup::with(|settings| Settings { clock: Clock::System, ..settings }).await;
    let org = setup.org().await;
    let background = setup.stack.background();
    let (chat, asked) = chat_server().await;
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let runtime = format!("http://127.0.0.1:{port}/");
    // The program ends with the test.
    let script = format!("set -euo pipefail\ntrap 'kill $(jobs -p)' EXIT\n{}\nread -r _", commands());
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(root()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell.envs([("API", &setup.stack.url), ("KEY", &org.key), ("CHAT_URL", &chat), ("RUNTIME", &runtime)]);
    let mut shell = shell.env("PORT", port.to_string()).env("PYTHONDONTWRITEBYTECODE", "1").spawn().unwrap();
    let answer = async {
        loop {
            let conversations = setup.get(&org, "/api/v1/conversation").await;
            if conversations["items"][0]["chat_count"] == 2 {
                return conversations["items"][0]["id"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let found = match tokio::time::timeout(Duration::from_mins(1), answer).await {
        Ok(conversation) => Some((conversation, refused(&runtime).await, again(&setup, &org).await)),
        Err(_) => None,
    };
    drop(shell.stdin.take());
    let output = tokio::task::spawn_blocking(|| shell.wait_with_output()).await.unwrap().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let (conversation, refused, again) = found.unwrap_or_else(|| panic!("no answer: {printed}"));
    let transcript = setup.get(&org, &format!("/api/v1/conversation/{conversation}")).await["transcript"].clone();
    background.stop().await;
    assert_eq!(transcript["items"][1]["sender_type"], "bot");
    assert_eq!(transcript["items"][1]["text"], r#""You are kind." "Hello""#);
    assert!(printed.contains("You are kind"), "{printed}");
    let asked = asked.lock().unwrap();
    assert_eq!((asked.len(), transcript["total"].as_u64()), (2, Some(2)), "the event came twice: {asked:?}");
    assert_eq!(again["status"], 204, "{again}");
    assert_eq!(transcript["items"][1]["in_reply_to"], transcript["items"][0]["id"]);
    assert_eq!(asked[0]["messages"].as_array().unwrap().len(), 2);
    assert_eq!(refused, 401);
}

/// Sends the event of the user's message again. Its delivery, when this has arrived.
async fn again(setup: &Setup, org: &Org) -> Value {
    let webhooks = setup.get(org, "/api/v1/outbound_webhook/list").await;
    let deliveries = format!("/api/v1/outbound_webhook/{}/logs", id_of(&webhooks["items"][0]));
    let first = setup.get(org, &deliveries).await["items"][0].clone();
    setup.post(org, &format!("{deliveries}/{}/redeliver", id_of(&first)), Value::Null).await;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let items = setup.get(org, &deliveries).await["items"].take();
        let delivery = items.as_array().unwrap().iter().find(|delivery| delivery["id"] == first["id"]).unwrap().clone();
        if delivery["log"].as_array().unwrap().len() == 2 {
            return delivery;
        }
    }
    panic!("the event did not come again")
}

/// The status of the answer of the runtime to an event with a wrong signature.
async fn refused(runtime: &str) -> u16 {
    let event = json!({"event": "message.created", "data": {"sender_type": "user", "context": {"assistant": {}}}});
    let time = Clock::System.now().unix_seconds().to_string();
    let request = http_client().post(runtime).header("webhook-id", "1").header("webhook-timestamp", time);
    request.header("webhook-signature", "v1,AAAA").body(event.to_string()).send().await.unwrap().status().as_u16()
}

#[test]
fn the_program_has_forty_lines_at_most() {
    let program = std::fs::read_to_string(root().join("clients/runtime/runtime.py")).unwrap();
    assert!(program.lines().count() <= 40);
}
