//! Tests of the deletion of many records: it does what as many single deletions do, in few transactions.

use std::sync::atomic::{AtomicUsize, Ordering};

use local::database::request;
use local::faults::{Fault, Faults};
use local::http::{Answer, Call};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::records::contact::Contact;
use shared::records::tag::Tag;
use shared::request::route::Route;
use shared::routes::{self, DELETE_CONTACTS, DELETE_CONVERSATIONS, DELETE_FORMS, DELETE_TAGS};
use shared::values::id::{ContactId, SPREAD};

use crate::support::fixture::{
    ACME, GLOBEX, acme, add_contacts, call, contact_id, data, everything, failure, few, few_streaming, get, go_on_at,
    id, kind, make, stack, with_faults,
};
use crate::support::records::NOBODYS;
use crate::support::sending::Setup;

/// The operations, with the kind of id, the list in the body, and the path of one record.
const ALL: [(&Route, u8, &str, &str); 4] = [
    (&DELETE_CONTACTS, kind::CONTACT, "contact_ids", "contact"),
    (&DELETE_FORMS, kind::FORM, "form_ids", "form"),
    (&DELETE_TAGS, kind::TAG, "tag_ids", "tag"),
    (&DELETE_CONVERSATIONS, kind::CONVERSATION, "conversation_ids", "conversation"),
];

/// The ordinals of a section of a list.
const OF_SECTION: u64 = 32 * 1024;

fn delete(route: &Route, list: &str, ids: &[String], key: &str) -> Call {
    Call { body: json!({list: ids}).to_string().into(), ..call("DELETE", route.path, key) }
}

fn contacts(ids: &[String]) -> Call {
    delete(&DELETE_CONTACTS, "contact_ids", ids, ACME)
}

/// The outcome of each id, in the order of the request.
fn outcomes(answer: &Answer) -> Vec<String> {
    let items = data(answer)["items"].as_array().unwrap().clone();
    for (index, item) in items.iter().enumerate() {
        assert_eq!(item["index"], index);
    }
    items.iter().map(|item| item["outcome"].as_str().unwrap().to_owned()).collect()
}

fn count(outcomes: &[String], outcome: &str) -> usize {
    outcomes.iter().filter(|one| *one == outcome).count()
}

async fn total(stack: &Stack) -> u64 {
    get(stack, "/api/v1/contact").await["total"].as_u64().unwrap()
}

#[tokio::test]
async fn each_id_of_the_list_has_its_own_result() {
    for (route, kind, list, _) in ALL {
        let stack = stack().await;
        let (own, others) = (id('a', kind, 0), id('b', kind, 0));
        let ids = [others, own.clone(), NOBODYS.to_owned(), own.clone(), id('a', kind::CAMPAIGN, 0)];
        let answer = stack.answer(&delete(route, list, &ids, ACME)).await;
        let wanted = ["not_found", "deleted", "not_found", "not_found", "not_found"];
        assert_eq!(outcomes(&answer), wanted, "{}", route.name);
        for (item, id) in data(&answer)["items"].as_array().unwrap().iter().zip(&ids) {
            assert_eq!((&item["id"], &item["issues"]), (&json!(id), &json!([])), "{}", route.name);
        }
        assert_eq!(outcomes(&stack.answer(&delete(route, list, &[own], ACME)).await), ["not_found"], "{}", route.name);
    }
}

#[tokio::test]
async fn a_foreign_id_in_the_list_answers_like_an_unknown_id() {
    for (route, kind, list, _) in ALL {
        let stack = stack().await;
        let before = everything(&stack).await;
        let asked = async |id: &str| {
            let mut answer = stack.answer(&delete(route, list, &[id.to_owned()], ACME)).await;
            answer.headers.remove("x-request-id");
            answer.body = answer.body.replace(id, "");
            answer
        };
        asked(NOBODYS).await;
        assert_eq!(asked(&id('b', kind, 0)).await, asked(NOBODYS).await, "{}", route.name);
        assert_eq!(everything(&stack).await, before, "{}", route.name);
        let by_owner = stack.answer(&delete(route, list, &[id('b', kind, 0)], GLOBEX)).await;
        assert_eq!(outcomes(&by_owner), ["deleted"], "{}", route.name);
    }
}

#[tokio::test]
async fn a_list_of_ids_leaves_what_single_deletes_leave() {
    for (route, kind, list, path) in ALL {
        let numbers = if kind == kind::CONVERSATION { 0..1 } else { 0..2 };
        let ids: Vec<String> = numbers.map(|number| id('a', kind, number)).collect();
        let (many, single) = (stack().await, stack().await);
        let outcomes = outcomes(&many.answer(&delete(route, list, &ids, ACME)).await);
        assert_eq!(count(&outcomes, "deleted"), ids.len(), "{}", route.name);
        for id in ids {
            data(&single.answer(&call("DELETE", &format!("/api/v1/{path}/{id}"), ACME)).await);
        }
        assert_eq!(everything(&many).await, everything(&single).await, "{}", route.name);
    }
}

