//! The counters of what an organisation has of its quotas. A counter changes in the transaction that changes the rows
//! that it counts, so it is exact after every crash, retry and cascade.

use std::collections::BTreeMap;

use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, number};
use crate::table::keys::Key;
use crate::table::plan_limits::Exceeded;
use crate::table::quota::{Amounts, Quota, Quotas, Reached};
use crate::values::tenant::Tenant;

/// The key of the counter of `quota`. The files and their bytes share an item, as one request changes both; so do custom
/// fields and those of them that are filters.
pub(super) fn counter(tenant: &Tenant, quota: Quota) -> Key {
    let item = match quota {
        Quota::FileBytes => Quota::Files,
        Quota::CustomFieldFilters => Quota::CustomFields,
        _ => quota,
    };
    Key::of(tenant, "USE", item.as_str())
}

/// What the counter in `item` says.
pub(super) fn counted(item: Option<&Item>, quota: Quota) -> u64 {
    count_in(item, quota.as_str())
}

/// The count in the attribute `name` of `item`.
pub(super) fn count_in(item: Option<&Item>, name: &str) -> u64 {
    let count = item.and_then(|item| item.get(name)?.as_n().ok()?.parse::<i64>().ok());
    count.unwrap_or_default().max(0).unsigned_abs()
}

/// What a transaction needs of the quotas of one counter.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub amounts: Amounts,
    /// What other counters of the same quota say.
    pub elsewhere: u64,
}

impl Needs {
    /// The condition that there is room.
    pub fn condition(&self, quotas: Quotas) -> Option<Condition> {
        let (mut parts, mut values) = (Vec::new(), Item::new());
        for (quota, needed) in &self.amounts {
            let (name, limit) = (quota.as_str(), quotas.limit(*quota));
            let room = limit.checked_sub(needed + self.elsewhere);
            // Without any room not even a missing counter is small enough.
            let absent = if room.is_some() { format!("attribute_not_exists(#{name}) OR ") } else { String::new() };
            parts.push(format!("({absent}#{name} <= :room_{name})"));
            values.insert(format!(":room_{name}"), room.map_or_else(|| number(-1), number));
        }
        (!parts.is_empty()).then(|| Condition::new(parts.join(" AND "), values))
    }

    /// The quota that leaves no room, according to the counter `existing`.
    pub fn reached(&self, quotas: Quotas, existing: Option<&Item>) -> Option<Reached> {
        let of = |(quota, needed): &(Quota, u64)| {
            let used = counted(existing, *quota) + self.elsewhere;
            Reached { quota: *quota, limit: quotas.limit(*quota), used, needed: *needed }
        };
        let all = self.amounts.iter().map(of);
        all.clone().find(|reached| reached.used + reached.needed > reached.limit).or_else(|| all.clone().next())
    }
}

/// The room that an item must have for what a request needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeterRoom {
    pub needs: Exceeded,
    /// What the other items of the count say.
    pub elsewhere: u64,
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

/// A change of one counter.
pub(super) struct Counting {
    pub key: Key,
    pub update: UpdateExpression,
    pub needs: Needs,
}

/// How a transaction changes the counters of its organisation.
#[derive(Debug, Default)]
pub(super) struct UseChange {
    by: BTreeMap<Quota, i64>,
    needed: BTreeMap<Quota, u64>,
}

impl UseChange {
    /// No change.
    pub const fn new() -> Self {
        Self { by: BTreeMap::new(), needed: BTreeMap::new() }
    }

    /// Adds what rows use that are written.
    pub fn add(&mut self, amounts: &Amounts) {
        for (quota, amount) in amounts {
            *self.by.entry(*quota).or_default() += amount.cast_signed();
        }
    }

    /// Subtracts what rows use that are removed or replaced.
    pub fn subtract(&mut self, amounts: &Amounts) {
        for (quota, amount) in amounts {
            *self.by.entry(*quota).or_default() -= amount.cast_signed();
        }
    }

    /// Requires room for what `is` has more than `was`.
    pub fn require(&mut self, was: &Amounts, is: &Amounts) {
        for (quota, amount) in is {
            let before = was.iter().find(|(of, _)| of == quota).map_or(0, |(_, amount)| *amount);
            if *amount > before {
                *self.needed.entry(*quota).or_default() += amount - before;
            }
        }
    }

    /// The changes, one for each counter.
    pub fn countings(self, tenant: &Tenant) -> Vec<Counting> {
        let mut all: Vec<Counting> = Vec::new();
        for (quota, by) in self.by.into_iter().filter(|(_, by)| *by != 0) {
            let key = counter(tenant, quota);
            let needs = self.needed.get(&quota).map(|needed| (quota, *needed));
            let same = all.iter_mut().find(|counting| counting.key == key);
            if let Some(Counting { update, needs: others, .. }) = same {
                *update = std::mem::take(update).add(quota.as_str(), number(by));
                others.amounts.extend(needs);
            } else {
                let update = UpdateExpression::new().add(quota.as_str(), number(by));
                all.push(Counting { key, update, needs: Needs { amounts: needs.into_iter().collect(), elsewhere: 0 } });
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::values::id::OrgId;

    #[test]
    fn a_changed_row_needs_room_for_what_it_has_more() {
        for (was, is, more, needed) in [(30, 50, 20, vec![(Quota::FileBytes, 20)]), (50, 30, -20, vec![])] {
            let [was, is] = [was, is].map(|bytes| vec![(Quota::FileBytes, bytes)]);
            let mut change = UseChange::new();
            change.subtract(&was);
            change.add(&is);
            change.require(&was, &is);
            let [counting] = change.countings(&Tenant::of_key(OrgId(Uuid::nil()))).try_into().ok().unwrap();
            assert_eq!(counting.needs.amounts, needed);
            let wanted = UpdateExpression::new().add(Quota::FileBytes.as_str(), number(more));
            assert_eq!(format!("{:?}", counting.update), format!("{wanted:?}"));
        }
    }
}
