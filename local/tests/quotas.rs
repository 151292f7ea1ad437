//! Tests of quotas: what an organisation may have and send, exactly, whatever fails.

use futures_util::future::join_all;
use local::Settings;
use local::faults::Fault;
use local::http::{Answer, Call};
use repository::root;
use serde_json::{Value, json};
use shared::records::tag::Tag;
use shared::records::webhook::Webhook;
use shared::records::widget::WidgetType;
use shared::table::quota::{Quota, Quotas};
use shared::table::rows::NewRow;
use shared::table::{Table, TableError};
use shared::values::id::WebhookId;
use shared::values::tenant::Tenant;
use uuid::Uuid;

use crate::support::crashes::{crashes_everywhere, unreliable_stream};
use crate::support::fixture::{ACME, call, data, get, json, streaming, with_faults};
use crate::support::keyed::{KEY, keyed};
use crate::support::owners::owner;
use crate::support::records::{ACME_ORG, changes, detail, issue, items, nothing};
use crate::support::sender::{Sender, created};
use crate::support::sending::{Org, Setup, events, id_of};

const DAY: i64 = 86_400;
const ADDRESS: &str = "https://93.184.215.14/hooks";

/// A service with these limits, and the default ones for all other quotas.
async fn limited(limits: &[(Quota, u64)]) -> Setup {
    let quotas = limits.iter().fold(Quotas::default(), |quotas, (quota, limit)| quotas.with(*quota, *limit));
    Setup::with(|settings| Settings { quotas, ..settings }).await
}

/// What an operator is told of `quota`: the use and the limit.
async fn told(setup: &Setup, org: &Org, quota: Quota) -> (u64, u64) {
    told_of(&setup.stack, &json!(org.id), quota).await
}

async fn told_of(stack: &local::Stack, org: &Value, quota: Quota) -> (u64, u64) {
    let asked = json!({"org_id": org}).to_string();
    let all = json(&stack.gateway.invoke_by_name("get-organisation-use", asked.as_bytes()).await);
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), Quota::WORDS.len());
    let of = all.iter().find(|one| one["quota"] == quota.as_str()).unwrap();
    (of["used"].as_u64().unwrap(), of["limit"].as_u64().unwrap())
}

/// The refusal of a request whose quota is reached.
fn reached(at: &str, message: &str) -> (u16, Value) {
    (409, json!([issue(&json!([at]), "quota_reached", message)]))
}

/// The body of a new record, and where its list is.
async fn new_record(setup: &Setup, org: &Org, quota: Quota) -> (String, Value, &'static str) {
    match quota {
        Quota::Webhooks => ("/api/v1/outbound_webhook".into(), json!({"endpoint": ADDRESS}), "outbound_webhook"),
        Quota::Widgets => ("/api/v1/widget".into(), json!({"widget_type": "chat"}), "widget"),
        _ => {
            let datasource = setup.post(org, "/api/v1/datasource", json!({"ds_type": "pdf"})).await;
            let path = format!("/api/v1/datasource/{}/file", id_of(&datasource));
            (path, json!({"name": "a", "size_bytes": 10}), "datasource/datasourcefile")
        }
    }
}

#[tokio::test]
async fn a_new_record_is_refused_at_its_limit_until_one_is_deleted() {
    for (quota, limit, each, message) in [
        (Quota::Webhooks, 2, 1, "The organisation has 2 of 2 webhooks"),
        (Quota::Widgets, 2, 1, "The organisation has 2 of 2 widgets"),
        (Quota::Files, 2, 1, "The organisation has 2 of 2 files"),
        (Quota::FileBytes, 25, 10, "The organisation has 20 of 25 bytes of files; this needs 10 more"),
    ] {
        let setup = limited(&[(quota, limit)]).await;
        let (org, other) = (setup.org().await, setup.org().await);
        let (path, body, record) = new_record(&setup, &org, quota).await;
        let first = setup.post(&org, &path, body.clone()).await;
        setup.post(&org, &path, body.clone()).await;
        let before = items(&setup.stack).await;
        let refused = setup.ask(&org, "POST", &path, &body).await;
        assert_eq!(detail(&refused), reached("body", message));
        assert_eq!(changes(&setup.stack, &before).await, nothing());
        assert_eq!(told(&setup, &org, quota).await, (2 * each, limit));

        let (path_of_other, body_of_other, _) = new_record(&setup, &other, quota).await;
        setup.post(&other, &path_of_other, body_of_other).await;
        assert_eq!(told(&setup, &other, quota).await, (each, limit), "another organisation has its own count");

        data(&setup.ask(&org, "DELETE", &format!("/api/v1/{record}/{}", id_of(&first)), &Value::Null).await);
        assert_eq!(told(&setup, &org, quota).await, (each, limit));
        setup.post(&org, &path, body.clone()).await;
        assert_eq!(detail(&setup.ask(&org, "POST", &path, &body).await), reached("body", message));
    }
}

