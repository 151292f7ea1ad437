//! What a user uses up of a billing plan, counted in the transactions that write it.
//!
//! Assistants count while they exist, in one item, so their count is exact. Everything else counts by billing period.
//! Many processes count for a user at the same time, and transactions on one item wait for each other. So the count of
//! a period is in several items, and a write adds to any of them. Under a plan that blocks, a request reads the count
//! first. If it needs little of what is left, it adds to any item, too. Otherwise it adds to the first item, on
//! condition that the limit is kept.

use std::fmt;

use crate::table::error::TableError;
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, key_of, number};
use crate::table::keys::{Key, TTL};
use crate::table::part::Table;
use crate::table::sends::shard;
use crate::table::transaction::{Transaction, Write};
use crate::table::uses::count_in;
use crate::values::id::UserId;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;
use uuid::Uuid;

/// The part of what is left that a request may use without a condition. Sixty-four processes that do so at the same
/// time stay within two percent of the limit.
const PARTS: u64 = 4096;
/// Seconds for which a process remembers that a user has no plan.
const PLANLESS: i64 = 60;
/// Seconds for which a count is kept after its period.
const KEPT: i64 = 31 * 86_400;

crate::choice! {
    /// What a billing plan limits. This is the one list of the meters.
    pub enum PlanMeter {
        /// Assistants that exist.
        Bots = "bots",
        /// Answers of assistants.
        Queries = "queries",
        /// Words of data sources.
        Words = "words",
        /// Seconds of voice.
        VoiceSeconds = "voice_seconds",
    }
}

impl PlanMeter {
    /// Every meter.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::WORDS.iter().filter_map(|word| Self::from_word(word))
    }

    /// The attribute with the time at which a count first passed its limit, in milliseconds since 1970.
    const fn exceeded_at(self) -> &'static str {
        match self {
            Self::Bots => "bots_exceeded_at",
            Self::Queries => "queries_exceeded_at",
            Self::Words => "words_exceeded_at",
            Self::VoiceSeconds => "voice_seconds_exceeded_at",
        }
    }
}

crate::choice! {
    /// What happens where a user would use more than the plan allows.
    pub enum Overage {
        /// It is allowed.
        Allow = "allow",
        /// It is allowed, and the usage says since when the limit is exceeded.
        Notify = "notify",
        /// It is refused with 402.
        Block = "block",
    }
}

/// An amount of each of some meters.
pub type MeterAmounts = Vec<(PlanMeter, u64)>;

/// What a plan allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanLimits {
    /// What happens beyond the limits.
    pub overage: Overage,
    /// The limits, in the order of the meters.
    pub limits: [u64; PlanMeter::WORDS.len()],
}

impl PlanLimits {
    /// The limit of `meter`.
    pub const fn limit(self, meter: PlanMeter) -> u64 {
        self.limits[meter as usize]
    }
}

/// A billing period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillingPeriod {
    /// When it starts.
    pub starts_at: Timestamp,
    /// When the next one starts, whose counts begin with 0.
    pub resets_at: Timestamp,
}

/// A user for whom is counted, in a billing period, with the limits of the plan if the user has one.
#[derive(Debug, Clone, Copy)]
pub struct Metered {
    /// The user.
    pub user: UserId,
    /// The period.
    pub period: BillingPeriod,
    /// The limits.
    pub plan: Option<PlanLimits>,
}

impl Metered {
    /// The limits, if it matters whether they are exceeded.
    fn watched(&self) -> Option<PlanLimits> {
        self.plan.filter(|plan| plan.overage != Overage::Allow)
    }

    /// The item that counts the assistants.
    fn bots(tenant: &Tenant, user: UserId) -> Key {
        Key::of(tenant, format_args!("METERS#{user}"), "BOTS")
    }

    /// An item of the count of the period.
    fn part(&self, tenant: &Tenant, part: u32) -> Key {
        let Self { user, period, .. } = self;
        Key::of(tenant, format_args!("METERS#{user}#{}", period.starts_at), format_args!("{part:02}"))
    }

    /// Adds `amounts`, and marks those meters as exceeded that `exceed` names.
    fn adding(&self, amounts: &MeterAmounts, exceed: &[PlanMeter], now: Timestamp) -> UpdateExpression {
        let add = |update: UpdateExpression, (meter, amount): &(PlanMeter, u64)| {
            let update = update.add(meter.as_str(), number(amount));
            let is_over = exceed.contains(meter);
            if is_over { update.set_if_absent(meter.exceeded_at(), number(now.unix_millis())) } else { update }
        };
        let kept = self.period.resets_at.plus_seconds(KEPT);
        amounts.iter().fold(UpdateExpression::new().set(TTL, number(kept.unix_seconds())), add)
    }
}

