//! Secret text, which `Debug` hides, and its form in the table, where it is sealed.

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::input::schema::{Schema, Value};
use crate::values::bytes::Bytes;

/// A secret. `Debug` does not show its text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl Schema for Secret {
    fn schema() -> Value {
        String::schema()
    }
}

/// A secret as a record has it: sealed, as in the table; or open, if it is new, was opened, or was stored before secrets
/// were sealed. `Debug` shows no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredSecret {
    /// The text.
    Open(Secret),
    /// The sealed text.
    Sealed(SealedSecret),
}

/// A sealed secret. Only [`sealing`](crate::sealing) opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// The data key, encrypted by KMS for one organisation.
    pub data_key: Bytes,
    /// The part that stands in plain text beside the sealed one, such as a mask.
    pub shown: String,
    /// Nonce, ciphertext and authentication tag.
    pub ciphertext: Bytes,
}

/// A value of a record that may have secrets.
pub trait HoldsSecrets {
    /// Adds all of them to `found`.
    fn secrets<'a>(&'a mut self, found: &mut Vec<FoundSecret<'a>>);
}

/// A secret of a record.
pub struct FoundSecret<'a> {
    /// The secret.
    pub secret: &'a mut StoredSecret,
    /// Returns the part of the text that may stand beside the sealed text; `None` if nothing in the text is secret.
    pub shown: fn(&str) -> Option<String>,
}

impl<T: HoldsSecrets> HoldsSecrets for Option<T> {
    fn secrets<'a>(&'a mut self, found: &mut Vec<FoundSecret<'a>>) {
        if let Some(value) = self {
            value.secrets(found);
        }
    }
}

impl<T: HoldsSecrets> HoldsSecrets for Vec<T> {
    fn secrets<'a>(&'a mut self, found: &mut Vec<FoundSecret<'a>>) {
        for value in self {
            value.secrets(found);
        }
    }
}

/// A secret of which nothing is shown.
impl HoldsSecrets for StoredSecret {
    fn secrets<'a>(&'a mut self, found: &mut Vec<FoundSecret<'a>>) {
        found.push(FoundSecret { secret: self, shown: |_| Some(String::new()) });
    }
}

impl StoredSecret {
    /// The text; `None` if it is sealed.
    pub const fn open(&self) -> Option<&Secret> {
        match self {
            Self::Open(secret) => Some(secret),
            Self::Sealed(_) => None,
        }
    }
}

impl From<Secret> for StoredSecret {
    fn from(secret: Secret) -> Self {
        Self::Open(secret)
    }
}

/// The first byte of a sealed secret: how the rest is to be read.
const VERSION: u8 = 1;

impl SealedSecret {
    /// The bytes in the table: the version, the data key and the shown part behind their lengths, the ciphertext.
    fn to_bytes(&self) -> Option<Vec<u8>> {
        let (key, shown) = (self.data_key.expose(), self.shown.as_bytes());
        let (key_length, shown_length) = (u16::try_from(key.len()).ok()?, u32::try_from(shown.len()).ok()?);
        let lengths = [&[VERSION], &key_length.to_be_bytes()[..], &shown_length.to_be_bytes()[..]].concat();
        Some([&lengths, key, shown, self.ciphertext.expose()].concat())
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix(&[VERSION])?;
        let (key_length, bytes) = bytes.split_first_chunk()?;
        let (shown_length, bytes) = bytes.split_first_chunk()?;
        let (data_key, bytes) = bytes.split_at_checked(u16::from_be_bytes(*key_length).into())?;
        let (shown, ciphertext) = bytes.split_at_checked(u32::from_be_bytes(*shown_length).try_into().ok()?)?;
        let shown = String::from_utf8(shown.to_vec()).ok()?;
        Some(Self { data_key: data_key.to_vec().into(), shown, ciphertext: ciphertext.to_vec().into() })
    }
}

impl Serialize for StoredSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Open(secret) => secret.serialize(serializer),
            Self::Sealed(sealed) => {
                let bytes = sealed.to_bytes();
                serializer.serialize_bytes(&bytes.ok_or_else(|| serde::ser::Error::custom("a secret is too long"))?)
            }
        }
    }
}

impl<'de> Deserialize<'de> for StoredSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StoredForm)
    }
}

/// Reads text, sealed bytes, or an object, whose JSON is the text.
struct StoredForm;

impl<'de> Visitor<'de> for StoredForm {
    type Value = StoredSecret;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a secret, open or sealed")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<StoredSecret, E> {
        Ok(Secret(text.to_owned()).into())
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<StoredSecret, E> {
        let sealed = SealedSecret::of_bytes(bytes);
        sealed.map(StoredSecret::Sealed).ok_or_else(|| E::custom("the bytes are no sealed secret"))
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<StoredSecret, E> {
        self.visit_bytes(&bytes)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<StoredSecret, A::Error> {
        let json = Value::deserialize(de::value::MapAccessDeserializer::new(object))?;
        Ok(Secret(json.to_string()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_secret_is_read_as_it_was_written() {
        let sealed =
            SealedSecret {
                data_key: vec![7; 184].into(), shown: "whsec_…".to_owned(), ciphertext: vec![9; 60].into()
            };
        let bytes = sealed.to_bytes().unwrap();
        assert_eq!(SealedSecret::of_bytes(&bytes), Some(sealed));
        for length in 0..bytes.len() - 60 {
            assert_eq!(SealedSecret::of_bytes(&bytes[..length]), None, "{length}");
        }
        assert_eq!(SealedSecret::of_bytes(&[&[2], &bytes[1..]].concat()), None);
    }

    #[test]
    fn debug_shows_no_text() {
        let open = StoredSecret::from(Secret::from("hidden".to_owned()));
        assert_eq!(format!("{open:?}"), "Open(Secret(…))");
    }
}
