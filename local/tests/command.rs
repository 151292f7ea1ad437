//! Runs the built program of `cargo local` and asks it over HTTP.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use repository::root;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, PATIENT, demo_id, http_client, scratch};

const FREE_PORTS: &[&str] =
    &["--port", "0", "--dynamodb-port", "0", "--s3-port", "0", "--kms-port", "0", "--payment-port", "0"];

struct Running {
    child: Child,
    greeting: Vec<String>,
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_local"));
    command.args(arguments).current_dir(root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn refused(arguments: &[&str]) -> String {
    let Output { status, stderr, stdout } = program(&[FREE_PORTS, arguments].concat()).output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stdout.is_empty());
    stderr
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = program(&[FREE_PORTS, arguments].concat()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let mut greeting = Vec::new();
        for line in lines.by_ref() {
            greeting.push(line.unwrap());
            if greeting.last().unwrap().starts_with("Try it ") {
                break;
            }
        }
        Self { child, greeting }
    }

    /// The words in quotes in the `curl` line: the header with the key, and the address.
    fn request(&self) -> [&str; 2] {
        let words: Vec<_> = self.greeting.last().unwrap().split('\'').skip(1).step_by(2).collect();
        words.try_into().unwrap()
    }

    /// The address in the `curl` line.
    fn url(&self) -> &str {
        self.request()[1]
    }

    /// The request of the `curl` line, to be sent.
    fn to_send(&self) -> reqwest::RequestBuilder {
        let [header, url] = self.request();
        let (name, value) = header.split_once(": ").unwrap();
        http_client().get(url).header(name, value)
    }

    /// The answer to the request of the `curl` line.
    async fn get(&self) -> (u16, Value) {
        let response = self.to_send().send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    fn interrupt(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let mut rest = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

#[tokio::test]
async fn the_greeting_has_a_working_request_and_an_interrupt_exits_0() {
    let running = Running::start(&[]);
    let text = running.greeting.join("\n");
    assert!(text.contains("API       http://127.0.0.1:") && text.contains("DynamoDB  http://127.0.0.1:"), "{text}");
    assert!(text.contains("S3        http://127.0.0.1:") && text.contains("Console   http://127.0.0.1:"), "{text}");
    assert!(running.greeting.len() <= 10, "{text}");
    assert!(!running.url().contains("in-demo"), "the key is in the address: {text}");
    let (status, body) = running.get().await;
    assert_eq!((status, &body["data"]["total"]), (200, &120.into()));
    let page = running.greeting.iter().find_map(|line| line.strip_prefix("Page      ")).unwrap();
    let page = http_client().get(page).send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.text().await.unwrap().contains("data-key=\"in-demo-acme-admin-"));
    let (code, rest) = running.interrupt();
    assert_eq!(code, Some(0));
    let line = rest.lines().find(|line| line.starts_with("GET ")).unwrap();
    assert!(line.starts_with("GET /api/v1/user/get_agent_list/ 200 ") && line.contains(" calls, "), "{line}");
    assert!(!rest.contains("in-demo"), "a request's line has its key: {rest}");
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn every_port_of_the_program_refuses_a_foreign_host_and_origin() {
    let running = Running::start(&[]);
    let process = format!("/proc/{}", running.child.id());
    let handles = std::fs::read_dir(format!("{process}/fd")).unwrap();
    let sockets: Vec<_> = handles.filter_map(|handle| std::fs::read_link(handle.unwrap().path()).ok()).collect();
    let table = std::fs::read_to_string(format!("{process}/net/tcp")).unwrap();
    // The second column is the address, the fourth the state (0A listens), the tenth the socket.
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|row| row.split_whitespace().collect()).collect();
    let listens = |row: &&Vec<&str>| row[3] == "0A" && sockets.contains(&format!("socket:[{}]", row[9]).into());
    let port = |row: &Vec<&str>| u16::from_str_radix(row[1].rsplit(':').next().unwrap(), 16).unwrap();
    let ports: Vec<u16> = rows.iter().filter(listens).map(port).collect();
    assert_eq!(ports.len(), 5, "{table}");
    for port in ports {
        for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
            let request = http_client().post(format!("http://127.0.0.1:{port}/")).header(name, value);
            assert_eq!(request.send().await.unwrap().status(), 403, "{port} {name}");
        }
    }
    running.interrupt();
}

#[tokio::test]
async fn the_allowed_origin_is_an_option() {
    let running = Running::start(&["--cors-allow-origin", "http://localhost:5173"]);
    let ask = async |origin: &str| {
        let answer = running.to_send().header("origin", origin).send().await.unwrap();
        (answer.status().as_u16(), answer.headers().get("access-control-allow-origin").cloned())
    };
    let allowed = ask("http://localhost:5173").await;
    assert_eq!((allowed.0, allowed.1.unwrap()), (200, "http://localhost:5173".parse().unwrap()));
    assert_eq!(ask("http://localhost:5174").await, (403, None));
    running.interrupt();
}

/// Asserts that the users of two conversations get an answer. Each may take as long as [`PATIENT`]. The schedules run at
/// the start and then a minute later, so within this time only the functions on the stream send the events.
async fn users_are_answered(running: &Running) {
    let api = running.url().split_once("/api/v1").unwrap().0;
    let send = async |request: reqwest::RequestBuilder| -> Value {
        request.bearer_auth(ACME).send().await.unwrap().json::<Value>().await.unwrap()["data"].take()
    };
    for text in ["One", "Two"] {
        let open = json!({"assistant_id": demo_id('a', "assistant_id")}).to_string();
        let open = http_client().post(format!("{api}/api/v1/conversation")).body(open);
        let conversation = send(open).await["id"].as_str().unwrap().to_owned();
        let path = format!("{api}/api/v1/conversation/{conversation}");
        let message = json!({"sender_type": "user", "text": text}).to_string();
        let begun = Instant::now();
        send(http_client().post(format!("{path}/message")).body(message)).await;
        let answer = loop {
            let mut items = send(http_client().get(&path)).await["transcript"]["items"].take();
            if items[1].is_object() || begun.elapsed() > PATIENT {
                break items[1].take();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!((&answer["sender_type"], &answer["text"]), (&"bot".into(), &format!("You said: {text}").into()));
    }
}

#[tokio::test]
async fn a_user_of_the_demo_set_is_answered_before_the_next_tick() {
    let file = scratch("answered.db");
    let data = ["--data", file.to_str().unwrap()];
    let running = Running::start(&data);
    users_are_answered(&running).await;
    running.interrupt();
    let webhooks = async |arguments: &[&str]| -> Vec<Value> {
        let running = Running::start(arguments);
        let api = running.url().split_once("/api/v1").unwrap().0;
        let webhooks = http_client().get(format!("{api}/api/v1/outbound_webhook/list?size=100"));
        let mut webhooks: Value = webhooks.bearer_auth(ACME).send().await.unwrap().json().await.unwrap();
        running.interrupt();
        let items = webhooks["data"]["items"].as_array_mut().unwrap();
        items.retain(|webhook| webhook["endpoint"].as_str().unwrap().ends_with("/runtime"));
        std::mem::take(items)
    };
    let again = webhooks(&data).await;
    assert_eq!((again.len(), &again[0]["enabled"]), (1, &true.into()), "another start makes no second webhook");
    let off = webhooks(&[&data[..], &["--no-runtime"]].concat()).await;
    assert_eq!((off.len(), &off[0]["enabled"]), (1, &false.into()));
    assert_eq!(webhooks(&["--no-runtime"]).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_data_file_keeps_the_changes_after_a_restart() {
    let file = scratch("kept.db");
    let data = ["--data", file.to_str().unwrap()];
    let delete_tag = async |running: &Running| {
        let (url, tag) = (running.url().split_once("/api/v1").unwrap().0, demo_id('a', "tag_id"));
        http_client().delete(format!("{url}/api/v1/tag/{tag}?api_key={ACME}")).send().await.unwrap().status()
    };
    let first = Running::start(&data);
    assert_eq!(delete_tag(&first).await, 200);
    assert_eq!(first.interrupt().0, Some(0));
    let second = Running::start(&data);
    assert_eq!(second.get().await.1["data"]["total"], 120);
    assert_eq!(delete_tag(&second).await, 404, "the demo set came back");
    assert_eq!(second.interrupt().0, Some(0));
}

#[tokio::test]
async fn recorded_events_have_the_form_of_api_gateway() {
    let folder = scratch("recorded");
    let running = Running::start(&["--record", folder.to_str().unwrap()]);
    running.get().await;
    running.get().await;
    running.interrupt();
    assert!(folder.join("get-agent-list.2.json").exists());
    let event = std::fs::read_to_string(folder.join("get-agent-list.json")).unwrap();
    let event: Value = serde_json::from_str(&event).unwrap();
    assert_eq!(event["httpMethod"], "GET");
    assert_eq!(event["path"], "/api/v1/user/get_agent_list/");
    assert_eq!(event["queryStringParameters"]["size"], "2");
    assert_eq!(event["requestContext"]["stage"], "local");
}

#[test]
fn each_problem_at_the_start_is_reported_in_one_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for option in ["--port", "--dynamodb-port", "--s3-port", "--kms-port", "--payment-port"] {
        assert!(refused(&[option, &port]).contains(&format!("is taken by another program; {option} ")));
    }
    for option in ["--demo", "--template"] {
        assert!(refused(&[option, "no/such/file"]).contains("no/such/file: No such file"));
    }
    let broken = scratch("broken.yaml");
    std::fs::write(&broken, "Resources: [").unwrap();
    assert!(refused(&["--template", broken.to_str().unwrap()]).contains("broken.yaml"));
    let data = scratch("no-database");
    std::fs::write(&data, "this is no database, but text").unwrap();
    assert!(refused(&["--data", data.to_str().unwrap()]).contains("no-database"));
}
