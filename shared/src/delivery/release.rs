//! Makes due deliveries ready, so that the consumer of the stream sends them.

use crate::records::delivery::storage::delivery_of;
use crate::records::delivery::{self, DeliveryOutcome, DeliveryState};
use crate::records::due::{Due, handle_due};
use crate::request::error::Result;
use crate::request::event::EventContext;
use crate::table::keys::Key;

/// Makes every due delivery ready: its retry is due, or it was ready and was not sent in time.
///
/// # Errors
/// The first error of a delivery; the others of the same round are released all the same.
pub async fn release(cx: &EventContext<'_>) -> Result<()> {
    handle_due(cx, Due::Delivery, |key| release_one(cx, key)).await
}

/// Makes the delivery at `key` ready; false if it is no longer due.
async fn release_one(cx: &EventContext<'_>, key: Key) -> Result<bool> {
    let Some((tenant, endpoint, ordinal)) = delivery_of(&key) else { return Ok(false) };
    let (table, now) = (cx.table(tenant), cx.service.clock.now());
    let Some(was) = delivery::at(&table, endpoint, ordinal).await? else { return Ok(false) };
    let open = matches!(was.state, DeliveryState::Ready | DeliveryState::Waiting);
    if !open || was.due_at.is_none_or(|due| now < due) {
        return Ok(false);
    }
    let is = was.clone().decide(DeliveryOutcome::Released, now);
    Ok(table.replace((endpoint, was.id), &was, is).await?.is_some())
}
