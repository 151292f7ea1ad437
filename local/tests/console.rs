//! Asks the console of `cargo local` over HTTP: input is text, the forms work, and other hosts are refused.

use std::sync::Arc;

use local::Stack;
use local::console::PAGES;
use local::http::Call;
use local::journal::Entry;
use repository::root;
use serde_json::{Value, json};
use shared::mcp::message::VERSIONS;
use shared::routes;

use crate::support::console::{operate, skip, text, watched};
use crate::support::fixture::{ACME, GLOBEX, call, data, get, http_client, id, kind, path, post, streaming};
use crate::support::keyed::keyed;

const HOSTILE: &str = "<script>alert(1)</script>";

/// The page of the last request.
fn request(stack: &Stack) -> String {
    format!("/console/requests/{}", stack.journal.newest(1)[0].request_id)
}

#[tokio::test]
async fn the_page_shows_requests_with_issues_and_without_queries() {
    let stack = watched().await;
    assert!(text(&stack, "/console/requests").await.contains("No request yet."));
    let tag = format!("{}/api/v1/tag?api_key={ACME}", stack.url);
    let wrong = http_client().post(&tag).json(&json!({"name": 1})).send().await.unwrap();
    assert_eq!(wrong.status(), 422);
    let made = http_client().post(&tag).json(&json!({"name": HOSTILE})).send().await.unwrap();
    assert_eq!(made.status(), 201);
    for page in ["/", "/console/requests", &request(&stack)] {
        let shown = text(&stack, page).await;
        assert!(shown.contains("create-tag"), "{page}: {shown}");
        assert!(!shown.contains(ACME) && !shown.contains("api_key="), "{page}: {shown}");
    }
    let shown = text(&stack, "/console/requests").await;
    assert_eq!(shown.matches("<strong>create-tag</strong>").count(), 2, "{shown}");
    assert!(shown.contains("<code>body.name</code> Input should be a valid string"), "{shown}");
    assert!(shown.contains(">422<"), "{shown}");
}

#[tokio::test]
async fn the_shown_calls_of_a_request_equal_the_billed_ones() {
    let stack = watched().await;
    let assistant = path(&routes::READ_ASSISTANT, |_| id('a', kind::ASSISTANT, 0));
    let close = path(&routes::CLOSE_CONVERSATION, |_| id('a', kind::CONVERSATION, 1));
    let tag = json!({"name": "New"}).to_string();
    for (method, path, body) in [
        ("GET", assistant.as_str(), ""),
        ("GET", routes::LIST_CONTACTS.path, ""),
        ("POST", routes::CREATE_TAG.path, &tag),
        ("POST", &close, ""),
        ("DELETE", &path(&routes::DELETE_TAG, |_| id('a', kind::TAG, 0)), ""),
        ("GET", "/api/v1/nothing", ""),
    ] {
        let answer = stack.answer(&Call { method: method.into(), body: body.into(), ..call("GET", path, ACME) }).await;
        let entry = stack.journal.newest(1).remove(0);
        assert_eq!(entry.calls.len(), usize::try_from(answer.cost.calls).unwrap(), "{path}: {:?}", entry.calls);
        let (read, write): (Vec<_>, Vec<_>) =
            entry.calls.iter().partition(|call| ["GetItem", "BatchGetItem", "Query"].contains(&call.action.as_str()));
        let units = |calls: &[&local::calls::DatabaseCall]| calls.iter().map(|call| call.units).sum::<f64>();
        assert_eq!((units(&read), units(&write)), (answer.cost.read_units, answer.cost.write_units), "{path}");
        assert!(entry.calls.iter().all(|call| !call.items.is_empty() && call.took.is_some()), "{:?}", entry.calls);
    }
}

#[tokio::test]
async fn a_request_can_be_repeated_as_a_command_and_as_an_event() {
    let stack = watched().await;
    let tag = format!("{}/api/v1/tag?api_key={ACME}", stack.url);
    http_client().post(&tag).json(&json!({"name": "It's"})).send().await.unwrap().error_for_status().unwrap();
    let request = request(&stack);
    let command = text(&stack, &format!("{request}/curl")).await;
    // The command runs on another thread, because the stack answers on this one.
    let command = format!("{command} --silent --max-time 30");
    let sent = command.clone();
    let shell = move || std::process::Command::new("sh").args(["-c", &sent]).output().unwrap();
    let shell = tokio::task::spawn_blocking(shell).await.unwrap();
    assert!(String::from_utf8_lossy(&shell.stdout).contains("It's"), "{command}: {shell:?}");
    let event = text(&stack, &format!("{request}/event")).await;
    let invoked = stack.gateway.invoke_by_name("create-tag", event.as_bytes()).await;
    assert!(invoked.body.contains("It's"), "{event}: {invoked:?}");
    let tags = get(&stack, routes::LIST_TAGS.path).await;
    assert_eq!(tags.to_string().matches("It's").count(), 3);
    let missing = http_client().get(format!("{}/console/requests/1/curl", stack.url)).send().await.unwrap();
    assert_eq!(missing.status(), 404);
}

