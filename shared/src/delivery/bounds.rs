//! The resources that an invocation may use at the same time: connections to endpoints, and memory for bodies.
//!
//! A function has 1,024 descriptors and a fixed memory, and a slow endpoint occupies both for as long as an attempt may
//! take. So there are bounds, and a delivery that gets no share in time is left to the next tick, without an attempt.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::records::conversation::Conversation;

/// The most attempts at the same time. In addition, there are as many connections to the database as its client opens.
const ATTEMPTS: usize = 400;
/// The size in bytes of text from which a conversation counts as large. The bodies of all smaller ones fit into the
/// memory together.
const LARGE: u64 = 64 * 1024;
/// The most kibibytes of large bodies at the same time, including the memory for making them.
const KIBIBYTES: u32 = 160 * 1024;
/// The memory for making a body, as a multiple of its text: the database's answer, the messages, and the body.
const COPIES: u64 = 4;

/// The shares of one invocation.
#[derive(Debug)]
pub struct Bounds {
    attempts: Semaphore,
    kibibytes: Semaphore,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { attempts: Semaphore::new(ATTEMPTS), kibibytes: Semaphore::new(KIBIBYTES as usize) }
    }
}

impl Bounds {
    /// A share of the connections; `None` if there is none within `patience`.
    pub async fn attempt(&self, patience: Duration) -> Option<SemaphorePermit<'_>> {
        tokio::time::timeout(patience, self.attempts.acquire()).await.ok()?.ok()
    }

    /// A share of the memory for the body about `conversation`; `None` if there is none within `patience`.
    pub async fn body(&self, conversation: &Conversation, patience: Duration) -> Option<SemaphorePermit<'_>> {
        let wanted = if conversation.text_bytes < LARGE { 0 } else { conversation.text_bytes * COPIES / 1024 };
        let wanted = u32::try_from(wanted).unwrap_or(KIBIBYTES).min(KIBIBYTES);
        tokio::time::timeout(patience, self.kibibytes.acquire_many(wanted)).await.ok()?.ok()
    }
}
