//! Skips time: everything that became due meanwhile is listed, and done at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::table::item::{Item, key_of};
use shared::table::keys::{DUE_INDEX, TTL};
use shared::values::time::Timestamp;

use super::Console;
use super::markup::{rows, time_of};

/// The most seconds in one skip: 30 days.
const LONGEST: u64 = 30 * 86_400;
/// The most due items that are listed for one skip.
const REPORTED: usize = 100;

/// The skips, the oldest first.
pub type Skips = Mutex<Vec<Skip>>;

/// A skip.
#[derive(Debug, Clone)]
pub struct Skip {
    from: Timestamp,
    to: Timestamp,
    /// The items that came due between the two times.
    due: Vec<String>,
}

/// The request of the button.
#[derive(Debug, Deserialize)]
pub(super) struct SkipRequest {
    seconds: u64,
}

impl Console {
    pub(super) fn time(&self) -> Markup {
        let skips = self.skips.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let skipped: Vec<_> = skips.iter().rev().map(skipped).collect();
        html! {
            section.card {
                p #now.live { "It is " strong { (self.clock.now()) } "." }
                div.actions {
                    @for (label, seconds) in [("Skip 5 minutes", 300), ("Skip 1 hour", 3_600), ("Skip 1 day", 86_400)] {
                        form data-method="POST" action="/console/time" {
                            input type="hidden" name="seconds" value=(seconds) data-number;
                            button { (label) }
                        }
                    }
                }
                p.quiet { "Retries, leases, expiry and schedules follow this clock. It begins at the time of the machine with each start." }
            }
            (rows("skips", &["From", "To", "What came due"], &skipped, "No time was skipped yet."))
        }
    }

    /// The items that become due after `from` and until `to`: retries, campaigns and so on from the index, and items
    /// that expire.
    async fn due(&self, from: Timestamp, to: Timestamp) -> Result<Vec<String>, String> {
        let index = self.scan().index_name(DUE_INDEX);
        let until = AttributeValue::S(to.to_string());
        let index = index.filter_expression("due_at <= :until").expression_attribute_values(":until", until);
        let seconds = |at: Timestamp| AttributeValue::N(at.unix_seconds().to_string());
        let expired = self.scan().filter_expression("#ttl > :from AND #ttl <= :to");
        let expired = expired.expression_attribute_names("#ttl", TTL);
        let expired =
            expired.expression_attribute_values(":from", seconds(from)).expression_attribute_values(":to", seconds(to));
        let due: Result<Vec<Item>, _> = index.into_paginator().items().send().collect().await;
        let expired: Result<Vec<Item>, _> = expired.into_paginator().items().send().collect().await;
        let line = |item: &Item, what: &str| {
            Some(format!("{what}: {}", key_of(item).map(|key| format!("{} {}", key.pk, key.sk))?))
        };
        let kind = |item: &Item| Some(item.get("due_pk")?.as_s().ok()?.split('#').next()?.to_owned());
        let due = due.map_err(|error| error.to_string())?;
        let expired = expired.map_err(|error| error.to_string())?;
        let due = due.iter().filter_map(|item| line(item, &kind(item)?));
        Ok(due.chain(expired.iter().filter_map(|item| line(item, "expired"))).collect())
    }
}

fn skipped(skip: &Skip) -> Markup {
    html! {
        td { (time_of(skip.from)) }
        td { (time_of(skip.to)) }
        td.wide {
            @if skip.due.is_empty() { "Nothing." }
            @for due in skip.due.iter().take(REPORTED) { div { code { (due) } } }
            @if skip.due.len() > REPORTED { "… and " (skip.due.len() - REPORTED) " more" }
        }
    }
}

/// Skips time, and runs the functions with a schedule for the items that came due.
pub(super) async fn skip(
    State(console): State<Arc<Console>>,
    body: Bytes,
) -> Result<Json<Value>, (StatusCode, Json<Value>)> {
    let refused = |status: StatusCode, says: String| (status, Json(json!({"error": says})));
    let wanted: SkipRequest =
        serde_json::from_slice(&body).map_err(|error| refused(StatusCode::BAD_REQUEST, error.to_string()))?;
    if wanted.seconds > LONGEST {
        return Err(refused(StatusCode::BAD_REQUEST, format!("seconds is {LONGEST} at most")));
    }
    let failed = |says: String| refused(StatusCode::INTERNAL_SERVER_ERROR, says);
    let from = console.clock.now();
    console.clock.skip(Duration::from_secs(wanted.seconds));
    let to = console.clock.now();
    let due = console.due(from, to).await.map_err(failed)?;
    let report = format!("It is {to}. {} came due.", due.len());
    console.skips.lock().unwrap_or_else(PoisonError::into_inner).push(Skip { from, to, due });
    let done = console.schedules.minute().await;
    console.journal.changed();
    done.map_err(|trouble| failed(trouble.to_string()))?;
    Ok(Json(json!({"message": report})))
}
