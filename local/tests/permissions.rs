//! Each function's role allows the calls that the function makes, on the table, its indexes and the bucket alone, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use local::database::{Data, TABLE_NAME, snapshot};
use local::faults::Faults;
use local::gateway::{Answer, Call, Routed, endpoint};
use local::template::{Permission, Template};
use local::{Settings, Stack, functions};
use serde_json::{Value, json};
use shared::records::api_key::Limits;
use shared::records::campaign::CampaignContact;
use shared::records::datasource::DatasourceFile;
use shared::records::widget::Widget;
use shared::routes;
use shared::table::keys::RATE;
use shared::values::id::{CampaignContactId, DatasourceFileId, DatasourceId, WidgetId};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::cascades::{OWNERS, owner};
use crate::exercises::{EXERCISES, Exercise};
use crate::fixture::{
    ACME, acme, call, data, die_in_every_list, id, kind, post, root, scratch, settings, streaming, valid_body,
    valid_call,
};

/// Limits of keys of which every request is counted.
const COUNTED: Limits = Limits::new(50, 99);

/// What invoking `function` with `payload` takes, its start included, where others have died days ago.
async fn taken(function: &str, payload: &Value) -> BTreeSet<String> {
    static DEAD: OnceCell<PathBuf> = OnceCell::const_new();
    let faults = Faults::default();
    let data = Data::CopyOf(DEAD.get_or_init(dead).await.clone());
    let stack =
        Stack::start(Settings { data, faults: faults.clone(), key_limits: COUNTED, ..settings() }).await.unwrap();
    faults.watch();
    stack.gateway.service.store.warm_up().await.unwrap();
    let answer = stack.gateway.invoke_by_name(function, payload.to_string().as_bytes()).await;
    hand_out(&answer, &faults);
    faults.permissions()
}

/// The table where others have died days ago.
async fn dead() -> PathBuf {
    const DAYS: i64 = 3;
    let (stack, file) = (Stack::start(settings()).await.unwrap(), scratch("dead.db"));
    die_in_every_list(&stack, DAYS * 24 * 60).await;
    snapshot(&stack.database, &file).unwrap();
    file
}

/// A signed address is good for what the role of its function is allowed. So the request is the function's, though a caller sends it.
fn hand_out(answer: &Answer, faults: &Faults) {
    let answer: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let body: Value = answer["body"].as_str().and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
    let (upload, download) = (&body["data"]["upload"], &body["data"]["download_url"]);
    if upload["url"].is_string() {
        faults.handed_out(upload["method"].as_str().unwrap());
    }
    if download.is_string() {
        faults.handed_out("GET");
    }
}

/// What a function on the stream or on a schedule takes when it has something to do.
async fn taken_by_event(function: &str) -> BTreeSet<String> {
    let faults = Faults::default();
    let stack = Stack::start(Settings { faults: faults.clone(), ..streaming() }).await.unwrap();
    give_something_to_do(&stack, function).await;
    faults.watch();
    stack.gateway.service.store.warm_up().await.unwrap();
    stack.stream.drain_for(function).await.unwrap();
    if Template::read(&root().join("template.yaml")).unwrap().schedules.iter().any(|with| with.function == function) {
        stack.tick(function).await.unwrap();
    }
    faults.permissions()
}