#[tokio::test]
async fn events_and_messages_are_shown_as_text() {
    let stack = watched().await;
    let event = json!({"event": HOSTILE, "data": HOSTILE});
    let to = format!("{}/inbox/events/%3Cscript%3E", stack.url);
    http_client().post(to).header("x-from", HOSTILE).json(&event).send().await.unwrap().error_for_status().unwrap();
    let shown = text(&stack, "/console/events").await;
    assert_eq!(shown.matches("&lt;script&gt;").count(), 5, "{shown}");
    for page in
        ["/", "/console/events", "/console/requests?search=%3Cscript%3E&status=%3Cscript%3E&operation=%3Cscript%3E"]
    {
        let shown = text(&stack, page).await;
        assert_eq!(shown.matches("<script").count(), 1, "{shown}");
    }
    let conversation = id('a', kind::CONVERSATION, 1);
    let message = json!({"conversation_id": conversation, "sender_type": "user", "text": HOSTILE});
    assert_eq!(operate(&stack, "add-message", &message).await, "Answered 201.");
    let shown = text(&stack, &format!("/console/conversations?org=acme&conversation={conversation}")).await;
    assert!(shown.contains("&lt;script&gt;alert") && shown.matches("<script").count() == 1, "{shown}");
    // An invalid query is shown as text too.
    let shown = text(&stack, "/console/conversations?conversation=%3Cscript%3E&org=%3Cscript%3E").await;
    assert_eq!(shown.matches("<script").count(), 1, "{shown}");
}