/// A meter of a user that has no room for what a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The meter.
    pub meter: PlanMeter,
    /// The limit of the plan.
    pub limit: u64,
    /// What is used.
    pub used: u64,
    /// What the request needs.
    pub needed: u64,
    /// When the billing period ends.
    pub resets_at: Timestamp,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { meter, limit, used, needed, resets_at } = self;
        let meter = meter.as_str();
        write!(formatter, "The plan of the user has no room: meter {meter}, limit {limit}, use {used}")?;
        if *needed > 1 {
            write!(formatter, ", needed {needed}")?;
        }
        write!(formatter, ", resets_at {resets_at}")?;
        // Assistants that exist go on counting in the next period.
        if self.meter == PlanMeter::Bots { write!(formatter, "; a deleted assistant makes room") } else { Ok(()) }
    }
}

/// The room that an item must have for what a request needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeterRoom {
    needs: Exceeded,
    /// What the other items of the count say.
    elsewhere: u64,
}

impl MeterRoom {
    /// The condition that there is room.
    pub fn condition(&self) -> Condition {
        let Exceeded { meter, limit, needed, .. } = self.needs;
        let (name, room) = (meter.as_str(), limit.checked_sub(needed.saturating_add(self.elsewhere)));
        // Without any room not even a missing count is small enough.
        let absent = if room.is_some() { format!("attribute_not_exists(#{name}) OR ") } else { String::new() };
        let values = [(":room".to_owned(), room.map_or_else(|| number(-1), number))];
        Condition::new(format!("{absent}#{name} <= :room"), values.into())
    }

    /// The refusal, according to the item `existing`.
    pub fn exceeded(&self, existing: Option<&Item>) -> Exceeded {
        Exceeded { used: count_in(existing, self.needs.meter.as_str()) + self.elsewhere, ..self.needs }
    }
}

/// What a transaction counts for a user.
#[derive(Debug, Clone)]
pub struct Metering {
    key: Key,
    update: UpdateExpression,
    room: Option<MeterRoom>,
}

crate::object! {
    /// What a user has used up of a meter.
    pub struct MeterUse {
        /// The meter.
        pub meter: PlanMeter,
        /// The limit of the plan; null without a plan.
        pub limit: Option<u64>,
        /// What is used: assistants that exist, or what was used up of another meter in the billing period.
        pub used: u64,
        /// Since when the limit is exceeded; null if it is not, or if `overage` is `allow`.
        pub exceeded_at: Option<Timestamp>,
    }
}

