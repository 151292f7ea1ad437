//! Seals the secrets of records before they are stored, and opens them again. ADR 45 gives the reasons.
//!
//! A secret is encrypted with AES-256-GCM and a data key of its organisation. The data key comes from KMS, which encrypts
//! it with the key of the stack; this encrypted data key stands beside each secret. A process remembers data keys, so
//! that only its first use of one needs a call of KMS.

mod kms;

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use lru::LruCache;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::SecureRandom as _;

pub use crate::sealing::kms::{CONTEXT, Kms};
use crate::values::bytes::Bytes;
use crate::values::id::OrgId;
use crate::values::secret::{SealedSecret, Secret};

/// The data keys that a process remembers. The least recently used one is forgotten first.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// How long a process remembers a data key.
const KNOWN: Duration = Duration::from_hours(1);

/// Why a secret was neither sealed nor opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SealingError {
    /// KMS did not answer in time, failed or throttled after all retries, or its key is disabled.
    #[error("{0}")]
    Unavailable(Arc<str>),
    /// A defect of the service or of the deployment: KMS refused the request, or there is no key.
    #[error("{0}")]
    Refused(Arc<str>),
    /// The secret was changed, or was sealed for another organisation or another place.
    #[error("{0} cannot be opened")]
    Unopenable(&'static str),
}

/// Seals and opens secrets. Clones share the remembered data keys.
#[derive(Debug, Clone)]
pub struct Secrets {
    /// `None` where the process has no key: then secrets can neither be sealed nor opened.
    kms: Option<Kms>,
    keys: Arc<Mutex<DataKeys>>,
}

/// The data keys that a process remembers, or that are under way.
#[derive(Debug)]
struct DataKeys {
    /// The key that seals new secrets of an organisation.
    sealing: LruCache<OrgId, KnownKey>,
    /// The keys that open secrets, by organisation and encrypted key.
    opening: LruCache<(OrgId, Vec<u8>), KnownKey>,
}

/// A data key that was asked for. All who need it at the same time share one call.
#[derive(Clone)]
struct KnownKey {
    key: Shared<BoxFuture<'static, Result<DataKey, SealingError>>>,
    since: Instant,
}

impl std::fmt::Debug for KnownKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("KnownKey(…)")
    }
}

/// A data key of an organisation, which seals and opens its secrets.
#[derive(Clone)]
pub struct DataKey {
    encrypted: Bytes,
    key: Arc<LessSafeKey>,
    org: OrgId,
}

impl Default for DataKeys {
    fn default() -> Self {
        Self { sealing: LruCache::new(REMEMBERED), opening: LruCache::new(REMEMBERED) }
    }
}

impl KnownKey {
    fn is_young(&self) -> bool {
        self.since.elapsed() < KNOWN
    }
}

impl Secrets {
    /// Seals and opens with data keys of `kms`.
    pub fn new(kms: Option<Kms>) -> Self {
        Self { kms, keys: Arc::default() }
    }

    /// The same in another process, which remembers no data key.
    #[must_use]
    pub fn in_another_process(&self) -> Self {
        Self::new(self.kms.clone())
    }

    /// The data key that seals for `org`.
    ///
    /// # Errors
    /// [`SealingError`].
    pub async fn data_key(&self, org: OrgId) -> Result<DataKey, SealingError> {
        let ask = move |kms: Kms| async move {
            let new = kms.new_data_key(org).await?;
            DataKey::new(org, new.encrypted, &new.plain)
        };
        let (key, known) = self.known(|keys| &mut keys.sealing, org, |kms| ask(kms).boxed()).await?;
        // The same key opens what it seals.
        let id = (org, key.encrypted.expose().to_vec());
        self.keys(|keys| keys.opening.put(id, known));
        Ok(key)
    }

    /// The text of `sealed`, which stands at `place` of a record of `org`.
    ///
    /// # Errors
    /// [`SealingError`].
    pub async fn open(&self, org: OrgId, place: &'static str, sealed: &SealedSecret) -> Result<Secret, SealingError> {
        let (encrypted, id) = (sealed.data_key.clone(), (org, sealed.data_key.expose().to_vec()));
        let ask = move |kms: Kms| async move {
            let plain = kms.decrypted(org, &encrypted).await?;
            DataKey::new(org, encrypted, &plain)
        };
        match self.known(|keys| &mut keys.opening, id, |kms| ask(kms).boxed()).await {
            Ok((key, _)) => key.open(place, sealed),
            Err(SealingError::Unopenable(_)) => Err(SealingError::Unopenable(place)),
            Err(other) => Err(other),
        }
    }

