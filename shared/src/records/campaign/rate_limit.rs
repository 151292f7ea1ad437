//! The rate limits of a widget: contacts dispatched per second, and deliveries to its connector per second.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::records::widget::Widget;
use crate::table::cascade::Partitions;
use crate::table::keys::Key;
use crate::table::single::SingleChange;
use crate::table::stored::{Single, Stored};
use crate::table::version::{Version, Versioned};
use crate::table::{Table, TableError};
use crate::values::id::WidgetId;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// The action that is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// Dispatching the contacts of campaigns.
    Dispatch,
    /// Sending deliveries to the connector.
    Send,
}

/// The next free time of a rate limit.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RateLimitSlot {
    #[serde(default)]
    next_millis: i64,
    #[serde(flatten)]
    version: Version,
}

impl Stored for RateLimitSlot {
    type Id = (WidgetId, Limited);

    fn key(tenant: &Tenant, (widget, what): Self::Id) -> Key {
        Key::of(tenant, format_args!("RATE_LIMIT#{widget}"), format_args!("{what:?}"))
    }
}

impl Single for RateLimitSlot {}

impl Versioned for RateLimitSlot {
    fn version(&self) -> Version {
        self.version
    }

    fn set_version(&mut self, version: Version) {
        self.version = version;
    }
}

impl Partitions for Widget {
    fn partitions(tenant: &Tenant, id: Uuid) -> Vec<String> {
        vec![RateLimitSlot::key(tenant, (WidgetId(id), Limited::Send)).pk]
    }
}

/// Reserves times for `count` more actions at `per_second`. No other caller gets these times. Returns no time if the
/// first one would be after `latest`.
///
/// # Errors
/// [`TableError`].
pub async fn reserve(
    table: &Table,
    limited: (WidgetId, Limited),
    count: u32,
    per_second: u32,
    now: Timestamp,
    latest: Timestamp,
) -> Result<Vec<Timestamp>, TableError> {
    // Rounded up to a whole millisecond, so that the rate is never exceeded.
    let rate = i64::from(per_second);
    let after = |turns: u32| (i64::from(turns) * 1000 + rate - 1) / rate;
    let next = |existing: Option<&RateLimitSlot>| {
        let from = existing.map_or(0, |slot| slot.next_millis).max(now.unix_millis());
        let slot = RateLimitSlot { next_millis: from + after(count), ..existing.cloned().unwrap_or_default() };
        (from <= latest.unix_millis()).then_some(slot)
    };
    let seen = table.find::<RateLimitSlot>(limited).await?;
    match table.change_single(limited, seen, next).await? {
        SingleChange::Made(RateLimitSlot { next_millis, .. }) => {
            let from = next_millis - after(count);
            Ok((0..count).map(|turn| Timestamp::from_unix_millis(from + after(turn))).collect())
        }
        SingleChange::NotWanted(_) => Ok(Vec::new()),
    }
}
