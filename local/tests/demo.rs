//! Makes the records of the demo set by the API's own operations and compares them.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use local::{Settings, Stack};
use serde_json::Value;
use shared::request::route::Route;
use shared::routes;
use shared::table::keys::LIST_HEAD;
use uuid::Uuid;

use crate::support::fixture::{as_stored, demo_id, fields, get, json, path, settings};
use crate::support::sending::{Setup, id_of};

/// The operations that make and list each record, after the records that it names. Links name no records.
const RECORDS: [(&Route, &Route); 13] = [
    (&routes::CREATE_WEBHOOK, &routes::LIST_WEBHOOKS),
    (&routes::CREATE_ASSISTANT, &routes::LIST_ASSISTANTS),
    (&routes::CREATE_WIDGET, &routes::LIST_WIDGETS),
    (&routes::UPSERT_CONTACT, &routes::LIST_CONTACTS),
    (&routes::CREATE_INTENT, &routes::LIST_INTENTS),
    (&routes::CREATE_FORM, &routes::LIST_FORMS),
    (&routes::CREATE_TAG, &routes::LIST_TAGS),
    (&routes::CREATE_USER, &routes::GET_AGENT_LIST),
    (&routes::CREATE_AGENCY, &routes::LIST_AGENCIES),
    (&routes::CREATE_AGENCY_BILLING_PLAN, &routes::LIST_AGENCY_BILLING_PLANS),
    (&routes::CREATE_DATASOURCE, &routes::LIST_DATASOURCES),
    (&routes::CREATE_DATASOURCE_FILE, &routes::LIST_DATASOURCE_FILES),
    (&routes::OPEN_CONVERSATION, &routes::LIST_CONVERSATIONS),
];

/// `text` with the new ids in place of the ids of the demo set.
fn renamed(text: &str, ids: &BTreeMap<String, String>) -> String {
    let id = |part: &str| ids.get(part).cloned().unwrap_or_else(|| part.to_owned());
    let mut renamed = String::new();
    for part in text.split_inclusive(['"', '/']) {
        let end = part.trim_end_matches(['"', '/']).len();
        renamed += &id(&part[..end]);
        renamed += &part[end..];
    }
    renamed
}

#[tokio::test]
async fn the_operations_make_the_records_of_the_demo_set() {
    let demo = Stack::start(settings()).await.unwrap();
    let setup = Setup::with(|settings| Settings { demo: None, ..settings }).await;
    let org = setup.org().await;
    let (mut ids, mut made) = (BTreeMap::new(), 0);
    for (create, list) in RECORDS {
        let all = path(list, |parameter| demo_id('a', parameter));
        let listed = get(&demo, &format!("{all}?size=100")).await;
        let items = listed["items"].as_array().unwrap();
        assert!(!items.is_empty(), "{}", list.name);
        let to = renamed(&path(create, |parameter| demo_id('a', parameter)), &ids);
        for item in items {
            let id = id_of(item).to_owned();
            let item: Value = serde_json::from_str(&renamed(&item.to_string(), &ids)).unwrap();
            let sent = fields(create).into_iter().map(|(name, _)| name).filter(|name| name != "org_id");
            let body: serde_json::Map<String, Value> =
                sent.filter_map(|name| Some((name.clone(), item.get(&name)?.clone()))).collect();
            let answer = setup.ask(&org, "POST", &to, &Value::from(body.clone())).await;
            assert_eq!(answer.status, 201, "{} {body:?}: {}", create.name, answer.body);
            let answered = json(&answer)["data"].clone();
            for (name, value) in body {
                assert_eq!(answered[&name], value, "{} {name}", create.name);
            }
            ids.insert(id, answered["id"].as_str().unwrap().to_owned());
            made += 1;
        }
    }
    assert!(made > 150 && ids.keys().all(|id| id.parse::<Uuid>().is_ok()), "{made}");
}

/// A token would make later inserts cost more than `docs/COST.md` says.
#[tokio::test]
async fn the_loaded_demo_set_has_no_tokens_in_heads_of_lists() {
    let stack = Stack::start(settings()).await.unwrap();
    let is_head = |item: &BTreeMap<String, AttributeValue>| item["sk"] == AttributeValue::S(LIST_HEAD.to_owned());
    let heads: Vec<_> = as_stored(&stack).into_iter().filter(is_head).collect();
    assert!(heads.len() > 10);
    for head in heads {
        let names: Vec<_> = head.keys().map(String::as_str).collect();
        assert_eq!(names, ["next_ordinal", "pk", "sk"], "{head:?}");
    }
}
