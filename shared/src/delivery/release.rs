//! Makes due deliveries ready, so that the consumer of the stream sends them.

use futures_util::stream::{self, StreamExt as _};

use crate::records::delivery::storage::delivery_of;
use crate::records::delivery::{self, DeliveryOutcome, DeliveryState};
use crate::records::due::Due;
use crate::request::error::Result;
use crate::request::event::EventContext;
use crate::table::keys::Key;

/// The most deliveries released at the same time.
const CONCURRENT: usize = 16;
/// The most due deliveries read in one round, from each partition of the index.
const LIMIT: i32 = 500;
/// The most rounds in one minute.
const ROUNDS: usize = 20;

/// Makes every due delivery ready: its retry is due, or it was ready and was not sent in time.
///
/// # Errors
/// The first error of a delivery; the others of the same round are released all the same.
pub async fn release(cx: &EventContext<'_>) -> Result<()> {
    for _ in 0..ROUNDS {
        let due = cx.service.store.due(Due::Delivery, cx.service.clock.now(), LIMIT).await?;
        let under_way: Vec<_> = due.iter().map(|key| release_one(cx, key)).collect();
        let released: Vec<Result<bool>> = stream::iter(under_way).buffer_unordered(CONCURRENT).collect().await;
        // A failed release does not stop the others of its round, and its delivery is still due in the next minute.
        let released = released.into_iter().collect::<Result<Vec<bool>>>()?;
        if !released.contains(&true) {
            break;
        }
    }
    Ok(())
}

/// Makes the delivery at `key` ready; false if it is no longer due.
async fn release_one(cx: &EventContext<'_>, key: &Key) -> Result<bool> {
    let Some((tenant, endpoint, ordinal)) = delivery_of(key) else { return Ok(false) };
    let (table, now) = (cx.table(tenant), cx.service.clock.now());
    let Some(was) = delivery::at(&table, endpoint, ordinal).await? else { return Ok(false) };
    let open = matches!(was.state, DeliveryState::Ready | DeliveryState::Waiting);
    if !open || was.due_at.is_none_or(|due| now < due) {
        return Ok(false);
    }
    let is = was.clone().decide(DeliveryOutcome::Released, now);
    Ok(table.replace((endpoint, was.id), &was, is).await?.is_some())
}
