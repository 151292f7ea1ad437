//! The day on which a key was last used: each process notes it once a day for each key.

use std::collections::HashMap;

use uuid::Uuid;

use crate::table::expression::UpdateExpression;
use crate::table::item::{Item, key_of, number, text};
use crate::table::keys::{TTL, key_use};
use crate::table::store::Store;
use crate::table::{Table, TableError};
use crate::values::id::ApiKeyId;
use crate::values::tenant::Tenant;
use crate::values::time::{Day, Timestamp};

/// The attribute with the day.
const USED_ON: &str = "used_on";
/// Seconds for which the day is kept: 400 days.
const KEPT: i64 = 400 * 86_400;

/// Notes that a key is used at `now`.
///
/// # Errors
/// [`TableError`].
pub(crate) async fn note_use(store: &Store, tenant: &Tenant, key: ApiKeyId, now: Timestamp) -> Result<(), TableError> {
    let update = UpdateExpression::new().set(USED_ON, text(now.day()));
    let update = update.set(TTL, number(now.unix_seconds() + KEPT));
    store.try_update(&key_use(tenant, key), &update).await
}

impl Table {
    /// The days on which the organisation's keys were last used. A key that was never used has none.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn key_uses(&self) -> Result<HashMap<ApiKeyId, Day>, TableError> {
        let first = key_use(&self.tenant, ApiKeyId(Uuid::nil()));
        let of = |item: &Item| {
            let day = Day::parse(item.get(USED_ON)?.as_s().ok()?)?;
            Some((ApiKeyId(key_of(item)?.sk.parse().ok()?), day))
        };
        Ok(self.store.query(&first.pk, &first.sk, None).await?.iter().filter_map(of).collect())
    }
}
