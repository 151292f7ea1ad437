//! The rate limits of a widget: contacts dispatched per second, and deliveries to its connector per second.

use crate::records::widget::Widget;
use crate::table::cascade::Partitions;
use crate::table::error::Cancelled;
use crate::table::item::{Item, number, values};
use crate::table::keys::Key;
use crate::table::{Table, TableError};
use crate::values::id::WidgetId;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;
use uuid::Uuid;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// Dispatching the contacts of campaigns.
    Dispatch,
    /// Sending deliveries to the connector.
    Send,
}

/// The next free time of a rate limit.
fn slot(tenant: &Tenant, widget: WidgetId, what: Limited) -> Key {
    Key::of(tenant, format_args!("RATE_LIMIT#{widget}"), format_args!("{what:?}"))
}

impl Partitions for Widget {
    fn partitions(tenant: &Tenant, id: Uuid) -> Vec<String> {
        vec![slot(tenant, WidgetId(id), Limited::Send).pk]
    }
}

impl Table {
    /// Reserves times for `count` more of what is limited, at `per_second`. No other caller gets these times. Returns no time where the first
    /// would be after `latest`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn reserve_sends(
        &self,
        (widget, what): (WidgetId, Limited),
        count: u32,
        per_second: u32,
        now: Timestamp,
        latest: Timestamp,
    ) -> Result<Vec<Timestamp>, TableError> {
        let key = slot(&self.tenant, widget, what);
        let mut next: i64 = next_slot(self.store.get(&key).await?.as_ref());
        let mut round = self.store.backoff();
        loop {
            let from = next.max(now.unix_millis());
            if from > latest.unix_millis() {
                return Ok(Vec::new());
            }
            // Rounded up to a whole millisecond, so that the rate is never exceeded.
            let rate = i64::from(per_second);
            let at = |turn: u32| from + (i64::from(turn) * 1000 + rate - 1) / rate;
            let to = at(count);
            let values = values([(":to", number(to)), (":seen", number(next))]);
            let condition = "attribute_not_exists(next_millis) OR next_millis = :seen";
            match self.store.update(&key, "SET next_millis = :to", Some(condition), &values).await {
                Ok(_) => return Ok((0..count).map(|turn| Timestamp::from_unix_millis(at(turn))).collect()),
                Err(Cancelled::Condition(_, stands)) => next = next_slot(stands.as_ref()),
                Err(cancelled) => return Err(cancelled.into()),
            }
            if !round.wait().await {
                return Err(TableError::Unavailable("others kept reserving".into()));
            }
        }
    }
}

fn next_slot(item: Option<&Item>) -> i64 {
    item.and_then(|item| item.get("next_millis")?.as_n().ok()?.parse().ok()).unwrap_or_default()
}
