//! A token bucket that many processes share: one item. A process takes tokens from it by one conditional write.
//!
//! The item has the time at which the bucket is full again. Taking tokens moves this time forward by the time in which
//! they are refilled; the bucket is empty when it is as far ahead as the refill of all tokens takes. (The algorithm is
//! known as GCRA.) One plain update is enough, and plain updates do not conflict.

use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;

use crate::table::error::TableError;
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, number};
use crate::table::keys::{Key, TTL};
use crate::table::meter::Unit;
use crate::table::retry::failure;
use crate::table::store::{Store, units};

/// Seconds for which the item of a full bucket is kept.
const KEPT: i64 = 60 * 60;
const SECOND: i64 = 1_000_000_000;
/// The attribute that says when the bucket is full again.
const FULL_AT: &str = "full_at";
/// How many times a write is attempted if other processes were faster.
const TRIES: usize = 3;

/// A withdrawal of tokens. Times are in nanoseconds; `now` counts from 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Withdrawal {
    /// The time.
    pub now: i64,
    /// The time in which the tokens are refilled.
    pub cost: i64,
    /// The time in which all tokens of the bucket are refilled.
    pub capacity: i64,
    /// Whether the bucket is probably full. A wrong guess costs a second write.
    pub seems_full: bool,
}

/// The result of a withdrawal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// When the bucket is full again.
    pub full_at: i64,
    /// Whether the tokens were taken. Otherwise the bucket had too few.
    pub granted: bool,
}

impl Store {
    /// Takes tokens from the bucket at `key`. Calls are not retried after a failure, because a caller waits.
    ///
    /// # Errors
    /// [`TableError`]; the tokens may have been taken.
    pub(crate) async fn withdraw(&self, key: &Key, wanted: &Withdrawal) -> Result<Taken, TableError> {
        let Withdrawal { now, cost, capacity, seems_full: mut full } = *wanted;
        let (latest, ttl) = (now + capacity - cost, number((now + capacity) / SECOND + KEPT));
        for _ in 0..TRIES {
            let (update, as_expected) = if full {
                let is_full = "attribute_not_exists(full_at) OR full_at <= :now";
                (
                    UpdateExpression::new().set(FULL_AT, number(now + cost)),
                    Condition::of(is_full, [(":now", number(now))]),
                )
            } else {
                let bounds = [(":now", number(now)), (":latest", number(latest))];
                let has_room = Condition::of("full_at > :now AND full_at <= :latest", bounds);
                (UpdateExpression::new().add(FULL_AT, number(cost)), has_room)
            };
            let call = self.update_item(key, &update.set(TTL, ttl.clone()), Some(&as_expected));
            let under_way = self.calls.begin(&self.meter).await;
            let once = Builder::new().retry_config(RetryConfig::disabled());
            let error = match call.customize().config_override(once).send().await {
                Ok(output) => {
                    under_way.end(Unit::Write, units(output.consumed_capacity.as_ref()));
                    let full_at = output.attributes.as_ref().and_then(full_at);
                    return Ok(Taken { full_at: full_at.unwrap_or(now + cost), granted: true });
                }
                Err(error) => error,
            };
            let Some(UpdateItemError::ConditionalCheckFailedException(existing)) = error.as_service_error() else {
                under_way.end(Unit::Write, 0.0);
                return Err(failure(&error));
            };
            // A failed condition costs as much as the write would have; the answer does not include the cost.
            under_way.end(Unit::Write, 1.0);
            match existing.item.as_ref().and_then(full_at) {
                Some(full_at) if full_at > latest => return Ok(Taken { full_at, granted: false }),
                existing => full = existing.is_none_or(|full_at| full_at <= now),
            }
        }
        Err(TableError::Unavailable("others kept taking tokens".into()))
    }
}

fn full_at(item: &Item) -> Option<i64> {
    item.get(FULL_AT)?.as_n().ok()?.parse().ok()
}
