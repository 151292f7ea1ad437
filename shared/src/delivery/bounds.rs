//! The resources that an invocation may use at the same time: connections to endpoints, and memory for bodies.
//!
//! A function has 1,024 descriptors and a fixed memory, and a slow endpoint occupies both for as long as an attempt may
//! take. So there are bounds. One organisation may use only a share of each, so that its slow endpoints leave room for
//! others. A delivery that gets no resources in time is left to the next tick, without an attempt.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::records::conversation::Conversation;
use crate::values::id::OrgId;

/// The most attempts at the same time in an invocation by the stream: those of a full batch; and in it those of one
/// organisation.
const IN_BATCH: (u32, u32) = (100, 50);
/// The same in a tick. In addition, there are as many connections to the database as its client opens.
const IN_TICK: (u32, u32) = (400, 100);
/// The size in bytes of text from which a conversation counts as large. The bodies of all smaller ones fit into the
/// memory together.
const LARGE: u64 = 64 * 1024;
/// The most kibibytes of large bodies at the same time, including the memory for making them; and of one organisation.
const KIBIBYTES: (u32, u32) = (160 * 1024, 80 * 1024);
/// The memory for making a body, as a multiple of its text: the database's answer, the messages, and the body.
const COPIES: u64 = 4;

/// The bounds of one invocation.
#[derive(Debug)]
pub struct Bounds {
    attempts: Bound,
    kibibytes: Bound,
}

/// A resource, and the share of each organisation that has used it.
#[derive(Debug)]
struct Bound {
    all: Arc<Semaphore>,
    most_of_one: u32,
    of_each: Mutex<BTreeMap<OrgId, Arc<Semaphore>>>,
}

/// A part of a resource, until it is dropped.
#[derive(Debug)]
pub struct ResourceShare {
    _of_one: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Bounds {
    /// The bounds of an invocation by the stream.
    pub fn of_batch() -> Self {
        Self { attempts: Bound::new(IN_BATCH), kibibytes: Bound::new(KIBIBYTES) }
    }

    /// The bounds of a tick.
    pub fn of_tick() -> Self {
        Self { attempts: Bound::new(IN_TICK), kibibytes: Bound::new(KIBIBYTES) }
    }

    /// A connection for an attempt of `org`; `None` if there is none within `patience`.
    pub async fn attempt(&self, org: OrgId, patience: Duration) -> Option<ResourceShare> {
        self.attempts.hold(org, 1, patience).await
    }

    /// The memory for the body about a `conversation` of `org`; `None` if there is none within `patience`.
    pub async fn body(&self, org: OrgId, conversation: &Conversation, patience: Duration) -> Option<ResourceShare> {
        self.memory(org, conversation.text_bytes * COPIES, patience).await
    }

    /// So many bytes of memory for `org`; `None` if they are not there within `patience`.
    pub async fn memory(&self, org: OrgId, bytes: u64, patience: Duration) -> Option<ResourceShare> {
        let wanted = if bytes < LARGE * COPIES { 0 } else { bytes / 1024 };
        let wanted = u32::try_from(wanted).unwrap_or(KIBIBYTES.0).min(KIBIBYTES.0);
        self.kibibytes.hold(org, wanted, patience).await
    }
}

impl Bound {
    fn new((most, most_of_one): (u32, u32)) -> Self {
        Self { all: Arc::new(Semaphore::new(most as usize)), most_of_one, of_each: Mutex::default() }
    }

    async fn hold(&self, org: OrgId, wanted: u32, patience: Duration) -> Option<ResourceShare> {
        let share = Arc::clone(
            self.of_each
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(org)
                .or_insert_with(|| Arc::new(Semaphore::new(self.most_of_one as usize))),
        );
        let both = async {
            // Whoever waits for the share of the organisation holds nothing that others could use.
            let of_one = share.acquire_many_owned(wanted.min(self.most_of_one)).await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_many_owned(wanted).await.ok()?;
            Some(ResourceShare { _of_one: of_one, _of_all: of_all })
        };
        tokio::time::timeout(patience, both).await.ok()?
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const AT_ONCE: Duration = Duration::ZERO;

    #[tokio::test]
    async fn an_organisation_at_its_share_leaves_the_rest_to_others() {
        let [one, other] = [1, 2].map(|number| OrgId(Uuid::from_u128(number)));
        let bounds = Bounds::of_tick();
        let mut held = Vec::new();
        for _ in 0..IN_TICK.1 {
            held.push(bounds.attempt(one, AT_ONCE).await.unwrap());
        }
        assert!(bounds.attempt(one, AT_ONCE).await.is_none());
        assert!(bounds.attempt(other, AT_ONCE).await.is_some());
        held.pop();
        assert!(bounds.attempt(one, AT_ONCE).await.is_some());
    }

    #[tokio::test]
    async fn a_share_that_is_waited_for_in_vain_stays_free() {
        let bound = Bound::new((2, 1));
        let org = |number| OrgId(Uuid::from_u128(number));
        let (first, _second) = (bound.hold(org(1), 1, AT_ONCE).await, bound.hold(org(2), 1, AT_ONCE).await);
        assert!(bound.hold(org(3), 1, AT_ONCE).await.is_none(), "all of it is in use");
        drop(first);
        assert!(bound.hold(org(3), 1, AT_ONCE).await.is_some());
    }
}
