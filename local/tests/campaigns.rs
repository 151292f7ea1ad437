//! Sends campaigns: every contact gets one conversation, one message at the rate of the widget, and an outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use local::Settings;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::assistant::Assistant;
use shared::records::contact::Contact;
use shared::records::delivery;
use shared::records::widget::{Widget, WidgetType};
use shared::values::id::AssistantId;
use shared::values::time::Clock;
use uuid::Uuid;

use crate::support::crashes::crashes_everywhere;
use crate::support::fixture::data;
use crate::support::sender::{Sender, all, event, within_the_rate};
use crate::support::sending::{Setup, events, id_of, is_signed_with};

/// The default rate of a stack, in events per second.
const RATE: usize = 10;
const DAY: i64 = 86_400;

#[tokio::test]
async fn a_chat_without_a_connector_stores_the_message_for_each_contact() {
    let sender = Sender::new(false, 12).await;
    let id = sender.run(json!({"message": "Sale!"})).await;
    let queued = (sender.campaign(&id).await.0["status"].clone(), sender.outcome(&id).await);
    assert_eq!(queued, (json!("queued"), all("queued", 12)));
    sender.minute(&[&id]).await;
    let (campaign, contacts) = sender.campaign(&id).await;
    assert_eq!(campaign["status"], "completed");
    let conversations = sender.conversations().await;
    assert_eq!(conversations.len(), 12);
    for ((contact, conversation), wanted) in contacts.iter().zip(&conversations).zip(&sender.contacts) {
        assert_eq!((&contact["status"], &contact["error"]), (&json!("stored"), &Value::Null));
        assert_eq!((&contact["contact_id"], &contact["conversation_id"]), (&json!(wanted.id), &conversation["id"]));
        let names = ["assistant_id", "widget_id", "contact_id", "status"];
        let fields = [sender.assistant["id"].clone(), json!(sender.widget.id), json!(wanted.id), json!("open")];
        assert_eq!(names.map(|name| conversation[name].clone()), fields);
        let said = sender.transcript(&conversation["id"]).await;
        let said: Vec<_> = said.iter().map(|message| (message.sender_type.as_str(), &message.text[..])).collect();
        assert_eq!((&said[..], &conversation["chat_count"]), (&[("bot", "Sale!")][..], &json!(1)));
    }
    assert_eq!(sender.setup.due(), BTreeMap::new());
    assert_eq!(sender.setup.receiver.all(), []);
}

