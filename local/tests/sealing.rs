//! Tests that secrets are sealed in the table, and opened only where they are needed (ADR 45).

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::{join_all, try_join_all};
use local::database::{Data, TABLE_NAME};
use local::http::Call;
use local::receiver::Behaviour;
use local::{Settings, Stack};
use repository::root;
use serde_json::{Value, json};
use shared::records::delivery::DeliveryState;
use shared::routes;
use shared::sealing::SealingError;
use shared::values::id::OrgId;
use shared::values::secret::{SealedSecret, StoredSecret};
use uuid::Uuid;

use crate::support::fixture::{
    ACME, GLOBEX, as_stored, call, data, demo_payment_secret, empty, id, json, kind, path, post, scratch, stack,
    streaming, tenant, valid_call,
};
use crate::support::permits::allowed;
use crate::support::sealed::{SEALED, bytes, unseal};
use crate::support::sending::{Setup, id_of};

type Stored = BTreeMap<String, AttributeValue>;

const WEBHOOKS: &str = "/api/v1/outbound_webhook";
/// The secrets of the demo set's webhooks, its keys of providers, and others that this file sends.
const KNOWN: [&str; 4] = ["ZGVtby1h", "sk_demo_", "canary-of-a-provider", "canary-of-a-page"];

/// Everything in the items that a reader of the table sees: texts and bytes.
fn visible(items: &[Stored]) -> String {
    fn add(value: &AttributeValue, all: &mut String) {
        match value {
            AttributeValue::S(text) => *all += text,
            AttributeValue::B(bytes) => *all += &String::from_utf8_lossy(bytes.as_ref()),
            AttributeValue::L(values) => values.iter().for_each(|value| add(value, all)),
            AttributeValue::M(values) => values.values().for_each(|value| add(value, all)),
            _ => {}
        }
        all.push('\n');
    }
    let mut all = String::new();
    items.iter().flat_map(BTreeMap::values).for_each(|value| add(value, &mut all));
    all
}

/// The calls of KMS that `work` makes: each action once for each call.
async fn calls_of<T>(stack: &Stack, work: impl Future<Output = T>) -> (Vec<String>, T) {
    let before = stack.kms.calls().len();
    let done = work.await;
    (stack.kms.calls().into_iter().skip(before).map(|(action, _)| action).collect(), done)
}

/// A request with an idempotency key: its answer is stored too.
fn keyed(call: Call) -> Call {
    let mut headers = call.headers;
    headers.insert("idempotency-key".to_owned(), call.path.clone());
    Call { headers, ..call }
}

/// The sealed secrets in the attribute `name` of a record of Acme.
fn sealed(stack: &Stack, record: &str, name: &str) -> Vec<SealedSecret> {
    let of_acme = format!("ORG#{}#", tenant().org());
    let is_it = |item: &Stored| {
        item["pk"].as_s().unwrap().starts_with(&of_acme)
            && item.get("record").is_some_and(|is| is.as_s().unwrap() == record)
    };
    let mut items: Vec<Stored> = as_stored(stack).into_iter().filter(is_it).collect();
    let values = items.iter_mut().filter_map(|item| item.get_mut(name)).flat_map(bytes);
    let read = |value: &mut AttributeValue| match serde_dynamo::from_attribute_value(value.clone()).unwrap() {
        StoredSecret::Sealed(secret) => secret,
        StoredSecret::Open(_) => panic!("bytes are never open"),
    };
    values.map(read).collect()
}

