//! How API keys are stored: each under its hash, and in the listing of its organisation.

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use super::{ApiKeyRecord, KeyHash};
use crate::table::TableError;
use crate::table::keys::{api_key, listed_api_key};
use crate::table::store::{EXISTS, Store, from_item, text, to_item, values};
use crate::table::transaction::Write;
use crate::values::id::{ApiKeyId, OrgId};
use crate::values::time::Timestamp;

/// An entry in the listing of an organisation's keys. It says the hash under which the key is found.
const KEY_HASH: &str = "key_hash";
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

    /// Revokes the API key `id` at `now`, unless it was revoked before, and returns what is stored of it.
    ///
    /// # Errors
    /// [`TableError::Missing`] where the organisation has no such key.
    pub async fn revoke_api_key(&self, org: OrgId, id: ApiKeyId, now: Timestamp) -> Result<ApiKeyRecord, TableError> {
        let listed = listed_api_key(org, id);
        let item = self.get(&listed).await?.ok_or(TableError::Missing)?;
        let hash = item.get(KEY_HASH).and_then(|hash| hash.as_s().ok()).cloned().ok_or(TableError::Missing)?;
        let mut record: ApiKeyRecord = from_item(item)?;
        if record.revoked_at.is_none() {
            record.revoked_at = Some(now);
            let end = |key| Write::Update {
                key,
                expression: "SET revoked_at = :now".into(),
                condition: Some(EXISTS.into()),
                values: values([(":now", text(now))]),
            };
            self.transact(&[end(api_key(&KeyHash::from_hex(hash))), end(listed)]).await?;
        }
        Ok(record)
    }

    /// The API keys of an organisation, oldest first.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn api_keys_of(&self, org: OrgId) -> Result<Vec<ApiKeyRecord>, TableError> {
        let first = listed_api_key(org, ApiKeyId(Uuid::nil()));
        self.query_records(&first.pk, &first.sk, None).await
    }
}