#[tokio::test]
async fn a_connector_gets_one_signed_event_per_contact() {
    for (kind, name) in [(WidgetType::Sms, "campaign.message"), (WidgetType::PlivoCall, "campaign.call")] {
        let sender = Sender::of(Setup::start().await, kind, true, 3).await;
        let id = sender.run(json!({"message": "Sale!"})).await;
        sender.setup.pass(60);
        sender.setup.ticks().await;
        assert_eq!(sender.outcome(&id).await, all("queued", 3));
        sender.setup.settle().await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!((&campaign["status"], sender.outcome(&id).await), (&json!("completed"), sender.done(3)));
        let mut received = sender.received();
        received.sort_by_key(|request| request.headers["webhook-id"].clone());
        assert_eq!((received.len(), events(&received).len()), (3, 3));
        for ((request, contact), who) in received.iter().zip(&contacts).zip(&sender.contacts) {
            assert!(is_signed_with(request, &sender.webhook["secret"]));
            let said = sender.transcript(&contact["conversation_id"]).await;
            let wanted = format!(
                r#"{{"id":"{}","object":"event","event":"{name}","created_at":{},"data":{{"campaign_id":"{id}","campaign_contact_id":{},"widget_id":"{}","assistant_id":{},"conversation_id":{},"contact_id":"{}","message_id":{},"message":{},"contact":{}}}}}"#,
                id_of(contact),
                event(request)["created_at"],
                contact["id"],
                sender.widget.id,
                sender.assistant["id"],
                contact["conversation_id"],
                who.id,
                json!(said.first().map(|message| message.id)),
                if kind.calls() { "null" } else { r#""Sale!""# },
                serde_json::to_string(who).unwrap(),
            );
            assert_eq!(String::from_utf8_lossy(&request.body), wanted);
            assert_eq!(said.len(), usize::from(!kind.calls()));
        }
        assert_eq!(sender.setup.receiver.received("/webhook"), [], "the webhook got an event of the connector");
        assert_eq!(sender.setup.due(), BTreeMap::new());
    }
}

#[tokio::test]
async fn a_retried_event_changes_only_its_contact() {
    let sender = Sender::new(true, 1).await;
    let (setup, org) = (&sender.setup, &sender.org);
    setup.receiver.behave("/connector", Behaviour::Recovering { failures: 1, then: 200 });
    let id = sender.run(json!({})).await;
    sender.minute(&[&id]).await;
    let new_fields = json!({
        "first_name": "Another", "last_name": "Name", "email": "other@example.com", "phone_number": "+4915199999999",
        "attributes": {"changed": true},
    });
    let changed =
        data(&setup.ask(org, "PUT", &format!("/api/v1/contact/{}", sender.contacts[0].id), &new_fields).await);
    sender.until_the_end(&id).await;
    let [first, second] = &sender.received()[..] else { panic!("not two attempts") };
    let (first, mut second) = (event(first), event(second));
    assert_ne!(first["data"]["contact"], changed);
    assert_eq!(second["data"]["contact"], changed);
    second["data"]["contact"] = first["data"]["contact"].clone();
    assert_eq!(second, first);
}

#[tokio::test]
async fn a_message_continues_the_open_conversation_by_default() {
    for connected in [false, true] {
        let sender = Sender::new(connected, 2).await;
        let (setup, org) = (&sender.setup, &sender.org);
        let first = sender.run(json!({})).await;
        sender.minute(&[&first]).await;
        let opened = sender.conversations().await;
        assert_eq!(opened.len(), 2);
        // The second contact's conversation is closed before the next campaign.
        setup.close(org, &opened[1]).await;
        setup.settle().await;
        let goes_on = sender.run(json!({"message": "Still there?"})).await;
        sender.minute(&[&goes_on]).await;
        let of = async |id: &str| {
            let (_, contacts) = sender.campaign(id).await;
            let of: Vec<Value> = contacts.into_iter().map(|contact| contact["conversation_id"].clone()).collect();
            of
        };
        let (earlier, later) = (of(&first).await, of(&goes_on).await);
        assert_eq!(earlier[0], later[0]);
        assert_ne!(earlier[1], later[1]);
        let said = async |conversation: &Value| {
            let messages = sender.transcript(conversation).await;
            let texts: Vec<String> = messages.into_iter().map(|message| message.text.into_string()).collect();
            texts
        };
        assert_eq!(said(&later[0]).await, ["Hello", "Still there?"]);
        assert_eq!(said(&later[1]).await, ["Still there?"]);
        assert_eq!(sender.conversations().await[0]["chat_count"], 2);
        let anew = sender.run(json!({"message": "Anew", "start_new_conversation": true})).await;
        sender.minute(&[&anew]).await;
        assert_eq!(said(&of(&anew).await[0]).await, ["Anew"]);
        assert_eq!(sender.conversations().await.len(), 5);
    }
}

#[tokio::test]
async fn an_undelivered_contact_fails_with_its_reason() {
    for (behaviour, error) in [
        (Behaviour::Answer(500), "the connector answered 500"),
        (Behaviour::Answer(410), "the connector answered 410"),
        (Behaviour::DropConnection, "connection broken"),
    ] {
        let sender = Sender::new(true, 2).await;
        sender.setup.receiver.behave("/connector", behaviour.clone());
        let id = sender.run(json!({})).await;
        sender.until_the_end(&id).await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!((&campaign["status"], sender.outcome(&id).await), (&json!("completed"), all("failed", 2)));
        assert!(contacts.iter().all(|contact| contact["error"] == error), "{contacts:?}");
        let tries = if behaviour == Behaviour::Answer(410) { 1 } else { 10 };
        assert!(events(&sender.received()).values().eq([&tries, &tries]));
        let webhook =
            sender.setup.get(&sender.org, &format!("/api/v1/outbound_webhook/{}", id_of(&sender.webhook))).await;
        assert_eq!(webhook["enabled"], true, "a failing connector has disabled the webhook");
        if behaviour == Behaviour::Answer(500) {
            // The circuit stays open after the last delivery.
            let health = delivery::health::of(&sender.org.table, sender.widget.id.into()).await.unwrap();
            assert!(
                health.connector && health.circuit_is_open(sender.setup.clock.now()),
                "the health of the connector is lost: {health:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_recovered_connector_gets_each_event_once() {
    let sender = Sender::new(true, 60).await;
    sender.setup.receiver.behave("/connector", Behaviour::Recovering { failures: 15, then: 200 });
    let id = sender.run(json!({})).await;
    sender.until_the_end(&id).await;
    assert_eq!(sender.outcome(&id).await, sender.done(60));
    let received = sender.received();
    assert_eq!((events(&received).len(), received.len()), (60, 75));
}

#[tokio::test]
async fn each_contact_names_the_missing_record() {
    type Take = for<'a> fn(&'a Sender) -> futures_util::future::BoxFuture<'a, ()>;
    let cases: [(bool, &str, Take); 6] = [
        (false, "the widget is gone", |sender| {
            Box::pin(async { drop(sender.org.table.remove::<Widget>(sender.widget.id).await.unwrap()) })
        }),
        (false, "the widget has no assistant", |sender| {
            let alone = |widget: &mut Widget| widget.assistant_id = None;
            Box::pin(async move { drop(sender.org.table.change(sender.widget.id, Uuid::max(), alone).await.unwrap()) })
        }),
        (false, "the widget's assistant is gone", |sender| {
            let assistant = sender.widget.assistant_id.unwrap();
            Box::pin(async move { drop(sender.org.table.remove::<Assistant>(assistant).await.unwrap()) })
        }),
        (true, "the widget's assistant has no webhook, whose secret would sign", |sender| {
            let id = AssistantId(id_of(&sender.assistant).parse().unwrap());
            let silent = |assistant: &mut Assistant| assistant.webhook_id = None;
            Box::pin(async move { drop(sender.org.table.change(id, Uuid::max(), silent).await.unwrap()) })
        }),
        (true, "the widget's assistant has no webhook, whose secret would sign", |sender| {
            let path = format!("outbound_webhook/{}", id_of(&sender.webhook));
            Box::pin(async move { drop(sender.delete(&path).await) })
        }),
        (true, "the contact is gone", |sender| {
            Box::pin(async {
                for contact in &sender.contacts {
                    sender.org.table.remove::<Contact>(contact.id).await.unwrap();
                }
            })
        }),
    ];
    for (connected, reason, take) in cases {
        let sender = Sender::new(connected, 2).await;
        let id = sender.run(json!({})).await;
        take(&sender).await;
        sender.until_the_end(&id).await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!(
            (&campaign["status"], sender.outcome(&id).await),
            (&json!("completed"), all("failed", 2)),
            "{reason}"
        );
        assert!(contacts.iter().all(|contact| contact["error"] == reason), "{reason}: {contacts:?}");
        assert_eq!(sender.setup.receiver.all(), [], "{reason}");
    }
}

#[tokio::test]
async fn concurrent_ticks_keep_the_rate_of_a_widget() {
    const EACH: usize = 25;
    for connected in [false, true] {
        let sender = Sender::new(connected, EACH).await;
        let (setup, start) = (&sender.setup, sender.setup.clock.now());
        let (one, other) = (sender.run(json!({"message": "One"})).await, sender.run(json!({"message": "Other"})).await);
        for _ in 0..6 {
            // Two ticks of each function and the stream run concurrently.
            tokio::join!(setup.ticks(), setup.ticks(), setup.settle());
            setup.settle().await;
            for id in [&one, &other] {
                sender.campaign(id).await;
            }
            setup.pass(1);
        }
        setup.minutes(2).await;
        assert_eq!([sender.outcome(&one).await, sender.outcome(&other).await], [sender.done(EACH), sender.done(EACH)]);
        let (_, mut contacts) = sender.campaign(&one).await;
        contacts.extend(sender.campaign(&other).await.1);
        let mut begun = Vec::new();
        for contact in &contacts {
            begun.push(sender.transcript(&contact["conversation_id"]).await.last().unwrap().created_at.unix_millis());
        }
        within_the_rate(start.unix_millis(), begun.into_iter(), RATE);
        let received = sender.received();
        assert_eq!(events(&received).len(), if connected { 2 * EACH } else { 0 });
        let seconds = received.iter().map(|request| request.headers["webhook-timestamp"].parse::<i64>().unwrap());
        // Timestamps are cut to whole seconds, so each is taken as the end of its second.
        within_the_rate(start.unix_millis(), seconds.map(|second| second * 1000 + 999), RATE);
    }
}

/// The machine's clock goes on while a sender waits.
#[tokio::test]
async fn the_machine_clock_keeps_the_rate() {
    const CONTACTS: usize = 40;
    const FAST: u32 = 20;
    let change = |settings| Settings { clock: Clock::System, sends_per_second: FAST, ..settings };
    let sender = Sender::of(Setup::with(change).await, WidgetType::Chat, true, CONTACTS).await;
    let start = Instant::now();
    let id = sender.run(json!({})).await;
    let background = sender.setup.stack.background();
    let received = sender.setup.receiver.wait_for("/connector", CONTACTS, Duration::from_mins(5)).await.unwrap();
    // The outcome of the last delivery is stored a moment after its receipt, before the background work may stop.
    let path = format!("/api/v1/campaign/get/{id}");
    while sender.setup.get(&sender.org, &path).await["status"] != "completed" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    background.stop().await;
    sender.setup.settle().await;
    assert_eq!(sender.outcome(&id).await, sender.done(CONTACTS));
    let moments = received.iter().map(|request| i64::try_from((request.at - start).as_millis()).unwrap());
    within_the_rate(0, moments, FAST as usize);
}

#[tokio::test]
async fn a_tick_resumes_unsent_contacts() {
    let change = |settings| Settings { sends_per_second: 1, ..settings };
    for connected in [false, true] {
        let sender = Sender::of(Setup::with(change).await, WidgetType::Chat, connected, 60).await;
        let id = sender.run(json!({})).await;
        sender.minute(&[&id]).await;
        let under_way = sender.campaign(&id).await.0;
        assert_eq!(under_way["status"], "in_progress");
        let begun = sender.conversations().await.len();
        assert!((45..=52).contains(&begun), "a tick of fifty seconds sent {begun}");
        sender.until_the_end(&id).await;
        assert_eq!(sender.outcome(&id).await, sender.done(60));
        assert_eq!(sender.conversations().await.len(), 60);
    }
}

#[tokio::test]
async fn a_cancelled_or_deleted_contact_is_not_sent() {
    // The change comes before the dispatch, after it, or after a failed attempt.
    for moment in ["queued", "ready", "waiting"] {
        for cancels in [true, false] {
            let sender = Sender::new(true, 5).await;
            sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
            let id = sender.run(json!({})).await;
            if moment != "queued" {
                sender.setup.ticks().await;
            }
            if moment == "waiting" {
                sender.setup.settle().await;
            }
            sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
            sender.setup.receiver.forget();
            if cancels {
                assert_eq!(sender.control(&id, "cancel").await.1["status"], "cancelled");
            } else {
                let (_, contacts) = sender.campaign(&id).await;
                for contact in &contacts[1..] {
                    sender.delete(&format!("campaign_contact/{}", id_of(contact))).await;
                }
            }
            sender.until_the_end(&id).await;
            let case = format!("{moment}, cancels: {cancels}");
            let wanted = if cancels { all("cancelled", 5) } else { sender.done(1) };
            assert_eq!(sender.outcome(&id).await, wanted, "{case}");
            assert_eq!(sender.received().len(), usize::from(!cancels), "{case}");
            let campaign = sender.campaign(&id).await.0;
            assert_eq!(campaign["status"], if cancels { "cancelled" } else { "completed" }, "{case}");
            assert_eq!(sender.setup.due(), BTreeMap::new(), "{case}");
        }
    }
}

#[tokio::test]
async fn a_campaign_with_deleted_contacts_is_sent_at_a_high_rate() {
    let change = |settings| Settings { sends_per_second: 1000, ..settings };
    for connected in [false, true] {
        let sender = Sender::of(Setup::with(change).await, WidgetType::Chat, connected, 80).await;
        let id = sender.run(json!({})).await;
        for contact in sender.campaign(&id).await.1.iter().filter(|contact| id_of(contact).ends_with(['2', '4', '8'])) {
            sender.delete(&format!("campaign_contact/{}", id_of(contact))).await;
        }
        sender.until_the_end(&id).await;
        assert_eq!(sender.outcome(&id).await, sender.done(65));
        // Several items count the contacts, so that groups of contacts can end at the same time.
        let counts = sender.stored("#CAMPAIGN_RUN#").await.into_iter().filter(|sk| sk.starts_with("OUTCOMES#"));
        assert!(counts.count() > 1);
    }
}

#[tokio::test]
async fn a_cancellation_during_sending_stops_the_campaign() {
    for connected in [false, true] {
        let sender = Sender::new(connected, 40).await;
        let (setup, id) = (&sender.setup, sender.run(json!({})).await);
        let cancel = async || {
            assert_eq!(sender.control(&id, "cancel").await.0, 200);
            sender.outcome(&id).await
        };
        let at_once = sender.while_it_is_sent(&id, cancel).await;
        let received = sender.received().len();
        setup.pass(DAY);
        setup.minutes(3).await;
        let outcome = sender.outcome(&id).await;
        let done = if connected { "sent" } else { "stored" };
        let sent = |outcome: &BTreeMap<String, usize>| outcome.get(done).copied().unwrap_or_default();
        assert_eq!(outcome.values().sum::<usize>(), 40);
        assert!(outcome["cancelled"] > 0 && sent(&outcome) >= sent(&at_once), "{at_once:?} {outcome:?}");
        assert_eq!(sender.received().len(), received, "an event was sent after the cancellation");
        assert_eq!(received, if connected { sent(&outcome) } else { 0 });
        assert_eq!(setup.due(), BTreeMap::new());
    }
}

#[tokio::test]
async fn each_contact_gets_one_message_despite_a_crash() {
    for connected in [false, true] {
        let queued = async || {
            let sender = Sender::new(connected, 2).await;
            let id = sender.run(json!({})).await;
            (sender, id)
        };
        let minute = async |(sender, _): &(Sender, String)| {
            sender.setup.minute().await;
        };
        let once = async |(sender, id): &(Sender, String), case: String| {
            sender.setup.settle().await;
            sender.until_the_end(id).await;
            assert_eq!(sender.outcome(id).await, sender.done(2), "{case}");
            let conversations = sender.conversations().await;
            assert!(conversations.len() == 2 && conversations.iter().all(|one| one["chat_count"] == 1), "{case}");
            for conversation in &conversations {
                assert_eq!(sender.transcript(&conversation["id"]).await.len(), 1, "{case}");
            }
            let with: BTreeSet<_> = conversations.iter().map(|one| one["contact_id"].as_str().unwrap()).collect();
            assert_eq!(with.len(), 2, "{case}");
            assert_eq!(events(&sender.received()).len(), if connected { 2 } else { 0 }, "{case}");
            assert_eq!(sender.setup.due(), BTreeMap::new(), "{case}");
        };
        crashes_everywhere(queued, |(sender, _)| &sender.setup, minute, once).await;
    }
}

#[tokio::test]
async fn concurrent_ticks_send_each_contact_once() {
    for connected in [false, true] {
        let sender = Sender::new(connected, 25).await;
        let id = sender.run(json!({})).await;
        let tick = async || {
            sender.setup.minute().await;
        };
        for _ in 0..3 {
            tokio::join!(tick(), tick(), tick());
            sender.campaign(&id).await;
            sender.setup.pass(60);
        }
        assert_eq!((sender.outcome(&id).await, sender.conversations().await.len()), (sender.done(25), 25));
        assert_eq!(events(&sender.received()).len(), if connected { 25 } else { 0 });
    }
}

#[tokio::test]
async fn a_contact_whose_conversation_keeps_changing_fails_alone() {
    let sender = Sender::new(false, 2).await;
    let (setup, org) = (&sender.setup, &sender.org);
    let first = sender.run(json!({"message": "First"})).await;
    sender.until_the_end(&first).await;
    let contacts = sender.campaign(&first).await.1;
    let (said, changing) = (json!({"sender_type": "user", "text": "Who is this?"}), &contacts[0]);
    let path = format!("/api/v1/conversation/{}/message", changing["conversation_id"].as_str().unwrap());

    let id = sender.run(json!({"message": "Second"})).await;
    setup.pass(60);
    // The contact writes before each transaction, after its conversation was read.
    let next = || setup.faults.pause_at(|action, _| action == "TransactWriteItems");
    let mut pause = next();
    let writes = async {
        loop {
            pause.reached().await;
            setup.post(org, &path, said.clone()).await;
            let paused = std::mem::replace(&mut pause, next());
            paused.end();
        }
    };
    tokio::select! {
        sent = setup.stack.tick("send-campaigns") => sent.unwrap(),
        () = writes => {}
    }
    setup.faults.end();
    sender.until_the_end(&id).await;
    assert_eq!(sender.outcome(&id).await, BTreeMap::from([("failed".to_owned(), 1), ("stored".to_owned(), 1)]));
    let of_contact = |one: &Value| (one["contact_id"].clone(), one["error"].clone());
    let outcomes: Vec<_> = sender.campaign(&id).await.1.iter().map(of_contact).collect();
    let wanted = [(&contacts[0], json!("the conversation kept changing")), (&contacts[1], Value::Null)];
    assert_eq!(outcomes, wanted.map(|(contact, error)| (contact["contact_id"].clone(), error)));
}