/// Each function needs a case of its own, in which it makes all the calls that it ever makes.
async fn give_something_to_do(stack: &Stack, function: &str) {
    match function {
        "record-changed" => {
            for kind_of in OWNERS {
                let owner = Box::pin(owner(stack, kind_of, 2)).await;
                data(&stack.answer(&call("DELETE", &owner.path, ACME)).await);
            }
            // It has so many links that its removal takes more than one step.
            data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
            data(&stack.answer(&valid_call(&routes::CLOSE_CONVERSATION, 'a', ACME)).await);
            // A file that is old, and one that may yet be uploaded.
            data(&stack.answer(&valid_call(&routes::DELETE_DATASOURCE_FILE, 'a', ACME)).await);
            let (table, of) = (acme(stack), DatasourceId(id('a', kind::DATASOURCE, 1).parse().unwrap()));
            let old: DatasourceFile =
                table.get(DatasourceFileId(id('a', kind::DATASOURCE_FILE, 2).parse().unwrap())).await.unwrap();
            let now = stack.gateway.service.clock.now();
            let young = |_, id| DatasourceFile { id, created_at: now, ..old.clone() };
            let young = table.insert_all(of, &[Uuid::max()], young).await.unwrap().remove(0);
            table.remove::<DatasourceFile>(young.id).await.unwrap();
        }
        "send-delivery" => {
            // Of one that has failed and is no longer there, what was known is forgotten. The other one fails now.
            let gone = close_towards_nobody(stack).await;
            stack.settle().await.unwrap();
            data(&stack.answer(&call("DELETE", &format!("/api/v1/outbound_webhook/{gone}"), ACME)).await);
            stack.tick(function).await.unwrap();
            let clock = &stack.gateway.service.clock;
            clock.set(clock.now().plus_seconds(7200));
            close_towards_nobody(stack).await;
            stack.stream.drain_for("record-changed").await.unwrap();
            // And one of a campaign that is paused before it is sent.
            let (table, id) = (acme(stack), WidgetId(id('a', kind::WIDGET, 1).parse().unwrap()));
            let connect = |widget: &mut Widget| widget.connector_url = Some(NOBODY.to_owned());
            table.change(id, Uuid::max(), connect).await.unwrap();
            let run = data(&stack.answer(&valid_call(&routes::RUN_CAMPAIGN, 'a', ACME)).await);
            stack.tick("send-campaigns").await.unwrap();
            let pause = format!("/api/v1/campaign/{}/pause", run["campaign_id"].as_str().unwrap());
            data(&stack.answer(&post(&pause, ACME, "")).await);
            // The event of a closed conversation tells what that campaign has said in it.
            let contacts = format!("/api/v1/campaign/contact/list/{}", run["campaign_id"].as_str().unwrap());
            let contact = data(&stack.answer(&call("GET", &contacts, ACME)).await)["items"][0].clone();
            let close = format!("/api/v1/conversation/{}/close", contact["conversation_id"].as_str().unwrap());
            data(&stack.answer(&post(&close, ACME, "")).await);
            stack.stream.drain_for("record-changed").await.unwrap();
        }
        "release-deliveries" => {
            close_towards_nobody(stack).await;
            stack.settle().await.unwrap();
            let clock = &stack.gateway.service.clock;
            clock.set(clock.now().plus_seconds(60));
        }
        "send-campaigns" => {
            // One through a widget alone, one that its connector sends.
            data(&stack.answer(&valid_call(&routes::RUN_CAMPAIGN, 'a', ACME)).await);
            let (table, id) = (acme(stack), WidgetId(id('a', kind::WIDGET, 2).parse().unwrap()));
            let connect = |widget: &mut Widget| widget.connector_url = Some(NOBODY.to_owned());
            table.change(id, Uuid::max(), connect).await.unwrap();
            let run = valid_body(&routes::RUN_CAMPAIGN, 'a');
            data(&stack.answer(&post(&format!("/api/v1/campaign/run/{id}"), ACME, run)).await);
        }
        "remove-payment-webhooks" => {
            // One is removed, and one is tried again later.
            for _ in 0..2 {
                let agency = json!({"billing_plan": {"payment_api_key": "sk_demo_of_this_test"}}).to_string();
                let agency = data(&stack.answer(&post("/api/v1/agency", ACME, agency)).await)["id"].clone();
                let path = format!("/api/v1/agency/billing/{}/setup_payment_webhook", agency.as_str().unwrap());
                data(&stack.answer(&call("GET", &path, ACME)).await);
                let path = format!("/api/v1/agency/{}", agency.as_str().unwrap());
                data(&stack.answer(&call("DELETE", &path, ACME)).await);
            }
            stack.settle().await.unwrap();
            stack.payment_provider.fail(&[500, 500]);
        }
        other => panic!("nothing here gives {other} something to do: add it"),
    }
}

/// Where no test listens.
const NOBODY: &str = "http://127.0.0.1:1/";

/// Closes a conversation whose webhook does not answer; the webhook's id.
async fn close_towards_nobody(stack: &Stack) -> String {
    let make = async |path: &str, body: Value| {
        let made = data(&stack.answer(&post(path, ACME, body.to_string())).await);
        made["id"].as_str().unwrap_or_default().to_owned()
    };
    let webhook = make("/api/v1/outbound_webhook", json!({"endpoint": NOBODY})).await;
    let assistant = make("/api/v1/assistant", json!({"webhook_id": webhook})).await;
    let conversation = make("/api/v1/conversation", json!({"assistant_id": assistant})).await;
    make(&format!("/api/v1/conversation/{conversation}/close"), Value::Null).await;
    webhook
}

