//! Transactions that stay in progress for longer than their callers wait. DynamoDB has such transactions, the embedded
//! database never has.
//!
//! The answer to such a transaction is lost. Calls with its token get the answer that it is in progress, and other
//! writes of its items conflict with it. Finally it is either committed or dropped.

use std::sync::{Arc, Mutex, PoisonError};

use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use serde_json::{Value, json};

use crate::calls::written;

/// The transactions in progress. Clones share them.
#[derive(Clone, Default)]
pub struct InProgress(Arc<Mutex<Vec<Held>>>);

struct Held {
    request: HttpRequest,
    token: Value,
    keys: Vec<String>,
    /// The number of calls that will still meet it.
    meets: usize,
    commits: bool,
}

/// The effect of transactions in progress on a call.
pub enum Interference {
    /// The call is refused, with this answer.
    Refusal(Value),
    /// These transactions are committed first.
    Ended(Vec<HttpRequest>),
}

impl InProgress {
    /// Holds a transaction: so many calls meet it, and then it is committed if `commits` is true.
    pub fn hold(&self, request: HttpRequest, meets: usize, commits: bool) {
        let body = request.body().bytes().unwrap_or_default();
        let (token, keys) = (token_of(body), written("TransactWriteItems", body));
        self.with(|held| held.push(Held { request, token, keys, meets, commits }));
    }

    /// The effect of transactions in progress on this call of `action`.
    pub fn check_call(&self, action: &str, request: &HttpRequest) -> Interference {
        self.with(|all| {
            if all.is_empty() {
                return Interference::Ended(Vec::new());
            }
            let body = request.body().bytes().unwrap_or_default();
            let (token, keys) = (token_of(body), written(action, body));
            let mut ended = Vec::new();
            while let Some(place) = all.iter().position(|held| held.keys.iter().any(|key| keys.contains(key))) {
                let held = &mut all[place];
                if held.meets > 0 {
                    held.meets -= 1;
                    return Interference::Refusal(if !token.is_null() && token == held.token {
                        exception("TransactionInProgressException", "The transaction is in progress")
                    } else if token.is_null() {
                        conflict_of_one()
                    } else {
                        conflict(&keys.iter().map(|key| held.keys.contains(key)).collect::<Vec<_>>())
                    });
                }
                let held = all.remove(place);
                ended.extend(held.commits.then_some(held.request));
            }
            Interference::Ended(ended)
        })
    }

    /// Ends all of them with the next call that meets them.
    pub fn end(&self) {
        self.with(|all| all.iter_mut().for_each(|held| held.meets = 0));
    }

    fn with<T>(&self, work: impl FnOnce(&mut Vec<Held>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn token_of(body: &[u8]) -> Value {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    document["ClientRequestToken"].clone()
}

/// An exception of DynamoDB, as the body of an answer with 400.
pub fn exception(kind: &str, message: &str) -> Value {
    json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{kind}"), "Message": message})
}

/// The answer to a write of one item while a transaction writes the same item: `TransactionConflictException`.
pub fn conflict_of_one() -> Value {
    exception("TransactionConflictException", CONFLICT)
}

/// The answer to a transaction that conflicts with another write. `met` has the actions that conflict.
pub fn conflict(meets: &[bool]) -> Value {
    let reason = |meets: &bool| {
        if *meets { json!({"Code": "TransactionConflict", "Message": CONFLICT}) } else { json!({"Code": "None"}) }
    };
    cancelled(meets.iter().map(reason).collect())
}

/// The answer to a transaction that was cancelled, with a reason for each action.
pub fn cancelled(reasons: Vec<Value>) -> Value {
    let mut cancelled = exception("TransactionCanceledException", "Transaction cancelled");
    cancelled["CancellationReasons"] = reasons.into();
    cancelled
}

const CONFLICT: &str = "Transaction is ongoing for the item";