#[tokio::test]
async fn no_operation_stores_a_secret_in_plain_text() {
    let stack = stack().await;
    let (webhook, widget) = (id('a', kind::WEBHOOK, 1), id('a', kind::WIDGET, 2));
    let settings = json!({
        "billing_plan": {"payment_api_key": "sk_live_canary-of-a-provider"},
        "branding": {"nested": [{"client_secret": "canary-of-a-page"}]},
    });
    let mut secrets: Vec<String> = KNOWN.map(str::to_owned).into();
    for call in [
        post(WEBHOOKS, ACME, json!({"endpoint": "https://93.184.215.14/hooks"}).to_string()),
        post(&format!("{WEBHOOKS}/{webhook}/rotate_secret"), ACME, ""),
        valid_call(&routes::CREATE_WIDGET, 'a', ACME),
        valid_call(&routes::UPDATE_WIDGET, 'a', ACME),
        post(&format!("/api/v1/widget/{widget}/rotate_secret"), ACME, ""),
        post("/api/v1/agency", ACME, settings.to_string()),
        Call { body: settings.to_string().into(), ..valid_call(&routes::UPDATE_AGENCY, 'a', ACME) },
        valid_call(&routes::RECEIVE_PAYMENT_EVENT, 'a', ACME),
        valid_call(&routes::SETUP_PAYMENT_WEBHOOK, 'a', ACME),
    ] {
        let made = data(&stack.answer(&if call.method == "POST" { keyed(call.clone()) } else { call }).await);
        secrets.extend(made["secret"].as_str().map(|secret| secret["whsec_".len()..].to_owned()));
    }
    secrets.extend(stack.payment_provider.endpoints().into_values().map(|endpoint| endpoint.secret));
    secrets.push(demo_payment_secret('a').to_owned());
    assert!(secrets.len() > 9, "{secrets:?}");
    let visible = visible(&as_stored(&stack));
    let found: Vec<_> = secrets.iter().filter(|secret| visible.contains(secret.as_str())).collect();
    assert_eq!(found, Vec::<&String>::new());
    // The table also has the masked form of each sealed object, in plain text.
    assert!(visible.contains("sk_live…ider"));
}

#[tokio::test]
async fn old_items_are_read_and_sealed_at_their_next_write() {
    for route in [
        &routes::UPDATE_WEBHOOK,
        &routes::ROTATE_WEBHOOK_SECRET,
        &routes::UPDATE_WIDGET,
        &routes::ROTATE_WIDGET_SECRET,
        &routes::UPDATE_AGENCY,
        &routes::SETUP_PAYMENT_WEBHOOK,
    ] {
        let stack = stack().await;
        unseal(&stack).await;
        let before = as_stored(&stack);
        assert!(visible(&before).contains(demo_payment_secret('a')), "the table is an old one");
        data(&stack.answer(&valid_call(route, 'a', ACME)).await);
        let changed: Vec<Stored> = as_stored(&stack).into_iter().filter(|item| !before.contains(item)).collect();
        let is_sealed = |item: &Stored| SEALED.iter().any(|(_, name, _)| item.get(*name).is_some_and(has_bytes));
        assert!(changed.iter().any(is_sealed), "{}: {changed:?}", route.name);
        let visible = visible(&changed);
        for secret in KNOWN.into_iter().chain([demo_payment_secret('a'), "whsec_"]) {
            assert!(!visible.contains(secret), "{}: {secret}", route.name);
        }
    }
}

fn has_bytes(value: &AttributeValue) -> bool {
    !bytes(&mut value.clone()).is_empty()
}

/// The removed agency is old, so its key is sealed when it is kept for the removal of its webhook.
#[tokio::test]
async fn an_old_key_is_sealed_when_its_agency_is_removed() {
    for is_old in [false, true] {
        let stack = Stack::start(Settings { processes: true, ..streaming() }).await.unwrap();
        data(&stack.answer(&valid_call(&routes::SETUP_PAYMENT_WEBHOOK, 'a', ACME)).await);
        if is_old {
            unseal(&stack).await;
        }
        let agency = path(&routes::DELETE_AGENCY, |_| id('a', kind::AGENCY, 1));
        data(&stack.answer(&call("DELETE", &agency, ACME)).await);
        let (calls, ()) = calls_of(&stack, async { stack.stream.drain_for("record-changed").await.unwrap() }).await;
        // A sealed key is kept as it is.
        assert_eq!(calls.len(), usize::from(is_old), "{calls:?}");
        let retired: Vec<Stored> =
            as_stored(&stack).into_iter().filter(|item| item.contains_key("payment_api_key")).collect();
        assert_eq!(retired.len(), 1);
        assert!(has_bytes(&retired[0]["payment_api_key"]) && !visible(&retired).contains("sk_"));
        stack.tick("remove-payment-webhooks").await.unwrap();
        assert_eq!(stack.payment_provider.endpoints().len(), 0);
    }
}