/// What the calls of the table take that an operation makes beyond those of its recorded events.
async fn taken_by_more(exercise: &Exercise) -> BTreeSet<String> {
    let faults = Faults::default();
    let stack = Stack::start(Settings { faults: faults.clone(), ..settings() }).await.unwrap();
    let mut before = String::new();
    for call in (exercise.calls_more)() {
        faults.watch();
        let call = Call { path: call.path.replace("{id}", &before), ..call };
        let answer = data(&stack.answer(&call).await);
        answer["id"].as_str().unwrap_or_default().clone_into(&mut before);
    }
    faults.permissions()
}

/// What operations take where a campaign has said something: its text is not stored with the messages.
async fn taken_after_a_campaign() -> Vec<(&'static str, BTreeSet<String>)> {
    let faults = Faults::default();
    let stack = Stack::start(Settings { faults: faults.clone(), ..settings() }).await.unwrap();
    let run = data(&stack.answer(&valid_call(&routes::RUN_CAMPAIGN, 'a', ACME)).await);
    stack.tick("send-campaigns").await.unwrap();
    let contacts = format!("/api/v1/campaign/contact/list/{}", run["campaign_id"].as_str().unwrap());
    let contact = data(&stack.answer(&call("GET", &contacts, ACME)).await)["items"][0].clone();
    let (id, conversation) = (contact["id"].as_str().unwrap(), contact["conversation_id"].as_str().unwrap());
    // It remembers its conversation only, as contacts did once, so that the messages of that are looked at.
    let key = acme(&stack).key::<CampaignContact>(CampaignContactId(id.parse().unwrap()));
    let forget = stack.client.update_item().table_name(TABLE_NAME).set_key(Some(key.attributes()));
    forget.update_expression("REMOVE said").send().await.unwrap();
    let mut taken = Vec::new();
    for (route, path) in [
        (&routes::READ_CONVERSATION, format!("/api/v1/conversation/{conversation}")),
        (&routes::READ_CONVERSATION_TRANSCRIPT, format!("/api/v1/conversation/{conversation}/transcript")),
        (&routes::DELETE_CAMPAIGN_CONTACT, format!("/api/v1/campaign_contact/{id}")),
    ] {
        faults.watch();
        data(&stack.answer(&call(route.method, &path, ACME)).await);
        taken.push((route.name, faults.permissions()));
    }
    taken
}

