//! How API keys are stored: each under its hash, and in the listing of its organisation.

use std::convert::identity;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::request::api_key::{ApiKeyChanges, ApiKeyRecord, KeyHash};
use crate::request::error::{OnMissing as _, Result as RequestResult};
use crate::table::error::Cancelled;
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{Item, from_item, number, text, to_item};
use crate::table::keys::{Key, TTL};
use crate::table::store::Store;
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::table::{Table, TableError};
use crate::values::id::{ApiKeyId, OrgId};
use crate::values::limits::Limits;
use crate::values::time::Timestamp;

/// The attribute of an entry in the listing of an organisation's keys that has the hash of the key.
const KEY_HASH: &str = "key_hash";
/// The kind of record in the audit list, which sees the entries in the listings.
const RECORD: &str = "Key";
/// Seconds for which a key that has expired is still listed: a week.
const LISTED: i64 = 7 * 86_400;

/// The key of an API key's record, which is found without an organisation.
pub fn api_key(hash: &KeyHash) -> Key {
    Key::new(format!("KEY#{hash}"), "KEY")
}

/// The key `id` in the listing of its organisation's keys. Operators name the organisation themselves.
pub fn listed_api_key(org: OrgId, id: ApiKeyId) -> Key {
    Key::new(format!("ORG#{org}#API_KEYS"), id)
}

/// A stored key: its record, and the hash under which it is found.
#[derive(Debug, Clone)]
pub struct StoredApiKey {
    /// The hash.
    pub hash: KeyHash,
    /// The record.
    pub record: ApiKeyRecord,
}

impl StoredApiKey {
    /// The keys of its two items.
    fn keys(&self) -> [Key; 2] {
        [api_key(&self.hash), listed_api_key(self.record.org_id, self.record.id)]
    }

    /// The attributes of `record` that both of its items have. If it expires, so do they, a week later.
    fn attributes(record: &ApiKeyRecord, key: &Key) -> Result<Item, TableError> {
        let mut item = to_item(key, record)?;
        if let Some(end) = record.expires_at {
            item.insert(TTL.to_owned(), number(end.plus_seconds(LISTED).unix_seconds()));
        }
        Ok(item)
    }

    /// Its two items: the one under its hash, and the one in the listing.
    fn items(&self) -> Result<[Item; 2], TableError> {
        let [found, listed] = self.keys();
        let mut item = Self::attributes(&self.record, &listed)?;
        item.insert(KEY_HASH.to_owned(), AttributeValue::S(self.hash.to_string()));
        item.insert("record".to_owned(), text(RECORD));
        Ok([Self::attributes(&self.record, &found)?, item])
    }

