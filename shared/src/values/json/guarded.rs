//! Free-form JSON with secrets, which are sealed in the table and masked in answers.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

use crate::input::schema::{Schema, Value};
use crate::input::{Issues, Location, Parse, Raw};
use crate::values::json::JsonObject;
use crate::values::json::texts::{JsonText, texts};
use crate::values::mask::is_masked;
use crate::values::secret::{FoundSecret, HoldsSecrets, Secret, StoredSecret};

/// A free-form JSON object that may have secrets. If it has any, the table has the whole object sealed, and also its
/// masked form, in plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardedObject(StoredSecret);

impl GuardedObject {
    /// The member `name`, if it is text and the object is open.
    pub fn text(&self, name: &'static str) -> Option<String> {
        object(self.0.open()?.expose())?.text(name)
    }

    /// Whether the object has the member `name` as text, open or sealed.
    pub fn has_text(&self, name: &'static str) -> bool {
        self.visible().text(name).is_some_and(|text| !text.is_empty())
    }

    /// The object as the table has it.
    pub const fn stored(&self) -> &StoredSecret {
        &self.0
    }

    /// This object with its secrets masked, at any depth.
    #[must_use]
    pub fn masked(&self) -> JsonObject {
        self.visible().masked()
    }

    /// Whether it has masked texts: they stand for the secrets of a stored object.
    pub fn has_masks(&self) -> bool {
        let is_mask = |text: JsonText| text.text.is_some_and(|text| is_masked(&text));
        self.0.open().is_some_and(|json| texts(json.expose()).any(is_mask))
    }

    /// This object with its masked texts replaced by the secrets of `stored`, which is open.
    #[must_use]
    pub fn unmasked(&self, stored: &Self) -> Self {
        if self.has_masks() { self.visible().unmasked(&stored.visible()).into() } else { self.clone() }
    }

    /// The object, or its masked form if it is sealed.
    fn visible(&self) -> JsonObject {
        let json = match &self.0 {
            StoredSecret::Open(json) => json.expose(),
            StoredSecret::Sealed(sealed) => &sealed.shown,
        };
        object(json).unwrap_or_default()
    }
}

/// `json` as an object. It was checked when it was read.
fn object(json: &str) -> Option<JsonObject> {
    RawValue::from_string(json.to_owned()).ok().map(JsonObject)
}

/// The masked form of the object `json`; `None` if nothing in it is secret.
fn shown(json: &str) -> Option<String> {
    let is_secret = |text: &JsonText| text.is_secret() && text.text.as_deref() != Some("");
    texts(json).any(|text| is_secret(&text)).then(|| object(json).unwrap_or_default().masked().0.get().to_owned())
}

impl HoldsSecrets for GuardedObject {
    fn secrets<'a>(&'a mut self, found: &mut Vec<FoundSecret<'a>>) {
        found.push(FoundSecret { secret: &mut self.0, shown });
    }
}

impl From<JsonObject> for GuardedObject {
    fn from(object: JsonObject) -> Self {
        Self(Secret::from(object.0.get().to_owned()).into())
    }
}

impl Default for GuardedObject {
    fn default() -> Self {
        JsonObject::default().into()
    }
}

impl Serialize for GuardedObject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            StoredSecret::Open(_) => self.visible().serialize(serializer),
            StoredSecret::Sealed(_) => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for GuardedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredSecret::deserialize(deserializer)?;
        let json = match &stored {
            StoredSecret::Open(json) => json.expose(),
            StoredSecret::Sealed(sealed) => &sealed.shown,
        };
        serde_json::from_str::<&RawValue>(json).map_err(de::Error::custom)?;
        Ok(Self(stored))
    }
}

impl Schema for GuardedObject {
    fn schema() -> Value {
        JsonObject::schema()
    }
}

impl Parse for GuardedObject {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        JsonObject::parse(raw, at, issues).map(Self::from)
    }
}