    /// The data key of `id` in the memory `of`. If it is unknown, `ask` asks KMS for it. A failure is not remembered.
    async fn known<Id: Clone + Eq + Hash>(
        &self,
        of: fn(&mut DataKeys) -> &mut LruCache<Id, KnownKey>,
        id: Id,
        ask: impl FnOnce(Kms) -> BoxFuture<'static, Result<DataKey, SealingError>>,
    ) -> Result<(DataKey, KnownKey), SealingError> {
        let kms = self.kms()?.clone();
        let known = self.keys(|keys| {
            let all = of(keys);
            if let Some(known) = all.get(&id).filter(|known| known.is_young()) {
                return known.clone();
            }
            let asked = KnownKey { key: ask(kms).shared(), since: Instant::now() };
            all.put(id.clone(), asked.clone());
            asked
        });
        let key = known.key.clone().await;
        if key.is_err() {
            self.keys(|keys| {
                let all = of(keys);
                if all.peek(&id).is_some_and(|other| other.key.ptr_eq(&known.key)) {
                    all.pop(&id);
                }
            });
        }
        Ok((key?, known))
    }

    fn kms(&self) -> Result<&Kms, SealingError> {
        self.kms.as_ref().ok_or_else(|| SealingError::Refused("there is no key for secrets".into()))
    }

    fn keys<T>(&self, with: impl FnOnce(&mut DataKeys) -> T) -> T {
        with(&mut self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl DataKey {
    fn new(org: OrgId, encrypted: Bytes, plain: &[u8]) -> Result<Self, SealingError> {
        let key = UnboundKey::new(&AES_256_GCM, plain);
        let key = key.map_err(|_| SealingError::Refused("kms: a data key of another length".into()))?;
        Ok(Self { encrypted, key: Arc::new(LessSafeKey::new(key)), org })
    }

    /// Seals `secret`, which stands at `place` of a record, with `shown` beside it.
    ///
    /// # Errors
    /// [`SealingError::Refused`] where the machine has no random bytes.
    pub fn seal(&self, place: &'static str, secret: &Secret, shown: String) -> Result<SealedSecret, SealingError> {
        let refused = |_| SealingError::Refused("a secret cannot be sealed".into());
        let mut nonce = [0; NONCE_LEN];
        ring::rand::SystemRandom::new().fill(&mut nonce).map_err(refused)?;
        let mut text = secret.expose().as_bytes().to_vec();
        let about = self.about(place, &shown);
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(about), &mut text)
            .map_err(refused)?;
        let ciphertext = [&nonce[..], &text].concat().into();
        Ok(SealedSecret { data_key: self.encrypted.clone(), shown, ciphertext })
    }

    fn open(&self, place: &'static str, sealed: &SealedSecret) -> Result<Secret, SealingError> {
        let unopenable = || SealingError::Unopenable(place);
        let (nonce, text) = sealed.ciphertext.expose().split_first_chunk::<NONCE_LEN>().ok_or_else(unopenable)?;
        let (about, mut text) = (self.about(place, &sealed.shown), text.to_vec());
        let opened = self.key.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(about), &mut text);
        let opened = opened.map_err(|_| unopenable())?.to_vec();
        String::from_utf8(opened).map(Secret::from).map_err(|_| unopenable())
    }

    /// What the authentication tag covers besides the text: a sealed secret opens only at its place.
    fn about(&self, place: &str, shown: &str) -> Vec<u8> {
        // A place has no line break, and an organisation always has as many characters.
        format!("{}\n{place}\n{shown}", self.org).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn key(org: u128, byte: u8) -> DataKey {
        DataKey::new(OrgId(Uuid::from_u128(org)), vec![byte; 8].into(), &[byte; 32]).unwrap()
    }

    #[test]
    fn a_secret_opens_only_with_its_key_organisation_and_place() {
        let secret = Secret::from("whsec_hidden".to_owned());
        let sealed = key(1, 1).seal("Webhook.secrets", &secret, "shown".to_owned()).unwrap();
        assert_eq!(key(1, 1).open("Webhook.secrets", &sealed).unwrap(), secret);
        assert!(!String::from_utf8_lossy(sealed.ciphertext.expose()).contains("hidden"));
        for (key, place) in
            [(key(1, 2), "Webhook.secrets"), (key(2, 1), "Webhook.secrets"), (key(1, 1), "Widget.secrets")]
        {
            let error = key.open(place, &sealed).unwrap_err();
            assert_eq!(error.to_string(), format!("{place} cannot be opened"));
        }
        let other = SealedSecret { shown: "other".to_owned(), ..sealed.clone() };
        assert!(key(1, 1).open("Webhook.secrets", &other).is_err());
        for at in 0..sealed.ciphertext.expose().len() {
            let mut bytes = sealed.ciphertext.expose().to_vec();
            bytes[at] ^= 1;
            let changed = SealedSecret { ciphertext: bytes.into(), ..sealed.clone() };
            assert!(key(1, 1).open("Webhook.secrets", &changed).is_err(), "{at}");
        }
    }

    #[test]
    fn the_same_secret_is_never_sealed_into_the_same_bytes() {
        let secret = Secret::from("whsec_hidden".to_owned());
        let seal = || key(1, 1).seal("Webhook.secrets", &secret, String::new()).unwrap();
        assert_ne!(seal(), seal());
    }
}