#[tokio::test]
async fn an_open_conversation_stays_and_the_others_are_deleted() {
    let stack = stack().await;
    let [closed, open] = [0, 1].map(|number| id('a', kind::CONVERSATION, number));
    let ids = [open.clone(), closed, open.clone()];
    let answer = stack.answer(&delete(&DELETE_CONVERSATIONS, "conversation_ids", &ids, ACME)).await;
    assert_eq!(outcomes(&answer), ["failed", "deleted", "failed"]);
    for index in [0, 2] {
        let wanted = json!([{
            "loc": ["body", "conversation_ids", index],
            "msg": "The conversation is open",
            "type": "conversation_open",
        }]);
        assert_eq!(data(&answer)["items"][index]["issues"], wanted);
    }
    assert_eq!(get(&stack, &format!("/api/v1/conversation/{open}")).await["status"], "open");
}

#[tokio::test]
async fn a_list_has_one_to_five_hundred_valid_ids() {
    let stack = stack().await;
    let before = everything(&stack).await;
    for (ids, wanted) in [
        (json!([]), r#"["body","contact_ids"] too_short"#),
        (json!([contact_id(0), "x"]), r#"["body","contact_ids",1] uuid_parsing"#),
        (json!(vec![contact_id(0); 501]), r#"["body","contact_ids"] too_long"#),
        (json!(null), r#"["body","contact_ids"] list_type"#),
    ] {
        let call = Call { body: json!({"contact_ids": ids}).to_string().into(), ..contacts(&[]) };
        assert_eq!(failure(&stack.answer(&call).await), (422, vec![wanted.to_owned()]));
    }
    let without = stack.answer(&Call { body: Vec::new(), ..contacts(&[]) }).await;
    assert_eq!(failure(&without), (422, vec![r#"["body"] missing"#.to_owned()]));
    assert_eq!(everything(&stack).await, before);
}

#[tokio::test]
async fn five_hundred_contacts_take_five_reads_and_sixteen_writes() {
    let stack = stack().await;
    add_contacts(&stack, 620).await;
    let ids: Vec<String> = (60..560).rev().map(contact_id).collect();
    let answer = stack.answer(&contacts(&ids)).await;
    assert_eq!(count(&outcomes(&answer), "deleted"), 500);
    // The key, and the reads, which wait for none of each other.
    assert!(answer.cost.calls <= 5 + 16 + 2, "{:?}", answer.cost);
    assert_eq!(total(&stack).await, 120);
    let page = get(&stack, "/api/v1/contact?size=100&page=2").await;
    assert_eq!(page["items"].as_array().unwrap().len(), 20);
    let again = outcomes(&stack.answer(&contacts(&ids)).await);
    assert_eq!(count(&again, "not_found"), 500);
    assert_eq!(total(&stack).await, 120);
}

/// Each row is alone in its section, so a transaction counts its hole in two items.
#[tokio::test]
async fn rows_far_from_each_other_are_deleted_in_several_transactions() {
    let (stack, faults) = with_faults(few()).await;
    let mut ids = Vec::new();
    for section in 1..=60 {
        go_on_at::<Tag>(&stack, SPREAD + section * OF_SECTION).await;
        ids.push(make(&stack, "/api/v1/tag", json!({"name": "Far"})).await.to_string());
    }
    faults.note_calls();
    let answer = stack.answer(&delete(&DELETE_TAGS, "tag_ids", &ids, ACME)).await;
    assert_eq!(count(&outcomes(&answer), "deleted"), 60);
    let calls = faults.calls();
    let writes: Vec<usize> =
        calls.iter().filter(|call| call.action == "TransactWriteItems").map(|call| call.items.len()).collect();
    // A delete for each row, and for each the holes of a block and of a section.
    assert_eq!(writes, [99, 81]);
    assert_eq!(count(&outcomes(&stack.answer(&delete(&DELETE_TAGS, "tag_ids", &ids, ACME)).await), "not_found"), 60);
}

/// A stack with enough contacts for three transactions, and their ids.
async fn of_three_transactions() -> (Stack, Faults, Vec<String>) {
    let (stack, faults) = with_faults(few()).await;
    add_contacts(&stack, 90).await;
    let ids = (0..90).map(contact_id).collect();
    (stack, faults, ids)
}

#[tokio::test]
async fn a_failed_request_keeps_what_it_has_deleted() {
    let (stack, faults, ids) = of_three_transactions().await;
    let writes = AtomicUsize::default();
    faults.plan(move |action, _| {
        let number = writes.fetch_add(usize::from(action == "TransactWriteItems"), Ordering::SeqCst);
        if action == "TransactWriteItems" && number > 0 { Fault::ServerError } else { Fault::None }
    });
    assert_eq!(stack.answer(&contacts(&ids)).await.status, 503);
    faults.end();
    let left = usize::try_from(total(&stack).await).unwrap();
    assert!((1..90).contains(&left), "{left}");
    let again = outcomes(&stack.answer(&contacts(&ids)).await);
    assert_eq!((count(&again, "deleted"), count(&again, "not_found")), (left, 90 - left));
    assert_eq!(total(&stack).await, 0);
}

/// Before the first transaction, another process changes one contact and removes another one.
#[tokio::test]
async fn a_row_that_changes_meanwhile_is_deleted_alone() {
    let (stack, faults, ids) = of_three_transactions().await;
    let key = |number: usize| {
        let key = acme(&stack).key::<Contact>(ContactId(ids[number].parse().unwrap()));
        json!({"pk": {"S": key.pk}, "sk": {"S": key.sk}})
    };
    let (changed, removed, database) = (key(3), key(5), stack.database.clone());
    let mut done = false;
    faults.plan(move |action, _| {
        if action == "TransactWriteItems" && !std::mem::replace(&mut done, true) {
            let (update, values) = ("SET version = :version", json!({":version": {"N": "7"}}));
            let update = json!({"Key": changed, "UpdateExpression": update, "ExpressionAttributeValues": values});
            database.update_item(request(update).unwrap()).unwrap();
            database.delete_item(request(json!({"Key": removed})).unwrap()).unwrap();
        }
        Fault::None
    });
    let outcomes = outcomes(&stack.answer(&contacts(&ids)).await);
    faults.end();
    assert_eq!((count(&outcomes, "deleted"), outcomes[5].as_str()), (89, "not_found"));
    let left = acme(&stack).find::<Contact>(ContactId(ids[3].parse().unwrap())).await.unwrap();
    assert!(left.is_none());
}

#[tokio::test]
async fn concurrent_requests_delete_each_contact_once() {
    let (stack, _, ids) = of_three_transactions().await;
    let delete = contacts(&ids);
    let answers = tokio::join!(stack.answer(&delete), stack.answer(&delete), stack.answer(&delete));
    let deleted: usize =
        [&answers.0, &answers.1, &answers.2].map(|answer| count(&outcomes(answer), "deleted")).iter().sum();
    assert_eq!(deleted, 90);
    assert_eq!(total(&stack).await, 0);
}

#[tokio::test]
async fn the_audit_list_has_each_deleted_record() {
    let stack = Stack::start(Settings { audit_days: 400, ..few_streaming() }).await.unwrap();
    add_contacts(&stack, 75).await;
    let mut ids: Vec<String> = (0..75).map(contact_id).collect();
    let answer = stack.answer(&contacts(&ids)).await;
    assert_eq!(count(&outcomes(&answer), "deleted"), 75);
    stack.settle().await.unwrap();
    let entries =
        get(&stack, &format!("{}?size=100", routes::LIST_AUDIT.path)).await["items"].as_array().unwrap().clone();
    for entry in &entries {
        assert_eq!((&entry["action"], &entry["record_type"]), (&json!("deleted"), &json!("Contact")));
        assert_eq!(entry["operation"], "delete-contacts");
        assert_eq!(entry["request_id"], answer.headers["x-request-id"]);
    }
    let mut listed: Vec<String> = entries.iter().map(|entry| entry["record_id"].as_str().unwrap().to_owned()).collect();
    listed.sort_unstable();
    ids.sort_unstable();
    assert_eq!(listed, ids);
}

#[tokio::test]
async fn each_deleted_contact_emits_an_event() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let hook = json!({"endpoint": format!("{}/hook", setup.receiver.url), "events": ["contact.deleted"]});
    setup.post(&org, "/api/v1/outbound_webhook", hook).await;
    let sent: Vec<Value> = (0..3).map(|number| json!({"email": format!("{number}@example.com")})).collect();
    let imported = setup.post(&org, "/api/v1/contact/import", json!({"contacts": sent})).await;
    let ids: Vec<Value> = imported["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    let answer = setup.ask(&org, "DELETE", DELETE_CONTACTS.path, &json!({"contact_ids": ids})).await;
    assert_eq!(outcomes(&answer), ["deleted", "deleted", "deleted"]);
    setup.settle().await;
    let received = setup.receiver.received("/hook");
    let mut deleted: Vec<String> = received
        .iter()
        .map(|one| serde_json::from_slice::<Value>(&one.body).unwrap()["data"]["id"].as_str().unwrap().to_owned())
        .collect();
    deleted.sort_unstable();
    let mut wanted: Vec<String> = ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    wanted.sort_unstable();
    assert_eq!(deleted, wanted);
    // The addresses are free again.
    let again = setup.post(&org, "/api/v1/contact/import", json!({"contacts": sent})).await;
    assert!(again["items"].as_array().unwrap().iter().all(|item| item["outcome"] == "created"), "{again}");
}