#[tokio::test]
async fn a_text_is_a_file_with_its_bytes() {
    let setup = limited(&[(Quota::FileBytes, 8)]).await;
    let org = setup.org().await;
    let (path, ..) = new_record(&setup, &org, Quota::Files).await;
    let path = path.replace("/file", "/text_blob");
    setup.post(&org, &path, json!({"content": "Hello"})).await;
    let refused = setup.ask(&org, "POST", &path, &json!({"content": "World"})).await;
    assert_eq!(detail(&refused), reached("body", "The organisation has 5 of 8 bytes of files; this needs 5 more"));
    assert_eq!(told(&setup, &org, Quota::FileBytes).await, (5, 8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_at_once_get_exactly_what_is_left() {
    for quota in [Quota::Webhooks, Quota::Files] {
        let setup = limited(&[(quota, 10)]).await;
        let org = setup.org().await;
        let (path, body, _) = new_record(&setup, &org, quota).await;
        let answers = join_all((0..64).map(|_| setup.ask(&org, "POST", &path, &body))).await;
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        let refused = answers.iter().filter(|answer| answer.status == 409).count();
        assert_eq!((made, refused), (10, 54), "{quota:?}");
        assert_eq!(told(&setup, &org, quota).await, (10, 10));
    }
}

#[tokio::test]
async fn a_repeat_has_its_success_although_the_quota_is_reached() {
    let setup = limited(&[(Quota::Webhooks, 1)]).await;
    let org = setup.org().await;
    let (store, now) = (setup.stack.gateway.service.store.clone(), setup.clock.now());
    #[expect(clippy::disallowed_methods, reason = "the tests are their own operator")]
    let table = Table::new(store, Tenant::operator(org.id));
    let make = |id: WebhookId| -> Webhook {
        serde_json::from_value(json!({"id": id, "endpoint": ADDRESS, "created_at": now, "updated_at": now})).unwrap()
    };
    let id = Uuid::now_v7();
    let row = |id, origin| NewRow { of: (), id, origin, now };
    let first = table.insert(row(id, Some(id)), make).await.unwrap();
    let again = table.insert(row(id, Some(id)), make).await.unwrap();
    assert_eq!(first.id, again.id);
    let other = Uuid::now_v7();
    let refused = table.insert(row(other, Some(other)), make).await;
    assert!(matches!(refused, Err(TableError::QuotaReached(_))), "{refused:?}");
    assert_eq!(told(&setup, &org, Quota::Webhooks).await, (1, 1));
}

#[tokio::test]
async fn a_campaign_counts_while_it_runs_or_waits_for_its_time() {
    let sender = Sender::of(limited(&[(Quota::RunningCampaigns, 1)]).await, WidgetType::Whatsapp, false, 1).await;
    let (setup, org) = (&sender.setup, &sender.org);
    let used = async || told(setup, org, Quota::RunningCampaigns).await.0;
    let full = reached("path", "The organisation has 1 of 1 running campaigns");
    let run = format!("/api/v1/campaign/run/{}", sender.widget.id);
    let hello = json!({"contact_ids": sender.contacts(), "message": "Hello"});

    let waiting = created(&sender, json!({})).await;
    let before = items(&setup.stack).await;
    assert_eq!(detail(&setup.ask(org, "POST", &run, &hello).await), full);
    assert_eq!(changes(&setup.stack, &before).await, nothing());
    // A pause makes room, a resumed campaign needs it again.
    assert_eq!(sender.control(id_of(&waiting), "pause").await.0, 200);
    assert_eq!(used().await, 0);
    let running = sender.run(json!({"message": "Hello"})).await;
    let resume = format!("/api/v1/campaign/{}/resume", id_of(&waiting));
    assert_eq!(detail(&setup.ask(org, "POST", &resume, &Value::Null).await), full);
    // A repeat of the same run is answered with the first campaign.
    assert_eq!(setup.post(org, &run, hello).await["campaign_id"], running.as_str());
    sender.minute(&[&running]).await;
    assert_eq!(sender.campaign(&running).await.0["status"], "completed");
    assert_eq!(used().await, 0);
    data(&setup.ask(org, "POST", &resume, &Value::Null).await);
    assert_eq!(used().await, 1);
    assert_eq!(sender.control(id_of(&waiting), "cancel").await.0, 200);
    sender.delete(&format!("campaign/{}", id_of(&waiting))).await;
    // A campaign that waits for its time may be deleted.
    let waiting = created(&sender, json!({})).await;
    assert_eq!(used().await, 1);
    sender.delete(&format!("campaign/{}", id_of(&waiting))).await;
    setup.settle().await;
    assert_eq!(used().await, 0);
}

fn message(sender: &Sender, number: usize) -> (String, Value) {
    (format!("/api/v1/messaging/{}", sender.widget.id), json!({"to": format!("+31301{number:06}"), "message": "Hi"}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_sends_of_a_day_end_at_the_limit() {
    let sender = Sender::of(limited(&[(Quota::SendsADay, 5)]).await, WidgetType::Sms, true, 0).await;
    let (setup, org) = (&sender.setup, &sender.org);
    let send = async |number: usize| {
        let (path, body) = message(&sender, number);
        setup.ask(org, "POST", &path, &body).await
    };
    let answers = join_all((0..64).map(send)).await;
    let accepted = answers.iter().filter(|answer| answer.status == 200).count();
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 409).collect();
    assert_eq!((accepted, refused.len()), (5, 59));
    let full = reached("path", "The organisation has 5 of 5 sends of this day (UTC)");
    assert!(refused.iter().all(|answer| detail(answer) == full), "{}", refused[0].body);
    assert_eq!(setup.outbox(org, &json!({"id": sender.widget.id})).await.len(), 5);
    assert_eq!(told(setup, org, Quota::SendsADay).await, (5, 5));
    let other = setup.org().await;
    assert_eq!(told(setup, &other, Quota::SendsADay).await, (0, 5));

    setup.pass(DAY / 2 - 1);
    assert_eq!(send(64).await.status, 409, "the day has one more second");
    setup.pass(1);
    assert_eq!(send(65).await.status, 200);
    assert_eq!(told(setup, org, Quota::SendsADay).await, (1, 5));
}

#[tokio::test]
async fn a_keyed_send_is_answered_again_although_the_day_is_full() {
    let prepare = async || Sender::of(limited(&[(Quota::SendsADay, 1)]).await, WidgetType::Sms, true, 0).await;
    let send = async |sender: &Sender| {
        let (path, body) = message(sender, 1);
        let call = Call { body: body.to_string().into(), ..call("POST", &path, &sender.org.key) };
        sender.setup.stack.answer(&keyed(call, KEY)).await
    };
    let look = async |sender: &Sender, case: String| {
        // A crashed process has its lease for thirty seconds.
        sender.setup.pass(31);
        let answer = send(sender).await;
        assert_eq!(answer.status, 200, "{case}: {}", answer.body);
        assert_eq!(sender.conversations().await.len(), 1, "{case}");
        assert_eq!(told(&sender.setup, &sender.org, Quota::SendsADay).await, (1, 1), "{case}");
    };
    crashes_everywhere(prepare, |sender| &sender.setup, async |sender| drop(send(sender).await), look).await;
}

#[tokio::test]
async fn answers_that_leave_end_at_the_limit_of_the_day() {
    let prepare = async || {
        let sender = Sender::of(limited(&[(Quota::SendsADay, 1)]).await, WidgetType::Sms, true, 0).await;
        let (path, body) = inbound(&sender);
        sender.setup.post(&sender.org, &path, body).await;
        sender
    };
    let say = async |sender: &Sender, who: &str, key: &str| {
        let conversation = sender.conversations().await.remove(0);
        let path = format!("/api/v1/conversation/{}/message", id_of(&conversation));
        let body = json!({"sender_type": who, "text": "Hi"}).to_string().into();
        sender.setup.stack.answer(&keyed(Call { body, ..call("POST", &path, &sender.org.key) }, key)).await
    };
    let look = async |sender: &Sender, case: String| {
        sender.setup.pass(31);
        // The repeat gets its success although the day is full.
        let answer = say(sender, "bot", KEY).await;
        assert_eq!(answer.status, 201, "{case}: {}", answer.body);
        assert_eq!(told(&sender.setup, &sender.org, Quota::SendsADay).await, (1, 1), "{case}");
        let full = reached("path", "The organisation has 1 of 1 sends of this day (UTC)");
        assert_eq!(detail(&say(sender, "bot", "another").await), full, "{case}");
        assert_eq!(say(sender, "user", "third").await.status, 201, "{case}");
        assert_eq!(sender.conversations().await[0]["chat_count"], 3, "{case}");
        assert_eq!(sender.setup.outbox(&sender.org, &json!({"id": sender.widget.id})).await.len(), 1, "{case}");
    };
    let work = async |sender: &Sender| drop(say(sender, "bot", KEY).await);
    crashes_everywhere(prepare, |sender| &sender.setup, work, look).await;
}

/// A message of a person that the connector brings in.
fn inbound(sender: &Sender) -> (String, Value) {
    let body = json!({"from": "+31301000001", "text": "Hello", "external_id": "SM-1"});
    (format!("/api/v1/widget/{}/inbound", sender.widget.id), body)
}

#[tokio::test]
async fn a_campaign_over_the_limit_goes_on_the_next_day() {
    for connected in [false, true] {
        let sender = Sender::of(limited(&[(Quota::SendsADay, 5)]).await, WidgetType::Whatsapp, connected, 12).await;
        let (setup, org) = (&sender.setup, &sender.org);
        let id = sender.run(json!({"message": "Sale!"})).await;
        for (day, sent) in [5, 10, 12].into_iter().enumerate() {
            setup.minutes(5).await;
            let outcome = sender.outcome(&id).await;
            assert_eq!(outcome.get(if connected { "sent" } else { "stored" }), Some(&sent), "day {day}: {outcome:?}");
            assert_eq!(told(setup, org, Quota::SendsADay).await.0, if day < 2 { 5 } else { 2 });
            let status = sender.campaign(&id).await.0["status"].clone();
            assert_eq!(status, if day < 2 { "queued" } else { "completed" });
            setup.pass(DAY);
        }
        assert_eq!(sender.outcome(&id).await, sender.done(12));
        assert_eq!(sender.conversations().await.len(), 12);
        let received = sender.received();
        let once = if connected { 12 } else { 0 };
        assert_eq!((received.len(), events(&received).len()), (once, once));
    }
}

#[tokio::test]
async fn a_campaign_over_the_limit_can_be_paused_and_cancelled() {
    let sender = Sender::of(limited(&[(Quota::SendsADay, 2)]).await, WidgetType::Whatsapp, false, 5).await;
    let id = sender.run(json!({"message": "Sale!"})).await;
    sender.setup.minutes(3).await;
    for (verb, status) in [("pause", "paused"), ("resume", "queued")] {
        let (code, campaign) = sender.control(&id, verb).await;
        assert_eq!((code, &campaign["status"]), (200, &json!(status)));
        sender.setup.minutes(2).await;
        assert_eq!(sender.outcome(&id).await["stored"], 2);
    }
    assert_eq!(sender.control(&id, "cancel").await.0, 200);
    sender.setup.pass(DAY);
    sender.setup.minutes(2).await;
    let outcome = sender.outcome(&id).await;
    assert_eq!((outcome["stored"], outcome["cancelled"]), (2, 3));
    assert_eq!(told(&sender.setup, &sender.org, Quota::RunningCampaigns).await.0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_write_leaves_the_counts_of_a_campaign_exact() {
    let prepare = async || Sender::of(limited(&[(Quota::SendsADay, 3)]).await, WidgetType::Whatsapp, false, 4).await;
    let work = async |sender: &Sender| {
        let id = sender.run(json!({"message": "Sale!"})).await;
        sender.setup.minutes(2).await;
        sender.control(&id, "pause").await;
    };
    let look = async |sender: &Sender, case: String| {
        let (setup, org) = (&sender.setup, &sender.org);
        let statuses = ["to_be_run", "queued", "in_progress"];
        setup.minutes(3).await;
        let campaigns = sender.list("/api/v1/campaign/list").await;
        let running = campaigns.iter().filter(|one| statuses.iter().any(|status| one["status"] == *status)).count();
        assert_eq!(told(setup, org, Quota::RunningCampaigns).await.0, running as u64, "{case}");
        let sent = sender.conversations().await.len();
        assert!(sent <= 3, "{case}: {sent}");
        assert_eq!(told(setup, org, Quota::SendsADay).await.0, sent as u64, "{case}");
    };
    crashes_everywhere(prepare, |sender| &sender.setup, work, look).await;
}

/// The files of all data sources of Acme, and their bytes, by the lists that callers see.
async fn listed_files(stack: &local::Stack) -> (u64, u64) {
    let (mut files, mut bytes) = (0, 0);
    let datasources = get(stack, "/api/v1/datasource?size=100").await;
    for datasource in datasources["items"].as_array().unwrap() {
        for page in 1.. {
            let list =
                get(stack, &format!("/api/v1/datasource/{}/data_source_files?size=100&page={page}", id_of(datasource)))
                    .await;
            for file in list["items"].as_array().unwrap() {
                files += 1;
                bytes += file["size_bytes"].as_u64().unwrap();
            }
            if list["next_page"].is_null() {
                break;
            }
        }
    }
    (files, bytes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_use_of_files_is_what_is_there_after_a_cascade_with_faults() {
    let (stack, faults) = with_faults(streaming()).await;
    let used = async || {
        let of = async |quota| told_of(&stack, &json!(ACME_ORG), quota).await.0;
        (of(Quota::Files).await, of(Quota::FileBytes).await)
    };
    let before = listed_files(&stack).await;
    assert_eq!(used().await, before);
    assert!(before.0 > 0);
    let owned = owner(&stack, "datasource", 260).await;
    assert_eq!(used().await, listed_files(&stack).await);
    assert_eq!(used().await.0, before.0 + 260);
    data(&stack.answer(&call("DELETE", &owned.path, ACME)).await);
    stack.stream.set_faults(&unreliable_stream(7, 0.3, 0.1));
    faults.plan(move |_, number| match number % 20 {
        0 => Fault::Throttle,
        5 => Fault::Conflict,
        10 => Fault::BreakAnswer,
        15 => Fault::ServerError,
        _ => Fault::None,
    });
    stack.settle().await.unwrap();
    faults.end();
    assert_eq!(stack.stream.given_up(), Vec::<Value>::new());
    assert_eq!(listed_files(&stack).await, before);
    assert_eq!(used().await, before);
}

#[tokio::test]
async fn far_from_the_limit_a_send_reads_no_count() {
    let sender = Sender::of(Setup::start().await, WidgetType::Sms, true, 0).await;
    let calls = async |number: usize| {
        let (path, body) = message(&sender, number);
        let answer = sender.setup.ask(&sender.org, "POST", &path, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.cost.calls
    };
    let (first, second) = (calls(1).await, calls(2).await);
    assert_eq!(first, second + 1);
    sender.setup.pass(59);
    assert_eq!(calls(3).await, second + 1, "the key is read again, and not the count");
    sender.setup.pass(1);
    assert_eq!(calls(4).await, second + 1, "the count is read again after a minute");
    // A process may use a part of what is left, and then reads the count.
    let few = Sender::of(limited(&[(Quota::SendsADay, 2048)]).await, WidgetType::Sms, true, 0).await;
    let calls = async |number: usize| {
        let (path, body) = message(&few, number);
        few.setup.ask(&few.org, "POST", &path, &body).await.cost.calls
    };
    assert_eq!(
        [calls(1).await, calls(2).await, calls(3).await, calls(4).await],
        [second + 1, second, second + 1, second + 1]
    );
    assert_eq!(told(&few.setup, &few.org, Quota::SendsADay).await, (4, 2048));
}

#[tokio::test]
async fn a_record_without_a_quota_counts_nothing() {
    let setup = limited(&Quota::all().map(|quota| (quota, 0)).collect::<Vec<_>>()).await;
    let org = setup.org().await;
    let tag: Value = setup.post(&org, "/api/v1/tag", json!({"name": "VIP"})).await;
    assert!(org.table.find::<Tag>(id_of(&tag).parse::<Uuid>().unwrap().into()).await.unwrap().is_some());
    for quota in Quota::all() {
        assert_eq!(told(&setup, &org, quota).await, (0, 0));
    }
}

#[test]
fn the_template_and_the_page_have_the_default_of_each_quota() {
    let template = std::fs::read_to_string(root().join("template.yaml")).unwrap();
    let default = format!("Default: '{}'", Quotas::default());
    assert!(template.contains(&default), "the parameter Quotas has not the {default}");
    for quota in Quota::all() {
        assert!(
            template.contains(&format!("{}|", quota.as_str())) || template.contains(&format!("|{})", quota.as_str()))
        );
    }
    let page = std::fs::read_to_string(root().join("docs/API.md")).unwrap();
    let rows = Quota::all().map(|quota| format!("| `{}` | {} |", quota.as_str(), quota.default_limit()));
    for row in rows {
        assert!(page.contains(&row), "docs/API.md has no {row}");
    }
}
