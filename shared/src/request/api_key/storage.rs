//! How API keys are stored: each under its hash, and in the listing of its organisation.

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::request::api_key::{ApiKeyRecord, KeyHash, LimitChanges};
use crate::request::error::{OnMissing as _, Result as RequestResult};
use crate::table::TableError;
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{from_item, null, number, text, to_item};
use crate::table::keys::Key;
use crate::table::store::Store;
use crate::table::transaction::Write;
use crate::values::id::{ApiKeyId, OrgId};
use crate::values::limits::Limits;
use crate::values::time::Timestamp;

/// The attribute of an entry in the listing of an organisation's keys that has the hash of the key.
const KEY_HASH: &str = "key_hash";

/// The key of an API key's record, which is found without an organisation.
pub fn api_key(hash: &KeyHash) -> Key {
    Key::new(format!("KEY#{hash}"), "KEY")
}

/// The key `id` in the listing of its organisation's keys. It is for operators, who name the organisation themselves.
pub fn listed_api_key(org: OrgId, id: ApiKeyId) -> Key {
    Key::new(format!("ORG#{org}#API_KEYS"), id)
}

impl Store {
    /// The stored form of an API key.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn api_key(&self, hash: &KeyHash) -> Result<Option<ApiKeyRecord>, TableError> {
        self.get(&api_key(hash)).await?.map(from_item).transpose()
    }

    /// Adds an API key, under its hash and to the listing of its organisation.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn add_api_key(&self, hash: &KeyHash, record: &ApiKeyRecord) -> Result<(), TableError> {
        let mut listed = to_item(&listed_api_key(record.org_id, record.id), record)?;
        listed.insert(KEY_HASH.to_owned(), AttributeValue::S(hash.to_string()));
        let found = to_item(&api_key(hash), record)?;
        Ok(self.transact(&[Write::put(found), Write::put(listed)]).await?)
    }

    /// Revokes the API key `id` at `now`, unless it was revoked before, and returns its stored record.
    ///
    /// # Errors
    /// [`TableError::Missing`] where the organisation has no such key.
    pub async fn revoke_api_key(&self, org: OrgId, id: ApiKeyId, now: Timestamp) -> Result<ApiKeyRecord, TableError> {
        let (hash, mut record) = self.listed_api_key(org, id).await?;
        if record.revoked_at.is_none() {
            record.revoked_at = Some(now);
            self.change_api_key(&hash, &record, UpdateExpression::new().set("revoked_at", text(now))).await?;
        }
        Ok(record)
    }

    /// Changes the limits of an API key, and returns its new record.
    ///
    /// # Errors
    /// 422 where the organisation has no such key, or where `burst` would be too small.
    pub async fn limit_api_key(&self, changes: &LimitChanges, default: Limits) -> RequestResult<ApiKeyRecord> {
        let found = self.listed_api_key(changes.org_id, changes.id).await;
        let (hash, mut record) = found.on_missing_in_body("id")?;
        changes.apply(&mut record, default)?;
        let rate = record.requests_per_second.map_or_else(null, |rate| number(rate.get()));
        let burst = record.burst.map_or_else(null, |burst| number(burst.get()));
        let update = UpdateExpression::new().set("requests_per_second", rate).set("burst", burst);
        self.change_api_key(&hash, &record, update).await?;
        Ok(record)
    }

    /// The key `id` of an organisation, and the hash under which it is found.
    async fn listed_api_key(&self, org: OrgId, id: ApiKeyId) -> Result<(KeyHash, ApiKeyRecord), TableError> {
        let item = self.get(&listed_api_key(org, id)).await?.ok_or(TableError::Missing)?;
        let hash = item.get(KEY_HASH).and_then(|hash| hash.as_s().ok()).cloned().ok_or(TableError::Missing)?;
        Ok((KeyHash::from_hex(hash), from_item(item)?))
    }

    /// Changes both items of a key.
    async fn change_api_key(
        &self,
        hash: &KeyHash,
        record: &ApiKeyRecord,
        update: UpdateExpression,
    ) -> Result<(), TableError> {
        let change = |key| Write::update(key, update.clone()).when(Condition::exists());
        Ok(self.transact(&[change(api_key(hash)), change(listed_api_key(record.org_id, record.id))]).await?)
    }

    /// The API keys of an organisation, oldest first.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn api_keys_of(&self, org: OrgId) -> Result<Vec<ApiKeyRecord>, TableError> {
        let first = listed_api_key(org, ApiKeyId(Uuid::nil()));
        Ok(self.query_records(&first.pk, (&first.sk, None), None).await?.records)
    }
}
