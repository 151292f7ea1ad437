//! What a user uses up of a billing plan, counted in the transactions that write it.
//!
//! Assistants count while they exist, in one item, so their count is exact. Everything else counts by billing period.
//! Many processes count for a user at the same time, and transactions on one item wait for each other. So the count of
//! a period is in several items, and a write adds to any of them. Under a plan that blocks, a request reads the count
//! first. If it needs little of what is left, it adds to any item, too. Otherwise it adds to the first item, on
//! condition that the limit is kept.

use crate::table::error::TableError;
use crate::table::expression::UpdateExpression;
use crate::table::item::{Item, key_of, number};
use crate::table::keys::{Key, TTL};
use crate::table::part::Table;
use crate::table::plan_limits::{BillingPeriod, Exceeded, MeterAmounts, MeterUse, Overage, PlanLimits, PlanMeter};
use crate::table::sends::shard;
use crate::table::transaction::{Transaction, Write};
use crate::table::uses::{MeterRoom, count_in};
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

/// What a transaction counts for a user.
#[derive(Debug, Clone)]
pub struct Metering {
    key: Key,
    update: UpdateExpression,
    room: Option<MeterRoom>,
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
