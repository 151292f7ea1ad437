//! Tests of transactions that take longer than a call waits: each has one effect, and its answer agrees with it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use local::database::request;
use local::faults::{Fault, Faults};
use local::http::{Answer, Call};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::records::intent::Intent;
use shared::request::claim::Claim;
use shared::request::route::Route;
use shared::routes;
use shared::table::TableError;
use shared::values::bytes::Bytes;
use shared::values::id::IntentId;
use shared::values::time::Timestamp;

use crate::support::fixture::{
    ACME, NOW, PATIENT, data, everything, failure, faulty_acme, few, get, id, kind, valid_call, with_faults,
};
use crate::support::keyed::{KEY, keyed};

async fn failing() -> (Stack, Faults) {
    with_faults(Settings { attempt: PATIENT, ..few() }).await
}

/// Loses the answer of the next transaction, which is then still in progress.
fn hold_the_first(faults: &Faults, meets: usize, commits: bool) {
    let mut held = false;
    faults.plan(move |action, _| {
        let holds = !held && action == "TransactWriteItems";
        held |= holds;
        if holds { Fault::InProgress { meets, commits } } else { Fault::None }
    });
}

/// The messages in the conversation of [`routes::ADD_MESSAGE`]'s exercise.
async fn said(stack: &Stack) -> Vec<Value> {
    let path = format!("/api/v1/conversation/{}/transcript", id('a', kind::CONVERSATION, 1));
    get(stack, &path).await["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_slow_transaction_adds_its_message_once() {
    let message = valid_call(&routes::ADD_MESSAGE, 'a', ACME);
    let answer = json!({"sender_type": "bot", "text": "9 to 5", "in_reply_to": id('a', kind::MESSAGE, 0)});
    let answer = Call { body: answer.to_string().into(), ..message.clone() };
    for (meets, call) in (0..12).flat_map(|meets| [(meets, &message), (meets, &answer)]) {
        for commits in [true, false] {
            let (stack, faults) = failing().await;
            let before = said(&stack).await;
            hold_the_first(&faults, meets, commits);
            let added = data(&stack.answer(call).await);
            faults.end();
            let after = said(&stack).await;
            assert_eq!(after, [before, vec![added]].concat(), "{meets} {commits}");
        }
    }
}

/// All attempts at one transaction have the same token. Another transaction has another token.
#[tokio::test]
async fn two_concurrent_messages_are_added_once_each() {
    for commits in [true, false] {
        let (stack, faults) = failing().await;
        let before = said(&stack).await.len();
        hold_the_first(&faults, 9, commits);
        let message = valid_call(&routes::ADD_MESSAGE, 'a', ACME);
        let (first, second) = tokio::join!(stack.answer(&message), stack.answer(&message));
        faults.end();
        let mut added: Vec<Value> = [first, second].iter().map(data).collect();
        added.sort_by_key(|message| message["id"].as_str().unwrap()[28..].to_owned());
        assert_eq!(said(&stack).await[before..], added, "{commits}");
    }
}

#[tokio::test]
async fn a_delete_by_a_slow_transaction_answers_200() {
    let deletes = async |(meets, commits), route: &Route| {
        let (stack, faults) = failing().await;
        hold_the_first(&faults, meets, commits);
        let delete = valid_call(route, 'a', ACME);
        let answer = stack.answer(&delete).await;
        faults.end();
        assert_eq!(answer.status, 200, "{} {meets} {commits}: {}", route.name, answer.body);
        // A list of ids is answered by a list of results.
        let again = stack.answer(&delete).await;
        let is_gone = again.status == 404 || again.body.contains("not_found") && !again.body.contains("\"deleted\"");
        let was_there = answer.body.contains("\"deleted\"") || route.parameters().next().is_some();
        assert!(is_gone && was_there, "{} {meets} {commits} {}", route.name, again.body);
    };
    // The requests mostly wait, so all routes are tried together.
    for case in [(1, true), (1, false), (7, true), (7, false)] {
        let routes = routes::ALL.iter().filter(|route| route.method == "DELETE");
        join_all(routes.map(|route| deletes(case, route))).await;
    }
}

/// After a lost answer, the record may be gone by this delete or by another one. So the caller gets 503, not 404.
#[tokio::test]
async fn a_delete_with_an_unknown_outcome_is_unavailable() {
    let (stack, faults) = failing().await;
    let table = faulty_acme(&stack);
    // A record outside of lists is removed by a plain delete. Its second attempt meets a transaction.
    let (key, secret) = ([7; 32], Bytes::from([7; 32]));
    let (now, ttl) = (Timestamp::from_unix_millis(NOW), 0);
    let (fingerprint, nonce, holder) = (secret.clone(), secret.clone(), secret);
    let claim = Claim { fingerprint, nonce, holder, started_at: now, lease_until: now, sealed: None, ttl };
    table.put_single(key, &claim).await.unwrap();
    faults.plan(|action, number| match (action, number) {
        ("DeleteItem", 0) => Fault::BreakAnswer,
        ("DeleteItem", 1) => Fault::Conflict,
        _ => Fault::None,
    });
    let removed = table.remove_single::<Claim>(key).await;
    assert!(matches!(removed, Err(TableError::Unavailable(_))), "{removed:?}");
    assert!(matches!(table.remove_single::<Claim>(key).await, Err(TableError::Missing)));
    // A row is removed by a transaction. Its first attempt is lost, and before the second the row is gone.
    let row = IntentId(id('a', kind::INTENT, 1).parse().unwrap());
    let (attempts, database, place) = (AtomicUsize::default(), stack.database.clone(), table.key::<Intent>(row));
    faults.plan(move |action, _| {
        match (action, attempts.fetch_add(usize::from(action != "GetItem"), Ordering::SeqCst)) {
            ("TransactWriteItems", 0) => Fault::BreakRequest,
            ("TransactWriteItems", 1) => {
                let key = json!({"pk": {"S": place.pk}, "sk": {"S": place.sk}});
                database.delete_item(request(json!({"Key": key})).unwrap()).unwrap();
                Fault::None
            }
            _ => Fault::None,
        }
    });
    let removed = table.remove::<Intent>(row).await;
    assert!(matches!(removed, Err(TableError::Unavailable(_))), "{removed:?}");
    assert!(matches!(table.remove::<Intent>(row).await, Err(TableError::Missing)));
}

/// The request is retried for the two seconds of its patience.
#[tokio::test]
async fn a_stuck_transaction_answers_503_and_a_repeat_succeeds() {
    let repeated = async |commits: bool| {
        let patience = Duration::from_secs(2);
        let (stack, faults) = with_faults(Settings { attempt: PATIENT, patience, ..few() }).await;
        let before = said(&stack).await;
        hold_the_first(&faults, usize::MAX, commits);
        let message = keyed(valid_call(&routes::ADD_MESSAGE, 'a', ACME), KEY);
        let answer = stack.answer(&message).await;
        assert_eq!(failure(&answer), (503, vec!["[] unavailable".into()]));
        assert_eq!(said(&stack).await, before);
        faults.end();
        let added: Answer = stack.answer(&message).await;
        let after = everything(&stack).await;
        assert_eq!(said(&stack).await, [before, vec![data(&added)]].concat(), "{commits}");
        assert_eq!(stack.answer(&message).await.body, added.body);
        assert_eq!(everything(&stack).await, after);
    };
    tokio::join!(repeated(true), repeated(false));
}