#[tokio::test]
async fn a_warm_request_makes_no_call_of_kms() {
    let stack = stack().await;
    let create = || post(WEBHOOKS, ACME, json!({"endpoint": "https://93.184.215.14/hooks"}).to_string());
    let rotate = || post(&format!("{WEBHOOKS}/{}/rotate_secret", id('a', kind::WEBHOOK, 1)), ACME, "");
    for (call, wanted) in [
        (create(), vec!["GenerateDataKey"]),
        (create(), vec![]),
        (rotate(), vec![]),
        (valid_call(&routes::CREATE_AGENCY, 'a', ACME), vec![]),
        (valid_call(&routes::CHECK_PAYMENT_WEBHOOK, 'a', ACME), vec!["Decrypt"]),
        (valid_call(&routes::CHECK_PAYMENT_WEBHOOK, 'a', ACME), vec![]),
    ] {
        let (calls, answer) = calls_of(&stack, stack.answer(&call)).await;
        data(&answer);
        assert_eq!(calls, wanted, "{} {}", call.method, call.path);
    }
    // Another organisation has data keys of its own.
    let (calls, answer) = calls_of(&stack, stack.answer(&valid_call(&routes::CREATE_WEBHOOK, 'b', GLOBEX))).await;
    data(&answer);
    assert_eq!(calls, ["GenerateDataKey"]);
}

#[tokio::test]
async fn an_operation_without_secrets_makes_no_call_of_kms() {
    let stack = stack().await;
    let may = allowed();
    let uses_kms = |function: &str| may[function].iter().any(|permission| permission.starts_with("kms:"));
    let (users, others): (Vec<_>, Vec<_>) = routes::ALL.iter().partition(|route| uses_kms(route.name));
    assert_eq!(users.len(), 10, "{users:?}");
    for route in others {
        let (calls, answer) = calls_of(&stack, stack.answer(&valid_call(route, 'a', ACME))).await;
        assert_eq!(calls, Vec::<String>::new(), "{}", route.name);
        assert!(answer.status < 500, "{}: {}", route.name, answer.body);
    }
}

#[tokio::test]
async fn many_who_open_with_one_data_key_share_one_call() {
    let stack = stack().await;
    let (secrets, org) = (stack.kms.secrets(), tenant().org());
    let sealed = sealed(&stack, "Webhook", "secrets");
    let open = |sealed: &SealedSecret| {
        let (secrets, sealed) = (secrets.clone(), sealed.clone());
        async move { secrets.open(org, "Webhook.secrets", &sealed).await }
    };
    let (calls, opened) = calls_of(&stack, try_join_all((0..20).map(|_| open(&sealed[0])))).await;
    assert_eq!((calls, opened.unwrap().len()), (vec!["Decrypt".to_owned()], 20));
    // A failure is not remembered.
    let other = stack.kms.secrets();
    stack.kms.fail("DisabledException", None);
    let failed = join_all((0..20).map(|_| other.open(org, "Webhook.secrets", &sealed[0]))).await;
    assert!(failed.into_iter().all(|failed| matches!(failed, Err(SealingError::Unavailable(_)))));
    stack.kms.recover();
    assert!(other.open(org, "Webhook.secrets", &sealed[0]).await.is_ok());
}

#[tokio::test]
async fn a_secret_does_not_open_in_another_organisation_or_place() {
    let stack = stack().await;
    let globex = OrgId(Uuid::from_u128(0x0190_0000_0000_7000_8000_b000_0000_0001));
    for (org, place) in [(globex, "Webhook.secrets"), (tenant().org(), "Widget.secrets")] {
        let sealed = sealed(&stack, "Webhook", "secrets").remove(0);
        let error = stack.kms.secrets().open(org, place, &sealed).await.unwrap_err();
        assert_eq!(error.to_string(), format!("{place} cannot be opened"));
    }
    // The billing plan of another organisation, put into Acme's agency.
    let plan_of = |organisation: char| {
        let is_it = |item: &Stored| {
            item.get("id").is_some_and(|is| is.as_s().unwrap() == &id(organisation, kind::AGENCY, 1))
                && item.contains_key("billing_plan")
        };
        as_stored(&stack).into_iter().find(is_it).unwrap()
    };
    let (mut agency, other) = (plan_of('a'), plan_of('b'));
    agency.insert("billing_plan".to_owned(), other["billing_plan"].clone());
    put(&stack, agency).await;
    let answer = stack.answer(&valid_call(&routes::CHECK_PAYMENT_WEBHOOK, 'a', ACME)).await;
    assert_eq!((answer.status, json(&answer)["detail"][0]["type"].as_str()), (500, Some("internal_error")));
}

