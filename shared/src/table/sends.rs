//! The sends of an organisation in a day (UTC), counted in the transactions that send.
//!
//! Many processes of an organisation send at the same time, and transactions on one item wait for each other. So the
//! count of a day is in several items, and a send adds to the one that follows from its id. A process that reads the count may use a
//! small part of what is left without another read. Where that part is nothing, each send reads the count first, and
//! adds to the first item on condition that the quota is not reached.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::table::error::TableError;
use crate::table::expression::UpdateExpression;
use crate::table::item::{Item, key_of, number};
use crate::table::keys::{Key, TTL};
use crate::table::part::Table;
use crate::table::quota::{Quota, Reached};
use crate::table::transaction::{Transaction, Write};
use crate::table::uses::{Needs, counted};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;
use uuid::Uuid;

/// The items of a count besides the first one.
const SHARDS: u32 = 16;
/// The part of the sends left that a process may make before it reads the count again: as many processes as Lambda
/// runs by default can all use their part.
const PARTS: u64 = 1024;
/// Seconds for which a process may use its part.
const ALLOWED: i64 = 60;
/// Seconds for which the count of a day is kept after its last change.
const KEPT: i64 = 3 * 86_400;
/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// An item of the count of the day of `now`.
fn counter(tenant: &Tenant, now: Timestamp, shard: u32) -> Key {
    Key::of(tenant, format_args!("SENDS#{}", now.day()), format_args!("{shard:02}"))
}

/// The item, other than the first one, in which what has this id counts. Both halves of an id may differ alone.
pub(super) fn shard(id: Uuid) -> u32 {
    let id = id.as_u128();
    1 + u32::try_from((id ^ (id >> 32)) % u128::from(SHARDS)).unwrap_or_default()
}

/// When the day after that of `now` begins.
pub fn next_day(now: Timestamp) -> Timestamp {
    Timestamp::from_unix_millis((now.unix_millis().div_euclid(DAY) + 1) * DAY)
}

/// Sends that a transaction may make.
#[derive(Debug)]
pub struct Sends {
    key: Key,
    count: u64,
    /// Near the limit: what the other items of the day say.
    elsewhere: Option<u64>,
    ttl: AttributeValue,
}

impl Table {
    /// Allows a transaction to make `count` sends, the first one with the id `first`, if the quota of the day leaves room for
    /// them.
    ///
    /// # Errors
    /// [`TableError::QuotaReached`].
    pub async fn allow_sends(&self, count: u64, first: Uuid, now: Timestamp) -> Result<Sends, TableError> {
        let ttl = number(now.plus_seconds(KEPT).unix_seconds());
        let any = || counter(&self.tenant, now, shard(first));
        let (org, until) = (self.tenant.org(), next_day(now).min(now.plus_seconds(ALLOWED)));
        if self.store.recent.take_sends(org, count, now) {
            return Ok(Sends { key: any(), count, elsewhere: None, ttl });
        }
        let (here, elsewhere) = self.sends_counted(now).await?;
        let (limit, used) = (self.store.quotas.limit(Quota::SendsADay), here + elsewhere);
        let part = limit.saturating_sub(used) / PARTS;
        if let Some(rest) = part.checked_sub(count) {
            self.store.recent.allow_sends(org, rest, until);
            return Ok(Sends { key: any(), count, elsewhere: None, ttl });
        }
        if used + count > limit {
            let reached = Reached { quota: Quota::SendsADay, limit, used, needed: count };
            return Err(TableError::QuotaReached(reached));
        }
        Ok(Sends { key: counter(&self.tenant, now, 0), count, elsewhere: Some(elsewhere), ttl })
    }

    /// The sends of the day of `now`: those that the first item counts, and all others.
    pub(super) async fn sends_counted(&self, now: Timestamp) -> Result<(u64, u64), TableError> {
        let first = counter(&self.tenant, now, 0);
        let items = self.store.query(&first.pk, &first.sk, None).await?;
        let is_first = |item: &Item| key_of(item).as_ref() == Some(&first);
        let sum = |is_in: bool| {
            items.iter().filter(|item| is_first(item) == is_in).map(|item| counted(Some(item), Quota::SendsADay)).sum()
        };
        Ok((sum(true), sum(false)))
    }
}

impl<M> Transaction<'_, M> {
    /// Counts sends that the transaction makes.
    pub fn send(&mut self, sends: Sends) {
        let Sends { key, count, elsewhere, ttl } = sends;
        let counting = UpdateExpression::new().add(Quota::SendsADay.as_str(), number(count)).set(TTL, ttl);
        let amounts = elsewhere.map(|_| (Quota::SendsADay, count)).into_iter().collect();
        self.need(Write::update(key, counting), Needs { amounts, elsewhere: elsewhere.unwrap_or_default() });
    }
}
