//! The secrets of records: sealed before each write, and opened on request.
//!
//! A record that is read has its secrets as they are stored. Most code neither needs them open nor pays for a call of
//! KMS: it answers masks, or changes other fields.

use crate::sealing::{DataKey, SealingError};
use crate::table::error::TableError;
use crate::table::part::Table;
use crate::table::stored::Stored;
use crate::values::secret::{FoundSecret, StoredSecret};

impl From<SealingError> for TableError {
    fn from(error: SealingError) -> Self {
        match &error {
            SealingError::Unavailable(_) => Self::Unavailable(error.to_string()),
            SealingError::Refused(_) | SealingError::Unopenable(_) => Self::Broken(error.to_string()),
        }
    }
}

impl Table {
    /// Opens every secret of `record`.
    ///
    /// # Errors
    /// [`SealingError`].
    pub async fn open<R: Stored>(&self, record: &mut R) -> Result<(), SealingError> {
        if !R::HAS_SECRETS {
            return Ok(());
        }
        for (place, FoundSecret { secret, .. }) in record.secrets() {
            if let StoredSecret::Sealed(sealed) = &*secret {
                let org = self.tenant.org();
                *secret = Box::pin(self.store.secrets.open(org, place, sealed)).await?.into();
            }
        }
        Ok(())
    }

    /// Seals the open secrets of `record`, before it is written.
    ///
    /// # Errors
    /// [`TableError::Unavailable`] where KMS is, [`TableError::Broken`] where a secret cannot be sealed.
    pub(super) async fn seal<R: Stored>(&self, record: &mut R) -> Result<(), TableError> {
        let key = self.sealing_key(record).await?;
        seal(key.as_ref(), record)
    }

    /// The data key with which [`seal`] seals `record`; `None` if nothing in it is an open secret.
    pub(super) async fn sealing_key<R: Stored>(&self, record: &mut R) -> Result<Option<DataKey>, TableError> {
        if !R::HAS_SECRETS || open_secrets(record).is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::pin(self.store.secrets.data_key(self.tenant.org())).await?))
    }
}

/// Seals the open secrets of `record` with `key`. A record without any needs no key.
pub(super) fn seal<R: Stored>(key: Option<&DataKey>, record: &mut R) -> Result<(), TableError> {
    let Some(key) = key else { return Ok(()) };
    for (place, secret, shown) in open_secrets(record) {
        if let StoredSecret::Open(text) = &*secret {
            *secret = StoredSecret::Sealed(key.seal(place, text, shown)?);
        }
    }
    Ok(())
}

/// The open secrets of `record`: the place of each one, and what is shown beside it.
fn open_secrets<R: Stored>(record: &mut R) -> Vec<(&'static str, &mut StoredSecret, String)> {
    let is_open = |(place, FoundSecret { secret, shown })| {
        let shown = shown(StoredSecret::open(secret)?.expose())?;
        Some((place, secret, shown))
    };
    record.secrets().into_iter().filter_map(is_open).collect()
}