impl Table {
    /// Counts a new assistant for `of`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn meter_bot(&self, of: &Metered, now: Timestamp) -> Result<Metering, TableError> {
        let (meter, key) = (PlanMeter::Bots, Metered::bots(&self.tenant, of.user));
        let update = UpdateExpression::new().add(meter.as_str(), number(1));
        let Some(plan) = of.watched() else { return Ok(Metering { key, update, room: None }) };
        let (limit, resets_at) = (plan.limit(meter), of.period.resets_at);
        if plan.overage == Overage::Block {
            let needs = Exceeded { meter, limit, used: 0, needed: 1, resets_at };
            return Ok(Metering { key, update, room: Some(MeterRoom { needs, elsewhere: 0 }) });
        }
        let used = count_in(self.store.get(&key).await?.as_ref(), meter.as_str());
        let exceeded = || number(now.unix_millis());
        let update = if used < limit { update } else { update.set_if_absent(meter.exceeded_at(), exceeded()) };
        Ok(Metering { key, update, room: None })
    }

    /// Counts `needed` of `meter` for what a request of `of` makes with this id. A plan that blocks may refuse it. An
    /// earlier attempt with the mark `origin` may have counted it.
    ///
    /// # Errors
    /// [`TableError::Exceeded`].
    pub async fn meter_request(
        &self,
        of: &Metered,
        (meter, needed): (PlanMeter, u64),
        (id, origin): (Uuid, Option<Uuid>),
        now: Timestamp,
    ) -> Result<Metering, TableError> {
        let amounts = vec![(meter, needed)];
        let Some(plan) = of.watched().filter(|plan| plan.overage == Overage::Block) else {
            return self.meter_report(of, &amounts, id, now).await;
        };
        let (here, elsewhere) = self.metered_in_period(of).await?;
        let elsewhere = elsewhere.iter().map(|item| count_in(Some(item), meter.as_str())).sum::<u64>();
        let (limit, used) = (plan.limit(meter), count_in(here.as_ref(), meter.as_str()) + elsewhere);
        let (update, left) = (of.adding(&amounts, &[], now), limit.saturating_sub(used));
        let needs = Exceeded { meter, limit, used, needed, resets_at: of.period.resets_at };
        // If an earlier attempt has counted, the transaction meets its marker.
        if needed <= left / PARTS || (needed > left && self.has_made(origin).await?) {
            return Ok(Metering { key: of.part(&self.tenant, shard(id)), update, room: None });
        }
        if needed > left {
            return Err(TableError::Exceeded(needs));
        }
        Ok(Metering { key: of.part(&self.tenant, 0), update, room: Some(MeterRoom { needs, elsewhere }) })
    }

    /// Counts what `of` has used already, under this id. Nothing refuses it.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn meter_report(
        &self,
        of: &Metered,
        amounts: &MeterAmounts,
        id: Uuid,
        now: Timestamp,
    ) -> Result<Metering, TableError> {
        let exceed: Vec<PlanMeter> = match of.watched() {
            None => Vec::new(),
            Some(plan) => {
                let (here, elsewhere) = self.metered_in_period(of).await?;
                let is_over = |(meter, needed): &&(PlanMeter, u64)| {
                    let all = here.iter().chain(&elsewhere);
                    let used: u64 = all.map(|item| count_in(Some(item), meter.as_str())).sum();
                    used.saturating_add(*needed) > plan.limit(*meter)
                };
                amounts.iter().filter(is_over).map(|(meter, _)| *meter).collect()
            }
        };
        let update = of.adding(amounts, &exceed, now);
        Ok(Metering { key: of.part(&self.tenant, shard(id)), update, room: None })
    }

    /// What `of` has used up of each meter.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn meter_uses(&self, of: &Metered) -> Result<Vec<MeterUse>, TableError> {
        let bots = Metered::bots(&self.tenant, of.user);
        let (bots, period) = futures_util::try_join!(self.store.get(&bots), self.metered_in_period(of))?;
        // The item of the assistants has no other meter.
        let items: Vec<Item> = bots.into_iter().chain(period.0).chain(period.1).collect();
        let count = |name: &'static str| items.iter().map(move |item| count_in(Some(item), name));
        let of_meter = |meter: PlanMeter| {
            let (limit, used) = (of.plan.map(|plan| plan.limit(meter)), count(meter.as_str()).sum());
            let first = count(meter.exceeded_at()).filter(|at| *at > 0).min();
            let is_over = of.watched().is_some_and(|plan| used > plan.limit(meter));
            let exceeded_at = first.filter(|_| is_over).map(|at| Timestamp::from_unix_millis(at.cast_signed()));
            MeterUse { meter, limit, used, exceeded_at }
        };
        Ok(PlanMeter::all().map(of_meter).collect())
    }

    /// The items that count the period: the first one, and the others.
    async fn metered_in_period(&self, of: &Metered) -> Result<(Option<Item>, Vec<Item>), TableError> {
        let first = of.part(&self.tenant, 0);
        let items = self.store.query(&first.pk, &first.sk, None).await?;
        let (here, elsewhere): (Vec<_>, _) = items.into_iter().partition(|item| key_of(item).as_ref() == Some(&first));
        Ok((here.into_iter().next(), elsewhere))
    }

    /// Whether `user` had no plan within the last minute.
    pub(crate) fn is_planless(&self, user: UserId, now: Timestamp) -> bool {
        self.store.recent.is_planless(user, now)
    }

    /// Remembers that `user` has no plan.
    pub(crate) fn note_planless(&self, user: UserId, now: Timestamp) {
        self.store.recent.note_planless(user, now.plus_seconds(PLANLESS));
    }

    /// The write that no longer counts an assistant of `user`.
    pub fn without_bot(&self, user: UserId) -> Write {
        let update = UpdateExpression::new().add(PlanMeter::Bots.as_str(), number(-1));
        Write::update(Metered::bots(&self.tenant, user), update)
    }
}

impl<M> Transaction<'_, M> {
    /// Counts what the transaction writes, if it counts. This comes after the other writes: where another condition
    /// fails as well, that one decides what the failure means.
    pub fn meter(&mut self, metering: Option<Metering>) {
        if let Some(Metering { key, update, room }) = metering {
            self.need_room(Write::update(key, update), room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_meter_limit_use_and_reset() {
        let resets_at = Timestamp::from_unix_millis(0);
        let full = Exceeded { meter: PlanMeter::Queries, limit: 10, used: 10, needed: 1, resets_at };
        let start = "The plan of the user has no room: meter";
        assert_eq!(full.to_string(), format!("{start} queries, limit 10, use 10, resets_at 1970-01-01T00:00:00.000Z"));
        let words = Exceeded { meter: PlanMeter::Words, needed: 5, ..full };
        assert!(words.to_string().starts_with(&format!("{start} words, limit 10, use 10, needed 5, resets_at 1970")));
        let bots = Exceeded { meter: PlanMeter::Bots, ..full };
        assert!(bots.to_string().ends_with("Z; a deleted assistant makes room"));
    }
}
