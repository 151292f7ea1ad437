//! What an organisation has of its quotas, and whether there is room for more.

use crate::table::error::TableError;
use crate::table::keys::{Key, made_by};
use crate::table::part::Table;
use crate::table::quota::{Quota, QuotaUse, Reached};
use crate::table::uses::{counted, counter};
use crate::values::time::Timestamp;
use uuid::Uuid;

impl Table {
    /// Requires that `quota` has room for one more, before work that a refusal would make useless. The transaction after
    /// it decides.
    ///
    /// # Errors
    /// [`TableError::QuotaReached`].
    pub async fn require_room(&self, quota: Quota) -> Result<(), TableError> {
        let item = self.store.get(&counter(&self.tenant, quota)).await?;
        let (used, limit) = (counted(item.as_ref(), quota), self.store.quotas.limit(quota));
        if used < limit { Ok(()) } else { Err(TableError::QuotaReached(Reached { quota, limit, used, needed: 1 })) }
    }

    /// Whether an earlier attempt of the request with this mark has made its record.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn has_made(&self, origin: Option<Uuid>) -> Result<bool, TableError> {
        let Some(origin) = origin else { return Ok(false) };
        Ok(self.store.get(&made_by(&self.tenant, origin)).await?.is_some())
    }

    /// What the organisation has of each quota.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn quota_uses(&self, now: Timestamp) -> Result<Vec<QuotaUse>, TableError> {
        let kept = Quota::all().filter(|quota| *quota != Quota::SendsADay);
        let keys: Vec<Key> = kept.map(|quota| counter(&self.tenant, quota)).collect();
        let (items, sends) = futures_util::try_join!(self.store.get_all(&keys), self.sends_counted(now))?;
        let used = |quota| match quota {
            Quota::SendsADay => sends.0 + sends.1,
            // Each counter has the numbers of its own quotas only.
            _ => items.iter().map(|item| counted(Some(item), quota)).sum(),
        };
        let limit = |quota| self.store.quotas.limit(quota);
        Ok(Quota::all().map(|quota| QuotaUse { quota, limit: limit(quota), used: used(quota) }).collect())
    }
}