async fn put(stack: &Stack, item: Stored) {
    let put = stack.client.put_item().table_name(TABLE_NAME);
    put.set_item(Some(item.into_iter().collect())).send().await.unwrap();
}

#[tokio::test]
async fn without_kms_a_request_is_answered_503_and_writes_nothing() {
    for kind_of in ["ThrottlingException", "KMSInternalException", "DisabledException"] {
        let stack = stack().await;
        stack.kms.fail(kind_of, None);
        // Also a refused request notes the use of its key.
        let stored = || as_stored(&stack).into_iter().filter(|item| !item.contains_key("used_on")).collect::<Vec<_>>();
        let before = stored();
        for call in [
            post(WEBHOOKS, ACME, json!({"endpoint": "https://93.184.215.14/hooks"}).to_string()),
            post(&format!("{WEBHOOKS}/{}/rotate_secret", id('a', kind::WEBHOOK, 1)), ACME, ""),
            valid_call(&routes::CHECK_PAYMENT_WEBHOOK, 'a', ACME),
            valid_call(&routes::RECEIVE_PAYMENT_EVENT, 'a', ACME),
        ] {
            let answer = stack.answer(&call).await;
            assert_eq!((answer.status, answer.headers["retry-after"].as_str()), (503, "1"), "{kind_of} {}", call.path);
        }
        assert_eq!(stored(), before, "{kind_of}");
        // Reads show masks, and need no key.
        for route in [&routes::READ_WEBHOOK, &routes::LIST_WEBHOOKS, &routes::READ_AGENCY, &routes::LIST_WIDGETS] {
            data(&stack.answer(&valid_call(route, 'a', ACME)).await);
        }
        stack.kms.recover();
        data(&stack.answer(&valid_call(&routes::CREATE_WEBHOOK, 'a', ACME)).await);
    }
}

#[tokio::test]
async fn without_kms_deliveries_wait_and_those_of_others_arrive() {
    let setup = Setup::with(|settings| Settings { processes: true, ..settings }).await;
    let (org, other) = (setup.org().await, setup.org().await);
    let (webhook, healthy) = (setup.webhook(&org, "/hook").await, setup.webhook(&other, "/healthy").await);
    // Each function is a process of its own: the one that sends knows no data key yet.
    setup.stack.kms.fail("DisabledException", Some(org.id));
    for (org, webhook) in [(&org, &webhook), (&other, &healthy)] {
        setup.post(org, &format!("{WEBHOOKS}/{}/test", id_of(webhook)), Value::Null).await;
    }
    setup.settle().await;
    assert_eq!((setup.receiver.count("/hook"), setup.receiver.count("/healthy")), (0, 1));
    setup.minutes(3).await;
    assert_eq!(setup.receiver.count("/hook"), 0);
    setup.stack.kms.recover();
    setup.minutes(3).await;
    assert_eq!(setup.receiver.count("/hook"), 1);
    let outbox = setup.outbox(&org, &webhook).await;
    assert_eq!((outbox[0].state, outbox[0].attempts), (DeliveryState::Delivered, 1));
}

#[tokio::test]
async fn an_old_webhook_signs_and_is_sealed_when_it_is_disabled() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let webhook = setup.webhook(&org, "/hook").await;
    unseal(&setup.stack).await;
    setup.receiver.behave("/hook", Behaviour::Answer(410));
    setup.post(&org, &format!("{WEBHOOKS}/{}/test", id_of(&webhook)), Value::Null).await;
    setup.settle().await;
    assert_eq!(setup.receiver.count("/hook"), 1);
    assert_eq!(setup.get(&org, &format!("{WEBHOOKS}/{}", id_of(&webhook))).await["disabled_reason"], "gone");
    let stored = as_stored(&setup.stack);
    assert!(!visible(&stored).contains("whsec_"), "{stored:?}");
}

#[tokio::test]
async fn a_restarted_stack_opens_what_an_earlier_one_has_sealed() {
    let file = scratch("sealed.db");
    for _ in 0..2 {
        let demo = Settings::of(&root()).demo;
        let stack = Stack::start(Settings { data: Data::File(file.clone()), demo, ..empty() }).await.unwrap();
        data(&stack.answer(&valid_call(&routes::CHECK_PAYMENT_WEBHOOK, 'a', ACME)).await);
        stack.stop().await;
    }
}
