//! Tests that make each function call everything that it ever calls. The harness checks each call of a function against
//! its role.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::{AttributeValue, Put, PutRequest, TransactWriteItem, WriteRequest};
use local::bucket::FAILED_RECORDS_BUCKET;
use local::database::{Data, TABLE_NAME, client, snapshot};
use local::event_source::StreamFaults;
use local::gateway::endpoint;
use local::http::Call;
use local::roles::{Roles, as_function, of_failed_records};
use local::{Settings, Stack, functions};
use repository::{names_in, read};
use serde_json::{Value, json};
use shared::bucket::ObjectKey;
use shared::records::campaign::CampaignContact;
use shared::records::datasource::DatasourceFile;
use shared::records::delivery::{self, EndpointHealth, Observed};
use shared::records::export::{Export, ExportProgress, ExportStatus};
use shared::records::widget::Widget;
use shared::request::route::Access;
use shared::routes;
use shared::runtime::http_client;
use shared::table::keys::{PK, SK};
use shared::table::page::PageQuery;
use shared::values::id::{CampaignContactId, DatasourceFileId, DatasourceId, WidgetId};
use shared::values::limits::Limits;
use uuid::Uuid;

use crate::exercises::EXERCISES;
use crate::support::fixture::{
    ACME, PATIENT, acme, call, data, die_in_every_list, everything, get, id, json, kind, post, scratch, settings,
    stack, streaming, tenant, valid_body, valid_call,
};
use crate::support::owners::{OWNERS, owner};
use crate::support::permits::{allowed, template};
use crate::support::sealed::unseal;
use crate::support::sweep::cases;

/// Limits of keys under which every request is counted.
const COUNTED: Limits = Limits::new(50, 99);

