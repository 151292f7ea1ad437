//! The callers of a fault run: they call the API as a correct client does, and repeat a call without an answer.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::sleep;

use crate::Trouble;
use crate::api::ApiRequest;
use crate::fault_run::world::{World, member};

/// How long a caller retries without an answer: far longer than a slow and busy machine may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// The answer to a caller.
pub struct Answered {
    /// The method and the address of the request.
    request: String,
    /// When the answered call began; earlier calls had no answer.
    pub at: Instant,
    /// The number of earlier calls without an answer.
    pub unanswered: u32,
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Value,
}

impl Answered {
    /// The data of a success.
    ///
    /// # Errors
    /// [`Trouble`] with any other answer.
    pub fn data(mut self) -> Result<Value, Trouble> {
        if self.status < 300 { Ok(self.body["data"].take()) } else { Err(self.trouble()) }
    }

    /// Says what was answered.
    pub fn trouble(&self) -> Trouble {
        Trouble(format!("{}: {} {}", self.request, self.status, self.body))
    }
}

impl World {
    /// The data of a record that is created before the faults begin.
    ///
    /// # Errors
    /// [`Trouble`] where it is refused.
    pub async fn make(&self, organisation: usize, request: ApiRequest) -> Result<Value, Trouble> {
        self.call(organisation, request, None).await?.data()
    }

    /// Calls the API as a correct client does: a call without an answer is repeated as the same request.
    ///
    /// # Errors
    /// [`Trouble`] where there is never an answer.
    pub async fn ask(&self, organisation: usize, request: impl Into<ApiRequest>) -> Result<Answered, Trouble> {
        let key = format!("fault-run-{}", self.calls.fetch_add(1, Ordering::Relaxed));
        // Boxed: otherwise the caller's future would be too large for the compiler.
        Box::pin(self.call(organisation, request.into(), Some(key))).await
    }

    /// Calls the API; a POST has the idempotency key.
    async fn call(&self, organisation: usize, request: ApiRequest, key: Option<String>) -> Result<Answered, Trouble> {
        let _calling = self.calling.read().await;
        let line = request.to_string();
        let mut call = request.by(&self.organisations[organisation].key);
        if let Some(key) = key.filter(|_| call.method == "POST") {
            call.headers.insert("idempotency-key".to_owned(), key);
        }
        let (begun, mut unanswered) = (Instant::now(), 0);
        loop {
            let at = Instant::now();
            let answer = self.stack.answer(&call).await;
            let in_use = answer.status == 409 && answer.body.contains("idempotency_key_in_use");
            if answer.status != 503 && !in_use {
                let body = serde_json::from_str(&answer.body).unwrap_or_default();
                return Ok(Answered { request: line, at, unanswered, status: answer.status, body });
            }
            if begun.elapsed() > PATIENCE {
                let (status, body, heat) = (answer.status, answer.body, &self.partitions);
                let repeats = format!("{unanswered} times no answer, at last {status} {body}");
                return Err(Trouble(format!("{line}: {repeats}\n{heat}")));
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
        list: impl Into<ApiRequest>,
    ) -> Result<Vec<R>, Trouble> {
        let (list, mut all) = (list.into().query("size=100"), Vec::new());
        for page in 1.. {
            let answered = self.ask(organisation, list.clone().query(format!("page={page}"))).await?;
            all.extend(member::<Vec<R>>(&answered.body["data"], "items")?);
            if answered.body["data"]["next_page"].is_null() {
                break;
            }
        }
        Ok(all)
    }
}