    /// The writes that change what differs in `after`. There is none if nothing does. `noted` adds who makes the change to
    /// the update of the listing.
    fn changed(
        &self,
        after: &ApiKeyRecord,
        noted: impl Fn(UpdateExpression) -> UpdateExpression,
    ) -> Result<Vec<Write>, TableError> {
        let [found, listed] = self.keys();
        let (before, after) = (Self::attributes(&self.record, &found)?, Self::attributes(after, &found)?);
        let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(*value));
        let set: Vec<_> = changed.map(|(name, value)| (name.as_str(), value.clone())).collect();
        let gone: Vec<_> = before.keys().filter(|name| !after.contains_key(*name)).collect();
        if set.is_empty() && gone.is_empty() {
            return Ok(Vec::new());
        }
        let update = set.into_iter().fold(UpdateExpression::new(), |update, (name, value)| update.set(name, value));
        let update = update.remove_all(gone);
        let in_listing = noted(update.clone().set("record", text(RECORD)));
        let change = |(key, update)| Write::update(key, update).when(Condition::exists());
        Ok([(found, update), (listed, in_listing)].map(change).into())
    }
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
        let held = StoredApiKey { hash: hash.clone(), record: record.clone() };
        Ok(self.transact(&held.items()?.map(Write::put)).await?)
    }

    /// Revokes the API key `id` at `now`, unless it was revoked before, and returns its stored record.
    ///
    /// # Errors
    /// [`TableError::Missing`] where the organisation has no such key.
    pub async fn revoke_api_key(&self, org: OrgId, id: ApiKeyId, now: Timestamp) -> Result<ApiKeyRecord, TableError> {
        let held = self.listed_api_key(org, id).await?;
        let revoked_at = held.record.revoked_at.or(Some(now));
        let after = ApiKeyRecord { revoked_at, ..held.record.clone() };
        self.transact_all(&held.changed(&after, identity)?).await?;
        Ok(after)
    }

    /// Changes an API key as an operator asks, and returns its new record.
    ///
    /// # Errors
    /// 422 where the organisation has no such key, or where `burst` would be too small.
    pub async fn update_api_key(&self, changes: &ApiKeyChanges, default: Limits) -> RequestResult<ApiKeyRecord> {
        let held = self.listed_api_key(changes.org_id, changes.id).await.on_missing_in_body("id")?;
        let mut record = held.record.clone();
        changes.apply(&mut record, default)?;
        self.transact_all(&held.changed(&record, identity)?).await.on_missing_in_body("id")?;
        Ok(record)
    }

    /// The API keys of an organisation, oldest first.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn api_keys_of(&self, org: OrgId) -> Result<Vec<ApiKeyRecord>, TableError> {
        let first = listed_api_key(org, ApiKeyId(Uuid::nil()));
        Ok(self.query_records(&first.pk, (&first.sk, None), None).await?.records)
    }

    /// The key `id` of an organisation.
    async fn listed_api_key(&self, org: OrgId, id: ApiKeyId) -> Result<StoredApiKey, TableError> {
        let item = self.get(&listed_api_key(org, id)).await?.ok_or(TableError::Missing)?;
        let hash = item.get(KEY_HASH).and_then(|hash| hash.as_s().ok()).cloned().ok_or(TableError::Missing)?;
        Ok(StoredApiKey { hash: KeyHash::from_hex(hash), record: from_item(item)? })
    }

    /// All of these writes or none; there may be none.
    async fn transact_all(&self, writes: &[Write]) -> Result<(), TableError> {
        if writes.is_empty() { Ok(()) } else { Ok(self.transact(writes).await?) }
    }
}

/// The same for the keys of the caller's organisation.
impl Table {
    /// The key `id`.
    ///
    /// # Errors
    /// [`TableError::Missing`] where the organisation has no such key.
    pub async fn api_key(&self, id: ApiKeyId) -> Result<StoredApiKey, TableError> {
        self.store.listed_api_key(self.tenant.org(), id).await
    }

    /// All keys, oldest first.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, TableError> {
        self.store.api_keys_of(self.tenant.org()).await
    }

    /// Adds the key `new`, unless an earlier attempt of the request has added it; `origin` is the same in every attempt.
    /// The key that it replaces, if there is one, becomes `replaced.1`.
    ///
    /// # Errors
    /// [`TableError::Missing`] where the key to replace is gone.
    pub async fn issue_api_key(
        &self,
        origin: Option<Uuid>,
        new: &StoredApiKey,
        replaced: Option<(&StoredApiKey, &ApiKeyRecord)>,
    ) -> Result<(), TableError> {
        let mut transaction = Transaction::of_request(self);
        transaction.once(origin, new.record.id.0, new.record.created_at);
        let [found, mut listed] = new.items()?;
        self.stamp(&mut listed);
        transaction.write_all([found, listed].map(Write::put));
        if let Some((old, after)) = replaced {
            transaction.write_all(old.changed(after, |update| self.stamping(update))?);
        }
        match transaction.commit().await {
            Ok(()) | Err(Cancelled::Condition(Unmet::Repeated, _)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Changes a key, and returns its new record.
    ///
    /// # Errors
    /// [`TableError::Missing`] where it is gone.
    pub async fn change_api_key(&self, held: &StoredApiKey, after: ApiKeyRecord) -> Result<ApiKeyRecord, TableError> {
        self.store.transact_all(&held.changed(&after, |update| self.stamping(update))?).await?;
        Ok(after)
    }

    /// Removes both items of a key, and counts it.
    ///
    /// # Errors
    /// [`TableError::Missing`] where it is gone.
    pub async fn remove_api_key(&self, held: &StoredApiKey) -> Result<(), TableError> {
        let [found, listed] = held.keys().map(|key| Write::delete(key).when(Condition::exists()));
        // Nothing is left of the key that shows who has removed it.
        let counting = UpdateExpression::new().add("count", number(1));
        let counting = self.noting_removal(counting, RECORD, [held.record.id.0]);
        let counted = Write::update(Key::of(&self.tenant, format_args!("REMOVED_API_KEYS"), "COUNT"), counting);
        Ok(self.store.transact(&[found, listed, counted]).await?)
    }
}
