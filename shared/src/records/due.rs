//! The index `Due` of the table, which shows the items that become due. Organisations take turns in what is due.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt as _};
use uuid::Uuid;

use crate::request::error::Result;
use crate::request::event::EventContext;
use crate::table::TableError;
use crate::table::keys::{Key, due_partition, due_partitions};
use crate::table::store::Store;
use crate::values::id::OrgId;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// One organisation may take this part of what a partition gives: a quarter. If this leaves places free, the partition
/// is read further, because others may be behind.
const SHARES: usize = 4;
/// The keys of a further page, and the most such pages of a partition. Only an organisation with more due items than
/// these can hide the items of others.
const FURTHER: (i32, usize) = (1000, 10);

/// The most due items that are handled at the same time.
const CONCURRENT: usize = 16;
/// The most due items read in one round, from each partition of the index.
const LIMIT: i32 = 500;
/// The most rounds in one minute.
const ROUNDS: usize = 20;

/// A kind of item that becomes due. Each kind has partitions of its own in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Due {
    /// Deliveries that wait for a retry, and ready ones that were not sent.
    Delivery,
    /// Endpoints with an open circuit, or with deferred deliveries.
    Endpoint,
    /// Campaigns that are being sent.
    Campaign,
    /// Open conversations that may be idle.
    Conversation,
    /// Webhooks at the payment provider whose agencies are deleted.
    RetiredWebhook,
    /// Changes of conversations that have no event yet.
    Event,
    /// Exports that are being made, and files that are to be removed.
    Export,
}

impl Due {
    const fn name(self) -> &'static str {
        match self {
            Self::Delivery => "DELIVERY",
            Self::Endpoint => "ENDPOINT",
            Self::Campaign => "CAMPAIGN",
            Self::Conversation => "CONVERSATION",
            Self::RetiredWebhook => "RETIRED_WEBHOOK",
            Self::Event => "EVENT",
            Self::Export => "EXPORT",
        }
    }

    /// The partition of the index for `item`.
    pub fn partition(self, item: Uuid) -> String {
        due_partition(self.name(), item)
    }

    /// All partitions of this kind.
    pub fn partitions(self) -> impl Iterator<Item = String> {
        due_partitions(self.name())
    }
}

/// Has `handle` handle every due item of `kind`. It answers whether it has changed the item.
///
/// # Errors
/// The first error of an item; the others of the same round are handled all the same.
pub async fn handle_due<F>(cx: &EventContext<'_>, kind: Due, handle: impl Fn(Key) -> F) -> Result<()>
where
    F: Future<Output = Result<bool>>,
{
    for _ in 0..ROUNDS {
        let due = cx.service.store.due(kind, cx.service.clock.now(), LIMIT).await?;
        let under_way: Vec<_> = due.into_iter().map(&handle).collect();
        let handled: Vec<Result<bool>> = stream::iter(under_way).buffer_unordered(CONCURRENT).collect().await;
        // A failure does not stop the others of its round, and its item is still due in the next minute.
        let handled = handled.into_iter().collect::<Result<Vec<bool>>>()?;
        if !handled.contains(&true) {
            break;
        }
    }
    Ok(())
}

impl Store {
    /// The keys of items that are due by `now`, at most `limit` of each partition. The organisations take turns: first
    /// comes the earliest item of each organisation, then the next one of each.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn due(&self, kind: Due, now: Timestamp, limit: i32) -> Result<Vec<Key>, TableError> {
        let until = now.to_string();
        let partitions: Vec<String> = kind.partitions().collect();
        let queries = partitions.iter().map(|partition| self.due_in(partition, &until, limit));
        Ok(in_turns(try_join_all(queries).await?.concat()))
    }

    /// The keys of at most `limit` items of a partition that are due, in turns.
    async fn due_in(&self, partition: &str, until: &str, limit: i32) -> Result<Vec<Key>, TableError> {
        let most = usize::try_from(limit).unwrap_or_default();
        let (page, pages) = FURTHER;
        let (mut found, mut next) = self.due_page(partition, until, limit, None).await?;
        for _ in 0..pages {
            if next.is_none() || within_shares(&found, most) >= most {
                break;
            }
            let (more, after) = self.due_page(partition, until, page, next).await?;
            found.extend(more);
            next = after;
        }
        let mut taken = in_turns(found);
        taken.truncate(most);
        Ok(taken)
    }
}

fn org_of(key: &Key) -> Option<OrgId> {
    Tenant::of_partition_key(&key.pk).map(|tenant| tenant.org())
}

/// The number of `keys` if no organisation had more than its share of `most`.
fn within_shares(keys: &[Key], most: usize) -> usize {
    let mut of_each: BTreeMap<Option<OrgId>, usize> = BTreeMap::new();
    for key in keys {
        *of_each.entry(org_of(key)).or_default() += 1;
    }
    of_each.values().map(|count| *count.min(&most.div_ceil(SHARES))).sum()
}

/// The first key of each organisation, then the second one of each, and so on.
fn in_turns(keys: Vec<Key>) -> Vec<Key> {
    let mut turns: BTreeMap<Option<OrgId>, usize> = BTreeMap::new();
    let turn_of = |key: Key| {
        let turn = turns.entry(org_of(&key)).or_default();
        *turn += 1;
        (*turn, key)
    };
    let mut with_turns: Vec<(usize, Key)> = keys.into_iter().map(turn_of).collect();
    with_turns.sort_by_key(|(turn, _)| *turn);
    with_turns.into_iter().map(|(_, key)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of these organisations, each with its place.
    fn keys(orgs: &[u128]) -> Vec<Key> {
        let key = |(place, org): (usize, &u128)| {
            let tenant = Tenant::of_partition_key(&format!("ORG#{}", Uuid::from_u128(*org))).unwrap();
            Key { pk: format!("ORG#{}#LIST#CAMPAIGN#ROWS", tenant.org()), sk: place.to_string() }
        };
        orgs.iter().enumerate().map(key).collect()
    }

    #[test]
    fn organisations_take_turns_in_the_order_of_their_items() {
        let places: Vec<String> = in_turns(keys(&[1, 1, 1, 2, 1, 2, 3])).into_iter().map(|key| key.sk).collect();
        assert_eq!(places, ["0", "3", "6", "1", "5", "2", "4"]);
    }

    #[test]
    fn an_organisation_counts_up_to_its_share() {
        assert_eq!(within_shares(&keys(&[1; 100]), 100), 25);
        assert_eq!(within_shares(&keys(&[1, 2, 3, 4].repeat(25)), 100), 100);
        assert_eq!(within_shares(&keys(&[1, 1, 2]), 100), 3);
        assert_eq!(within_shares(&keys(&[1, 1]), 1), 1);
    }
}
