//! The callers of a fault run: they call the API as a correct client does, and repeat a call without an answer.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::sleep;

use crate::Trouble;
use crate::fault_run::world::{World, member};
use crate::http::Call;

/// How long a caller retries without an answer: far longer than a slow and busy machine may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// The answer to a caller.
pub struct Answered {
    /// When the answered call began; earlier calls had no answer.
    pub at: Instant,
    /// The number of earlier calls without an answer.
    pub unanswered: u32,
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Value,
}

impl World {
    /// The data of a record that is created before the faults begin.
    ///
    /// # Errors
    /// [`Trouble`] where it is refused.
    pub async fn make(&self, organisation: usize, path: &str, body: Value) -> Result<Value, Trouble> {
        let answered = self.call(organisation, "POST", path, "", &body, None).await?;
        match answered.status {
            200 | 201 => Ok(answered.body["data"].clone()),
            status => Err(Trouble(format!("POST {path}: {status} {}", answered.body))),
        }
    }

    /// Calls the API as a correct client does: a call without an answer is repeated as the same request.
    ///
    /// # Errors
    /// [`Trouble`] where there is never an answer.
    pub async fn ask(
        &self,
        organisation: usize,
        method: &str,
        path: &str,
        query: &str,
        body: &Value,
    ) -> Result<Answered, Trouble> {
        let key = format!("fault-run-{}", self.calls.fetch_add(1, Ordering::Relaxed));
        // Boxed: otherwise the caller's future would be too large for the compiler.
        Box::pin(self.call(organisation, method, path, query, body, (method == "POST").then_some(key))).await
    }

    async fn call(
        &self,
        organisation: usize,
        method: &str,
        path: &str,
        query: &str,
        body: &Value,
        key: Option<String>,
    ) -> Result<Answered, Trouble> {
        let bearer = format!("Bearer {}", self.organisations[organisation].key);
        let headers = [("authorization", Some(bearer)), ("idempotency-key", key)];
        let call = Call {
            method: method.into(),
            path: path.into(),
            query: query.into(),
            headers: headers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
            body: if body.is_null() { Vec::new() } else { body.to_string().into() },
        };
        let (begun, mut unanswered) = (Instant::now(), 0);
        loop {
            let at = Instant::now();
            let answer = self.stack.answer(&call).await;
            let in_use = answer.status == 409 && answer.body.contains("idempotency_key_in_use");
            if answer.status != 503 && !in_use {
                let body = serde_json::from_str(&answer.body).unwrap_or_default();
                return Ok(Answered { at, unanswered, status: answer.status, body });
            }
            if begun.elapsed() > PATIENCE {
                let (status, body, heat) = (answer.status, answer.body, &self.partitions);
                let repeats = format!("{unanswered} times no answer, at last {status} {body}");
                return Err(Trouble(format!("{method} {path}: {repeats}\n{heat}")));
            }
            unanswered += 1;
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// All records of a list of the API.
    ///
    /// # Errors
    /// [`Trouble`] where it cannot be read.
    pub async fn list<R: DeserializeOwned>(
        &self,
        organisation: usize,
        path: &str,
        query: &str,
    ) -> Result<Vec<R>, Trouble> {
        let mut all = Vec::new();
        for page in 1.. {
            let query = format!("{query}&size=100&page={page}");
            let answered = self.ask(organisation, "GET", path, &query, &Value::Null).await?;
            all.extend(member::<Vec<R>>(&answered.body["data"], "items")?);
            if answered.body["data"]["next_page"].is_null() {
                break;
            }
        }
        Ok(all)
    }
}