#[tokio::test]
async fn a_request_from_another_host_gets_403() {
    let stack = watched().await;
    let pages = PAGES.iter().map(|page| page.path);
    let reads = pages.chain([
        "/console/changes",
        "/inbox",
        "/inbox/answers",
        "/console/requests/1/curl",
        "/console/start/curl",
    ]);
    let writes = ["/console/forms/create-tag", "/console/time", "/console/requests/1/again"];
    for (method, path) in reads.map(|path| ("GET", path)).chain(writes.map(|path| ("POST", path))) {
        for (name, value) in [("host", "rebound.example"), ("origin", "http://page.example"), ("origin", "null")] {
            let request = http_client().request(method.parse().unwrap(), format!("{}{path}", stack.url));
            let answer = request.header(name, value).body(r#"{"name": "x", "seconds": 1}"#).send().await.unwrap();
            assert_eq!(answer.status(), 403, "{path} {name}");
        }
    }
    assert_eq!(stack.journal.newest(1).len(), 0);
    assert!(text(&stack, "/console/time").await.contains("No time was skipped yet."));
}

#[tokio::test]
async fn the_stream_of_changes_reports_each_change() {
    let stack = Stack::start(streaming()).await.unwrap();
    let mut changes = http_client().get(format!("{}/console/changes", stack.url)).send().await.unwrap();
    let mut text = String::new();
    for _ in 0..3 {
        let before = text.matches("data: ").count();
        while text.matches("data: ").count() == before {
            text += std::str::from_utf8(&changes.chunk().await.unwrap().unwrap()).unwrap();
        }
        http_client().get(format!("{}/api/v1/nothing", stack.url)).send().await.unwrap();
    }
    assert!(text.starts_with("data: 0\n\ndata: 1\n\n"), "{text}");
}

#[tokio::test]
async fn reading_a_page_adds_no_change() {
    let stack = watched().await;
    let before = *stack.journal.changes().borrow();
    for page in &PAGES {
        text(&stack, page.path).await;
    }
    assert_eq!((*stack.journal.changes().borrow(), stack.journal.newest(1).len()), (before, 0));
}

#[tokio::test]
async fn the_forms_open_continue_and_close_a_conversation() {
    let stack = watched().await;
    let opened = operate(&stack, "open-conversation", &json!({"assistant_id": id('a', kind::ASSISTANT, 0)})).await;
    assert_eq!(opened, "Answered 201.");
    let conversations = get(&stack, routes::LIST_CONVERSATIONS.path).await;
    let newest = conversations["items"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    for (sender, words) in [("user", "Is anybody there?"), ("bot", "Yes, I am.")] {
        let message = json!({"conversation_id": newest, "sender_type": sender, "text": words});
        assert_eq!(operate(&stack, "add-message", &message).await, "Answered 201.");
    }
    let page = format!("/console/conversations?org=acme&conversation={newest}");
    let shown = text(&stack, &page).await;
    let said = shown.split("id=\"transcript\"").nth(1).unwrap();
    assert!(said.find("Is anybody there?").unwrap() < said.find("Yes, I am.").unwrap(), "{shown}");
    let close = json!({"conversation_id": newest});
    assert_eq!(operate(&stack, "close-conversation", &close).await, "Answered 200.");
    let says = operate(&stack, "close-conversation", &close).await;
    assert!(says.starts_with("Answered 409. path.conversation_id "), "{says}");
    // Another organisation has no such conversation.
    let shown = text(&stack, &page.replace("acme", "globex")).await;
    assert!(shown.contains("not_found") && !shown.contains("Is anybody there?"), "{shown}");
}

#[tokio::test]
async fn the_page_shows_every_attempt_at_an_event() {
    let stack = watched().await;
    stack.inbox.answer_next(serde_json::from_value(json!({"count": 2, "status": 503})).unwrap());
    let close = json!({"conversation_id": id('a', kind::CONVERSATION, 1)});
    assert_eq!(operate(&stack, "close-conversation", &close).await, "Answered 200.");
    stack.settle().await.unwrap();
    let attempts = async || text(&stack, "/console/deliveries").await.matches(r#"<li class="attempt">"#).count();
    assert_eq!(attempts().await, 1);
    assert!(skip(&stack, 300).await.contains(" came due."));
    assert_eq!(attempts().await, 2);
    assert!(!skip(&stack, 3600).await.contains(" 0 came due."));
    assert_eq!(attempts().await, 3);
    let shown = text(&stack, "/console/deliveries").await;
    // Each attempt is verified at its arrival, so the skipped hours do not make a signature too old.
    assert_eq!(shown.matches(r#"<span class="badge good">verified</span>"#).count(), 3, "{shown}");
    assert_eq!(shown.matches(">503</span>").count(), 2, "{shown}");
    let deliveries = path(&routes::LIST_DELIVERIES, |_| id('a', kind::WEBHOOK, 1));
    let delivery = get(&stack, &deliveries).await["items"][1]["id"].clone();
    let again = json!({"webhook_id": id('a', kind::WEBHOOK, 1), "delivery_id": delivery});
    assert_eq!(operate(&stack, "redeliver", &again).await, "Answered 200.");
    stack.settle().await.unwrap();
    assert_eq!(attempts().await, 4);
    let time = text(&stack, "/console/time").await;
    assert!(time.contains("DELIVERY: ORG#") && time.matches("<time ").count() == 4, "{time}");
}

#[tokio::test]
async fn the_page_shows_an_open_circuit() {
    let stack = watched().await;
    stack.inbox.answer_next(serde_json::from_value(json!({"count": 10, "status": 503})).unwrap());
    let shown = text(&stack, "/console/deliveries").await;
    assert!(shown.contains(r#"<span class="badge good">closed</span>"#) && !shown.contains(">open"), "{shown}");
    for _ in 0..3 {
        operate(&stack, "send-test-event", &json!({"webhook_id": id('a', kind::WEBHOOK, 1)})).await;
        stack.settle().await.unwrap();
    }
    let shown = text(&stack, "/console/deliveries").await;
    assert!(shown.contains(r#"<span class="badge bad">open</span>"#), "{shown}");
}

#[tokio::test]
async fn the_forms_pause_resume_and_cancel_a_campaign() {
    let stack = watched().await;
    let campaign = json!({"campaign_id": id('a', kind::CAMPAIGN, 0)});
    for (operation, status) in
        [("resume-campaign", "queued"), ("pause-campaign", "paused"), ("cancel-campaign", "cancelled")]
    {
        assert_eq!(operate(&stack, operation, &campaign).await, "Answered 200.", "{operation}");
        let shown = text(&stack, "/console/campaigns").await;
        assert!(shown.contains(&format!(">{status}</span>")), "{operation}: {shown}");
    }
    assert!(text(&stack, "/console/campaigns").await.contains(r#"<progress aria-label="3 of 3" value="3" max="3">"#));
}

#[tokio::test]
async fn the_payments_page_sends_a_payment_event() {
    let stack = watched().await;
    let agency = id('a', kind::AGENCY, 1);
    let send = async |event: &Value| -> Value {
        let send = http_client().post(format!("{}/console/payments", stack.url)).json(event);
        send.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
    };
    let checkout = json!({
        "type": "checkout.session.completed", "agency_id": agency, "user_id": id('a', kind::USER, 119), "customer_id": "cus_page",
    });
    assert!(send(&checkout).await["error"].as_str().unwrap().contains("no webhook is registered"));
    // The webhook of the demo set is unknown to this provider, so it is set up first.
    let set_up = operate(&stack, "setup-payment-webhook", &json!({"agency_id": agency})).await;
    assert_eq!(set_up, "Answered 200.");
    assert_eq!(send(&checkout).await["message"], r#"checkout.session.completed was answered 200: "applied""#);
    let shown = text(&stack, "/console/payments").await;
    assert!(shown.contains("<td>cus_page</td>") && shown.contains(">set up<"), "{shown}");
    // An agency is shown by the name of its branding.
    assert!(shown.contains(&format!("/console/records/agency/{agency}?org=acme\">Acme</a>")), "{shown}");
    assert!(shown.contains(&format!("<option value=\"{agency}\">Acme</option>")), "{shown}");
}

/// Sends a form of the page of a request, and returns the address to which it leads.
async fn sent(stack: &Stack, to: &str, fields: &Value) -> String {
    let answer = http_client().post(format!("{}{to}", stack.url)).json(fields).send().await.unwrap();
    let says: Value = answer.error_for_status().unwrap().json().await.unwrap();
    says["to"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_request_leads_to_its_events_and_they_lead_back() {
    let stack = watched().await;
    let open = json!({"assistant_id": id('a', kind::ASSISTANT, 0)}).to_string();
    let opened = data(&stack.answer(&post(routes::OPEN_CONVERSATION.path, ACME, open)).await);
    for conversation in [id('a', kind::CONVERSATION, 1), opened["id"].as_str().unwrap().to_owned()] {
        let close = path(&routes::CLOSE_CONVERSATION, |_| conversation.clone());
        stack.answer(&post(&close, ACME, "")).await;
    }
    stack.answer(&post(routes::CREATE_TAG.path, ACME, r#"{"name": "No event"}"#)).await;
    // The stream passes the changes of all requests on together.
    stack.settle().await.unwrap();
    let names = |entry: &Arc<Entry>| (entry.name().to_owned(), entry.request_id.clone());
    let requests: Vec<_> = stack.journal.newest(3).iter().map(names).collect();
    assert_eq!(requests[1].0, "close-conversation");
    for (name, request) in &requests {
        let (shown, leads) = (text(&stack, &format!("/console/requests/{request}")).await, name != "create-tag");
        assert_eq!(shown.matches("/console/events#event-").count(), usize::from(leads), "{name}: {shown}");
        assert_eq!(shown.contains("#delivery-"), leads, "{name}: {shown}");
    }
    for page in ["/console/events", "/console/deliveries"] {
        let shown = text(&stack, page).await;
        for (_, request) in requests.iter().filter(|(name, _)| name == "close-conversation") {
            assert_eq!(shown.matches(&format!("/console/requests/{request}")).count(), 1, "{page}: {shown}");
        }
    }
    let changes = stack.journal.traces.newest_changes(200);
    let has_change = |request: &str| changes.iter().any(|change| change.trace.as_deref() == Some(request));
    assert!(requests.iter().all(|(_, request)| has_change(request)), "{changes:?}");
    assert!(changes.iter().any(|change| change.taken_by.contains(&"record-changed")), "{changes:?}");
}

#[tokio::test]
async fn requests_can_be_filtered_and_name_their_records() {
    let stack = watched().await;
    let widget = path(&routes::READ_WIDGET, |_| id('a', kind::WIDGET, 1));
    let of_globex = path(&routes::READ_TAG, |_| id('b', kind::TAG, 1));
    for (method, path, key) in
        [("GET", widget.as_str(), ACME), ("GET", &of_globex, GLOBEX), ("GET", "/api/v1/nothing", ACME)]
    {
        stack.answer(&call(method, path, key)).await;
    }
    let shown = async |query: &str| text(&stack, &format!("/console/requests?{query}")).await;
    let all = shown("").await;
    let link = format!("/console/records/widget/{}?org=acme", id('a', kind::WIDGET, 1));
    assert!(all.contains(&link) && all.contains(">Web chat</a>"), "{all}");
    for (query, found) in [
        ("", vec!["read-widget", "read-tag", "nothing"]),
        ("status=2&operation=", vec!["read-widget", "read-tag"]),
        ("status=4", vec!["nothing"]),
        ("operation=read-tag", vec!["read-tag"]),
        ("org=acme", vec!["read-widget", "nothing"]),
        ("org=globex&status=4", vec![]),
        ("search=WEB+chat", vec!["read-widget"]),
        ("search=api/v1/nothing", vec!["nothing"]),
    ] {
        let shown = shown(query).await;
        let rows = shown.split("<tbody>").nth(1).unwrap_or_default();
        assert_eq!(rows.matches("<tr>").count(), found.len(), "{query}: {shown}");
        assert!(found.iter().all(|name| rows.contains(name)), "{query}: {shown}");
    }
}

#[tokio::test]
async fn a_request_can_be_sent_again_and_edited() {
    let stack = watched().await;
    stack.answer(&keyed(post(routes::CREATE_TAG.path, ACME, r#"{"name": "First"}"#), "1")).await;
    let page = request(&stack);
    let again = sent(&stack, &format!("{page}/again"), &json!({})).await;
    let edited = sent(&stack, &format!("{page}/edited"), &json!({"body": r#"{"name": "Second"}"#})).await;
    for (page, name) in [(again, "First"), (edited, "Second")] {
        let shown = text(&stack, &page).await;
        assert!(shown.contains(name) && shown.contains(">201<") && !shown.contains(ACME), "{shown}");
    }
    // The first request was repeated with its idempotency key, so it has made one tag.
    let tags = get(&stack, routes::LIST_TAGS.path).await.to_string();
    assert_eq!((tags.matches("First").count(), tags.matches("Second").count()), (1, 1), "{tags}");
    let tool: Value = serde_json::from_str(&text(&stack, &format!("{page}/mcp")).await).unwrap();
    assert_eq!(tool["params"]["name"], "create-tag");
    assert_eq!(tool["params"]["arguments"]["body"], json!({"name": "First"}));
    let headers = [("authorization", format!("Bearer {ACME}")), ("mcp-protocol-version", VERSIONS[1].to_owned())];
    let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let body = tool.to_string().into();
    let answer = Call { method: "POST".into(), path: routes::MCP.path.into(), headers, body, ..Call::default() };
    let answer = stack.answer(&answer).await;
    assert!(answer.status == 200 && answer.body.contains("First"), "{answer:?}");
    let missing = http_client().get(format!("{}/console/requests/1", stack.url)).send().await.unwrap();
    assert_eq!(missing.status(), 404);
}

#[tokio::test]
async fn the_start_page_ticks_what_was_done() {
    let stack = watched().await;
    let ticks = async || text(&stack, "/").await.matches(r#"<li class="done">"#).count();
    // What the console itself sends is no first request of its user.
    operate(&stack, "create-tag", &json!({"name": "By the console"})).await;
    assert_eq!(ticks().await, 0);
    stack.answer(&call("GET", routes::LIST_TAGS.path, ACME)).await;
    assert_eq!(ticks().await, 1);
    operate(&stack, "close-conversation", &json!({"conversation_id": id('a', kind::CONVERSATION, 1)})).await;
    assert_eq!(ticks().await, 2);
    stack.inbox.answer_next(serde_json::from_value(json!({"count": 1, "status": 503})).unwrap());
    operate(&stack, "send-test-event", &json!({"webhook_id": id('a', kind::WEBHOOK, 1)})).await;
    stack.settle().await.unwrap();
    assert_eq!(ticks().await, 3);
    let shown = text(&stack, "/").await;
    assert!(shown.contains("webhook.test") && shown.contains("close-conversation"), "{shown}");
    let command = text(&stack, "/console/start/curl").await;
    assert!(command.starts_with("curl ") && command.contains(ACME) && !shown.contains(ACME), "{command}");
}

#[test]
fn style_and_script_are_small_and_call_no_other_host() {
    let [style, script] = ["console.css", "console.js"]
        .map(|name| std::fs::read_to_string(root().join("local/src/console").join(name)).unwrap());
    assert!(style.len() + script.len() < 60 * 1024);
    assert!(!style.contains("url(") && !style.contains("@import") && !script.contains("://"));
}