/// An append cleans up after crashed processes, and an idempotency key adds writes. Each role must allow both.
#[tokio::test]
async fn every_function_may_make_its_calls_after_old_crashes() {
    let crashed = Data::CopyOf(crashed_table().await);
    let mut wrong = Vec::new();
    for file in cases(names_in("events")) {
        let function = file.split('.').next().unwrap();
        // Functions on the stream or a schedule have their own test below.
        if endpoint(function).is_none() {
            continue;
        }
        let event: Value = serde_json::from_str(&read(&format!("events/{file}"))).unwrap();
        // The crashes and the key make no difference to the status.
        let answer = read(&format!("local/tests/answers/{}.txt", file.trim_end_matches(".json")));
        let wanted: u16 = answer.lines().next().unwrap().parse().unwrap();
        let mut events = vec![event.clone()];
        if event["httpMethod"] == "POST" {
            let mut keyed = event;
            keyed["headers"]["idempotency-key"] = "a-key".into();
            events.push(keyed);
        }
        for event in events {
            let stack =
                Stack::start(Settings { data: crashed.clone(), key_limits: COUNTED, ..settings() }).await.unwrap();
            let answer = stack.gateway.invoke_by_name(function, event.to_string().as_bytes()).await;
            if json(&answer)["statusCode"] != wanted {
                let key = event["headers"]["idempotency-key"].as_str();
                wrong.push(format!("{file}, with the key {key:?}, should answer {wanted}: {}", answer.body));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Before its first event, a process reads a missing item, so that its connection is open.
#[tokio::test]
async fn every_function_may_make_its_warm_up_call() {
    let stack = stack().await;
    // A document has no client of the table.
    let documents: Vec<_> = routes::DOCUMENTS.iter().map(|route| route.name).collect();
    for function in template().permissions.keys().filter(|function| !documents.contains(&function.as_str())) {
        as_function(function, stack.gateway.service.store.warm_up()).await.unwrap();
    }
}

/// Tasks are the functions that only an operator invokes.
#[tokio::test]
async fn operator_tasks_may_make_their_calls() {
    let acme = "01900000-0000-7000-8000-a00000000001";
    let mut key = json!({"org_id": acme, "id": "01900000-0000-7000-8000-a00e00000001", "name": "x", "burst": 10_000});
    // A new object.
    key["key"] = format!("{acme}/{}", id('a', kind::DATASOURCE_FILE, 1)).into();
    (key["size_bytes"], key["put_at"]) = (json!(1), json!("2026-02-01T12:00:00Z"));
    for task in functions::TASKS {
        let stack = Stack::start(Settings { key_limits: COUNTED, ..settings() }).await.unwrap();
        let answer = stack.gateway.invoke_by_name(task.name, key.to_string().as_bytes()).await;
        assert!(!answer.headers.contains_key("x-amz-function-error"), "{}: {}", task.name, answer.body);
    }
}

/// A table in which processes crashed days ago.
async fn crashed_table() -> PathBuf {
    const DAYS: i64 = 3;
    let (stack, file) = (Stack::start(settings()).await.unwrap(), scratch("dead.db"));
    die_in_every_list(&stack, DAYS * 24 * 60).await;
    snapshot(&stack.database, &file).unwrap();
    file
}

/// Each function has a process of its own: the memory of another one, such as its data keys, would hide calls.
fn apart() -> Settings {
    Settings { processes: true, ..streaming() }
}

/// Functions on the stream or a schedule, each with work to do.
#[tokio::test]
async fn background_functions_may_make_their_calls() {
    let scheduled: BTreeSet<_> = template().schedules.into_iter().map(|with| with.function).collect();
    let on_stream = functions::CONSUMERS.iter().map(|consumer| consumer.name.to_owned());
    for function in cases(on_stream.chain(scheduled.iter().cloned()).collect::<BTreeSet<_>>()) {
        let stack = Stack::start(apart()).await.unwrap();
        give_something_to_do(&stack, &function).await;
        stack.stream.drain_for(&function).await.unwrap();
        assert_eq!(stack.stream.given_up(), Vec::<Value>::new(), "{function}");
        if scheduled.contains(&function) {
            stack.tick(&function).await.unwrap();
        }
    }
}

/// `redrive` handles changes that the stream gave up, so it makes every call of the reactions.
#[tokio::test]
async fn redrive_may_make_the_calls_of_reactions() {
    let stack = Stack::start(apart()).await.unwrap();
    stack.settle().await.unwrap();
    stack.stream.set_faults(&StreamFaults { given_up: 1.0, ..StreamFaults::default() });
    give_something_to_do(&stack, "record-changed").await;
    let mut rounds = 0;
    // A removal in steps continues through the stream.
    loop {
        stack.stream.drain_for("record-changed").await.unwrap();
        if stack.objects.failed_records().unwrap().is_empty() {
            break;
        }
        stack.tick("redrive").await.unwrap();
        assert_eq!(stack.objects.failed_records().unwrap(), []);
        rounds += 1;
    }
    assert!(rounds > 1, "nothing was removed in steps");
}

/// With other permissions, `redrive` could not handle some of the changes that `record-changed` gave up.
#[test]
fn redrive_has_the_permissions_of_record_changed() {
    let mut allowed = allowed();
    let mut redrive = allowed.remove("redrive").unwrap();
    redrive.retain(|call| !call.ends_with(&of_failed_records()));
    assert_eq!(redrive, allowed["record-changed"]);
}

/// Gives `function` work in which it makes all the calls that it ever makes.
async fn give_something_to_do(stack: &Stack, function: &str) {
    match function {
        "record-changed" => change_records(stack).await,
        "send-delivery" => give_deliveries(stack).await,
        "release-deliveries" => {
            close_towards_nobody(stack).await;
            stack.settle().await.unwrap();
            let clock = &stack.gateway.service.clock;
            clock.set(clock.now().plus_seconds(60));
        }
        "run-exports" => make_exports(stack).await,
        "send-campaigns" => run_campaigns(stack).await,
        // `redrive` has a test of its own.
        "redrive" => {}
        "remove-payment-webhooks" => retire_payment_webhooks(stack).await,
        other => panic!("nothing here gives {other} something to do: add it"),
    }
}

async fn change_records(stack: &Stack) {
    // The key of a removed agency is sealed if it is old.
    get(stack, &valid_call(&routes::SETUP_PAYMENT_WEBHOOK, 'a', ACME).path).await;
    unseal(stack).await;
    data(&stack.answer(&valid_call(&routes::DELETE_AGENCY, 'a', ACME)).await);
    for kind_of in OWNERS {
        let owner = Box::pin(owner(stack, kind_of, 2)).await;
        data(&stack.answer(&call("DELETE", &owner.path, ACME)).await);
    }
    // The tag has so many links that its removal takes more than one step.
    data(&stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await);
    data(&stack.answer(&valid_call(&routes::CLOSE_CONVERSATION, 'a', ACME)).await);
    // An old file, and a young one that may still be uploaded.
    data(&stack.answer(&valid_call(&routes::DELETE_DATASOURCE_FILE, 'a', ACME)).await);
    let (table, of) = (acme(stack), DatasourceId(id('a', kind::DATASOURCE, 1).parse().unwrap()));
    let old: DatasourceFile =
        table.get(DatasourceFileId(id('a', kind::DATASOURCE_FILE, 2).parse().unwrap())).await.unwrap();
    let now = stack.gateway.service.clock.now();
    let young = |_, id| DatasourceFile { id, created_at: now, ..old.clone() };
    let young = table.insert_all(of, &[Uuid::max()], young).await.unwrap().remove(0);
    table.remove::<DatasourceFile>(young.id).await.unwrap();
}

async fn give_deliveries(stack: &Stack) {
    // The health of a deleted webhook is removed. Another webhook fails now.
    let gone = close_towards_nobody(stack).await;
    stack.settle().await.unwrap();
    data(&stack.answer(&call("DELETE", &format!("/api/v1/outbound_webhook/{gone}"), ACME)).await);
    stack.tick("send-delivery").await.unwrap();
    let clock = &stack.gateway.service.clock;
    clock.set(clock.now().plus_seconds(7200));
    close_towards_nobody(stack).await;
    stack.stream.drain_for("record-changed").await.unwrap();
    // A delivery of a campaign that is paused before the delivery is sent.
    let (table, id) = (acme(stack), WidgetId(id('a', kind::WIDGET, 1).parse().unwrap()));
    let connect = |widget: &mut Widget| widget.connector_url = Some(NOBODY.to_owned());
    table.change(id, Uuid::max(), connect).await.unwrap();
    let run = data(&stack.answer(&valid_call(&routes::RUN_CAMPAIGN, 'a', ACME)).await);
    stack.tick("send-campaigns").await.unwrap();
    let pause = format!("/api/v1/campaign/{}/pause", run["campaign_id"].as_str().unwrap());
    data(&stack.answer(&post(&pause, ACME, "")).await);
    // The event of a closed conversation contains the message of that campaign.
    let contacts = format!("/api/v1/campaign/contact/list/{}", run["campaign_id"].as_str().unwrap());
    let contact = get(stack, &contacts).await["items"][0].clone();
    let close = format!("/api/v1/conversation/{}/close", contact["conversation_id"].as_str().unwrap());
    data(&stack.answer(&post(&close, ACME, "")).await);
    // An old webhook, whose secret is open, has failed for five days: it is disabled, and its secret is sealed.
    let (old, now) = (close_towards_nobody(stack).await, clock.now());
    unseal(stack).await;
    let failed = Observed { failures: 3, failing_since: Some(now.plus_seconds(-6 * 86_400)), ..Observed::default() };
    let healthy = EndpointHealth::healthy(old.parse::<Uuid>().unwrap().into());
    delivery::health::keep(&table, &healthy, &failed, now, now).await.unwrap();
    stack.stream.drain_for("record-changed").await.unwrap();
}

async fn run_campaigns(stack: &Stack) {
    // One campaign through a widget alone, and one through a connector.
    data(&stack.answer(&valid_call(&routes::RUN_CAMPAIGN, 'a', ACME)).await);
    let (table, id) = (acme(stack), WidgetId(id('a', kind::WIDGET, 2).parse().unwrap()));
    let connect = |widget: &mut Widget| widget.connector_url = Some(NOBODY.to_owned());
    table.change(id, Uuid::max(), connect).await.unwrap();
    let run = valid_body(&routes::RUN_CAMPAIGN, 'a');
    data(&stack.answer(&post(&format!("/api/v1/campaign/run/{id}"), ACME, run)).await);
}

async fn make_exports(stack: &Stack) {
    // One that is made, one that is given up, and one whose file is removed.
    for _ in 0..3 {
        data(&stack.answer(&post("/api/v1/export", ACME, r#"{"records":["campaign","message","contact"]}"#)).await);
    }
    let (table, now) = (acme(stack), stack.gateway.service.clock.now());
    let exports = table.page::<Export>((), &PageQuery::oldest_first(1, 100)).await.unwrap().items;
    let [.., given_up, expired] = &exports[..] else { panic!("{exports:?}") };
    let bucket = &stack.gateway.service.bucket;
    let key = ObjectKey::of_export(&tenant(), given_up.id);
    let upload = Some(bucket.begin_upload(&key, "text/csv").await.unwrap());
    let progress = ExportProgress { tries: 10, upload, ..ExportProgress::default() };
    table.replace(given_up.id, given_up, Export { progress, ..given_up.clone() }).await.unwrap().unwrap();
    let ended = Export { status: ExportStatus::Completed, due_at: Some(now), ..expired.clone() };
    table.replace(expired.id, expired, ended).await.unwrap().unwrap();
}

async fn retire_payment_webhooks(stack: &Stack) {
    // One webhook is removed. The other one fails and is retried later.
    for _ in 0..2 {
        let agency = json!({"billing_plan": {"payment_api_key": "sk_demo_of_this_test"}}).to_string();
        let agency = data(&stack.answer(&post("/api/v1/agency", ACME, agency)).await)["id"].clone();
        let path = format!("/api/v1/agency/billing/{}/setup_payment_webhook", agency.as_str().unwrap());
        get(stack, &path).await;
        let path = format!("/api/v1/agency/{}", agency.as_str().unwrap());
        data(&stack.answer(&call("DELETE", &path, ACME)).await);
    }
    stack.settle().await.unwrap();
    // An old key is sealed when the removal is retried.
    unseal(stack).await;
    // Each removal is attempted twice, at the same time as the other one.
    stack.payment_provider.fail(&[500, 500, 500]);
}

/// An address at which no test listens.
const NOBODY: &str = "http://127.0.0.1:1/";

/// Closes a conversation whose webhook does not answer. Returns the webhook's id.
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

/// The recorded events of these operations do not make all of their calls.
#[tokio::test]
async fn operations_may_make_the_calls_of_rare_cases() {
    for exercise in cases(EXERCISES) {
        let stack = stack().await;
        let mut before = String::new();
        for call in (exercise.calls_more)() {
            let call = Call { path: call.path.replace("{id}", &before), ..call };
            let answer = data(&stack.answer(&call).await);
            answer["id"].as_str().unwrap_or_default().clone_into(&mut before);
        }
    }
}

/// The message of a campaign is stored apart from the messages of its conversation.
#[tokio::test]
async fn operations_may_make_their_calls_after_a_campaign() {
    let stack = stack().await;
    let run = data(&stack.answer(&valid_call(&routes::RUN_CAMPAIGN, 'a', ACME)).await);
    stack.tick("send-campaigns").await.unwrap();
    let contacts = format!("/api/v1/campaign/contact/list/{}", run["campaign_id"].as_str().unwrap());
    let contact = get(&stack, &contacts).await["items"][0].clone();
    let (id, conversation) = (contact["id"].as_str().unwrap(), contact["conversation_id"].as_str().unwrap());
    // Old contacts lack this field, so the operation reads the messages of their conversations.
    let key = acme(&stack).key::<CampaignContact>(CampaignContactId(id.parse().unwrap()));
    let forget = stack.client.update_item().table_name(TABLE_NAME).set_key(Some(key.attributes()));
    forget.update_expression("REMOVE said").send().await.unwrap();
    for (route, path) in [
        (&routes::READ_CONVERSATION, format!("/api/v1/conversation/{conversation}")),
        (&routes::READ_CONVERSATION_TRANSCRIPT, format!("/api/v1/conversation/{conversation}/transcript")),
        (&routes::DELETE_CAMPAIGN_CONTACT, format!("/api/v1/campaign_contact/{id}")),
    ] {
        data(&stack.answer(&call(route.method, &path, ACME)).await);
    }
}

/// The functions that write API keys: those of operators, and those of customers with the role `admin`. An API key is
/// nothing but an item `KEY#…`, so who writes one opens an organisation.
const KEY_WRITERS: &[&str] =
    &["issue-api-key", "revoke-api-key", "update-api-key", "create-key", "update-key", "revoke-key", "rotate-key"];

/// A transaction, a batch and each single write of `item`, with the code of the failure.
async fn writes(client: &Client, item: HashMap<String, AttributeValue>) -> Vec<String> {
    let mut own = item.clone();
    own.insert(PK.to_owned(), AttributeValue::S("ORG#01900000-0000-7000-8000-a00000000001#LIST#TAG".to_owned()));
    let put = |item| Put::builder().table_name(TABLE_NAME).set_item(Some(item)).build().unwrap();
    let request =
        |item| WriteRequest::builder().put_request(PutRequest::builder().set_item(Some(item)).build().unwrap()).build();
    let transaction = [own.clone(), item.clone()].map(|item| TransactWriteItem::builder().put(put(item)).build());
    let (batch, key) = ([own, item.clone()].map(request).to_vec(), Some(item.clone()));
    let code = |error: Option<&str>| error.unwrap_or_default().to_owned();
    vec![
        code(client.put_item().table_name(TABLE_NAME).set_item(Some(item)).send().await.unwrap_err().code()),
        code(client.update_item().table_name(TABLE_NAME).set_key(key.clone()).send().await.unwrap_err().code()),
        code(client.delete_item().table_name(TABLE_NAME).set_key(key).send().await.unwrap_err().code()),
        code(client.batch_write_item().request_items(TABLE_NAME, batch).send().await.unwrap_err().code()),
        code(
            client
                .transact_write_items()
                .set_transact_items(Some(transaction.to_vec()))
                .send()
                .await
                .unwrap_err()
                .code(),
        ),
    ]
}

/// Any other function that is broken, or that somebody else has changed, cannot make a key.
#[tokio::test]
async fn only_functions_about_keys_may_write_api_keys() {
    let stack = stack().await;
    // The roles of the template decide, even if `cargo generate` runs this test.
    let connector = Roles::of(&template(), None).unwrap().connector(embedded_dynamodb::connector(&stack.database));
    let client = client(&stack.dynamodb_url, http_client::client(connector), PATIENT);
    let before = everything(&stack).await;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let key = HashMap::from([(PK.to_owned(), text(&format!("KEY#{}", "0".repeat(64)))), (SK.to_owned(), text("KEY"))]);
    let template = template();
    for function in template.permissions.keys().filter(|function| !KEY_WRITERS.contains(&function.as_str())) {
        let codes = as_function(function, writes(&client, key.clone())).await;
        assert_eq!(codes, ["AccessDeniedException"; 5], "{function}");
    }
    assert_eq!(everything(&stack).await, before);
    for function in KEY_WRITERS {
        let may = |action: &str| allowed()[*function].contains(&format!("dynamodb:{action} KEY#*"));
        assert!(may("PutItem") || may("UpdateItem") || may("DeleteItem"), "{function}");
        let route = routes::every().find(|route| route.name == *function);
        assert!(route.is_none_or(|route| route.access == Access::Admin), "{function} is not for administrators");
    }
}

/// Beside its own calls, each function writes its log. Lambda reads the stream for a function on it, and keeps the
/// function's failed records.
#[test]
fn a_role_allows_only_log_and_stream_beside_the_calls_of_its_function() {
    let (template, calls) = (template(), allowed());
    for (function, permissions) in &template.permissions {
        let reads_failed_records = calls[function].iter().any(|call| call.ends_with(&of_failed_records()));
        let resources = permissions.iter().filter_map(|permission| {
            let resource: Value = serde_json::from_str(&permission.resource).unwrap();
            let name = resource["!GetAtt"].as_str().or(resource["!Sub"].as_str()).unwrap().to_owned();
            let of_table = name == "Table.Arn" || name.starts_with("${Table.Arn}/index/");
            let of_failed_records = name.contains(FAILED_RECORDS_BUCKET) && reads_failed_records;
            let is_of_data = of_table || name == "SecretsKey.Arn" || name.contains("FilesBucket") || of_failed_records;
            (!is_of_data).then_some(name)
        });
        let mut wanted = vec!["LogGroup.Arn"];
        // Lambda must be allowed to list the bucket before it keeps a failed record.
        let is_on_stream = template.sources.iter().any(|source| source.function == *function);
        if is_on_stream {
            wanted.extend(["Table.StreamArn", "${Table.Arn}/stream/*"]);
        }
        if is_on_stream || template.notified_of_objects.contains(function) {
            wanted.extend(["${FailedRecordsBucket.Arn}/*", "FailedRecordsBucket.Arn"]);
        }
        assert_eq!(resources.collect::<Vec<_>>(), wanted, "{function}");
        let actions: Vec<_> = permissions.iter().flat_map(|permission| &permission.actions).collect();
        assert!(!actions.iter().any(|action| action.contains('*')), "{function}: {actions:?}");
    }
}