/// What a statement allows on the table with its indexes and on the bucket with its objects, as [`Faults::permissions`] names it; none for
/// one of something else.
fn allowed(permission: &Permission) -> Option<Vec<String>> {
    if permission.condition != "null" {
        let keys = json!({"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [format!("{RATE}*")]}});
        let table = r#"{"!GetAtt":"Table.Arn"}"#;
        assert_eq!((permission.resource.as_str(), &permission.condition), (table, &keys.to_string()));
        return Some(permission.actions.iter().map(|action| format!("{action} {RATE}*")).collect());
    }
    let index = match permission.resource.as_str() {
        r#"{"!GetAtt":"Table.Arn"}"# | r#"{"!Sub":"${FilesBucket.Arn}/*"}"# => String::new(),
        r#"{"!GetAtt":"FilesBucket.Arn"}"# => {
            assert_eq!(permission.actions, BTreeSet::from(["s3:ListBucket".to_owned()]));
            String::new()
        }
        resource => {
            let index = resource.strip_prefix(r#"{"!Sub":"${Table.Arn}/index/"#)?.strip_suffix("\"}")?;
            assert!(index.chars().all(char::is_alphanumeric), "{resource}");
            format!(" index/{index}")
        }
    };
    Some(permission.actions.iter().map(|action| format!("{action}{index}")).collect())
}

/// What each function calls of the table, measured once in a run.
pub async fn called() -> &'static BTreeMap<String, BTreeSet<String>> {
    static CALLED: OnceCell<BTreeMap<String, BTreeSet<String>>> = OnceCell::const_new();
    CALLED.get_or_init(measure).await
}

async fn measure() -> BTreeMap<String, BTreeSet<String>> {
    let mut called: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in std::fs::read_dir(root().join("events")).unwrap() {
        let file = file.unwrap().path();
        let function = file.file_stem().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
        match endpoint(&function) {
            Some(Routed::Operation(_) | Routed::Server(_)) => {}
            Some(Routed::Document(_)) => {
                // It has no client of the table, so that it does not even open a connection.
                called.insert(function, BTreeSet::new());
                continue;
            }
            // The others have cases of their own below.
            None => continue,
        }
        let event: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let called = called.entry(function.clone()).or_default();
        called.extend(taken(&function, &event).await);
        if event["httpMethod"] == "POST" {
            let mut keyed = event;
            keyed["headers"]["idempotency-key"] = "a-key".into();
            called.extend(taken(&function, &keyed).await);
        }
    }
    for exercise in EXERCISES.iter().filter(|exercise| !(exercise.calls_more)().is_empty()) {
        called.entry(exercise.route.name.to_owned()).or_default().extend(taken_by_more(exercise).await);
    }
    let acme = "01900000-0000-7000-8000-a00000000001";
    let key = json!({"org_id": acme, "id": "01900000-0000-7000-8000-a00e00000001", "name": "x", "burst": 10_000});
    for (name, taken) in taken_after_a_campaign().await {
        called.entry(name.to_owned()).or_default().extend(taken);
    }
    for task in functions::TASKS {
        called.insert(task.name.to_owned(), taken(task.name, &key).await);
    }
    let consumers = functions::CONSUMERS.iter().map(|consumer| consumer.name);
    for name in consumers.chain(functions::SCHEDULED.iter().map(|scheduled| scheduled.name)) {
        called.insert(name.to_owned(), taken_by_event(name).await);
    }
    // Who may change every item may change these as well.
    for called in called.values_mut().filter(|called| called.contains("dynamodb:UpdateItem")) {
        called.remove(&format!("dynamodb:UpdateItem {RATE}*"));
    }
    called
}

fn template() -> Template {
    Template::read(&root().join("template.yaml")).unwrap()
}

#[tokio::test]
async fn what_is_allowed_is_what_is_called() {
    let allowed = template().permissions.into_iter().map(|(function, permissions)| {
        (function, permissions.iter().filter_map(allowed).flatten().collect::<BTreeSet<_>>())
    });
    assert_eq!(&allowed.collect::<BTreeMap<_, _>>(), called().await);
}

/// What a role allows beside the table: each function writes its log; one on the stream reads it, and says which records it gave up.
#[test]
fn a_role_allows_the_log_and_the_stream_and_nothing_more() {
    let template = template();
    let on_stream: BTreeSet<_> = template.sources.iter().map(|source| &source.function).collect();
    let permission = |actions: &[&str], resource: &str| Permission {
        actions: actions.iter().map(|action| (*action).to_owned()).collect(),
        resource: json!({"!GetAtt": resource}).to_string(),
        condition: "null".to_owned(),
    };
    let log = permission(&["logs:CreateLogStream", "logs:PutLogEvents"], "LogGroup.Arn");
    let read = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"];
    let stream = permission(&read, "Table.StreamArn");
    let streams = Permission {
        actions: BTreeSet::from(["dynamodb:ListStreams".to_owned()]),
        resource: json!({"!Sub": "${Table.Arn}/stream/*"}).to_string(),
        condition: "null".to_owned(),
    };
    let queue = permission(&["sqs:SendMessage"], "FailedRecordsQueue.Arn");
    for (function, permissions) in &template.permissions {
        let rest: Vec<_> = permissions.iter().filter(|permission| allowed(permission).is_none()).cloned().collect();
        let mut wanted = vec![log.clone()];
        if on_stream.contains(function) {
            wanted.extend([stream.clone(), streams.clone(), queue.clone()]);
        }
        assert_eq!(rest, wanted, "{function}");
        let actions: Vec<_> = permissions.iter().flat_map(|permission| &permission.actions).collect();
        assert!(!actions.iter().any(|action| action.contains('*')), "{function}: {actions:?}");
    }
}

/// A shared role would otherwise allow one of its functions what only another one calls.
#[tokio::test]
async fn functions_that_share_a_role_make_the_same_calls() {
    let called = called().await;
    let mut of_role: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (function, role) in template().roles {
        of_role.entry(role).or_default().push(function);
    }
    assert!(of_role.values().any(|functions| functions.len() > 1), "{of_role:?}");
    for (role, functions) in of_role {
        for function in &functions {
            assert_eq!(called[function], called[&functions[0]], "{function} and {} share {role}", functions[0]);
        }
    }
}
