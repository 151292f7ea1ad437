//! A change of an item: a record of the table's stream.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_dynamo::{AttributeValue, Item};

use crate::table::error::TableError;
use crate::table::keys::{Key, PK, RECORD, SK};
use crate::table::stamp::{REMOVED, STAMP};
use crate::table::version::VERSION;
use crate::values::time::Timestamp;

/// A change of an item.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// `INSERT`, `MODIFY` or `REMOVE`.
    event_name: String,
    dynamodb: Images,
    user_identity: Option<UserIdentity>,
}

/// The author of a change, if it was DynamoDB itself.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UserIdentity {
    principal_id: String,
}

/// The principal of the changes that DynamoDB itself makes: it removes items whose TTL has passed.
pub const DYNAMODB: &str = "dynamodb.amazonaws.com";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Images {
    keys: Item,
    old_image: Option<Item>,
    new_image: Option<Item>,
    sequence_number: String,
    /// Seconds since 1970.
    #[serde(default)]
    approximate_creation_date_time: f64,
}

impl Change {
    /// Whether the item was removed.
    pub fn is_removal(&self) -> bool {
        self.event_name == "REMOVE"
    }

    /// Whether DynamoDB has removed the item, because its TTL had passed.
    pub fn is_expiry(&self) -> bool {
        self.is_removal() && self.user_identity.as_ref().is_some_and(|by| by.principal_id == DYNAMODB)
    }

    /// Whether the item was made.
    pub fn is_creation(&self) -> bool {
        self.event_name == "INSERT"
    }

    /// Its sequence number in the stream, which no other change has.
    pub fn sequence_number(&self) -> &str {
        &self.dynamodb.sequence_number
    }

    /// When the item was changed, to the second.
    pub fn at(&self) -> Timestamp {
        #[expect(clippy::cast_possible_truncation, reason = "a point in time has few digits")]
        let at = (self.dynamodb.approximate_creation_date_time * 1000.0) as i64;
        Timestamp::from_unix_millis(at)
    }

    /// Milliseconds since the item was changed.
    pub fn age(&self, now: Timestamp) -> i64 {
        now.unix_millis() - self.at().unix_millis()
    }

    /// A number that grows with each change of the record in the item: one more than its version. A removal has the next
    /// one.
    pub fn sequence(&self) -> u64 {
        let version = |image: &Option<Item>| image.as_ref().map(|item| number(item, VERSION).unwrap_or_default());
        let after = version(&self.dynamodb.new_image).map(|version| version + 1);
        after.or(version(&self.dynamodb.old_image).map(|version| version + 2)).unwrap_or_default()
    }

    /// The item's key.
    pub fn key(&self) -> Key {
        let text = |name: &str| text(&self.dynamodb.keys, name).unwrap_or_default().to_owned();
        Key { pk: text(PK), sk: text(SK) }
    }

    /// The record in the item after the change; `None` where it was removed.
    ///
    /// # Errors
    /// [`TableError::Broken`] where the item is another record.
    pub fn record<R: DeserializeOwned>(&self) -> Result<Option<R>, TableError> {
        read(self.dynamodb.new_image.as_ref())
    }

    /// The record in the item before the change; `None` where it is new.
    ///
    /// # Errors
    /// [`TableError::Broken`] where the item was another record.
    pub fn record_before<R: DeserializeOwned>(&self) -> Result<Option<R>, TableError> {
        read(self.dynamodb.old_image.as_ref())
    }

    /// The name of the record in the item, before or after the change. Only rows of lists have it.
    pub fn record_name(&self) -> Option<&str> {
        self.text(RECORD).or_else(|| self.text_before(RECORD))
    }

    /// Whether a request with a key made the change. A later change without one leaves an old stamp as it is.
    pub fn is_stamped(&self) -> bool {
        let differs = |name| self.text(name) != self.text_before(name);
        self.text(STAMP).is_some() && (differs(STAMP) || differs(REMOVED))
    }

    /// The text of an attribute after the change.
    pub fn text(&self, name: &str) -> Option<&str> {
        text(self.dynamodb.new_image.as_ref()?, name)
    }

    /// The text of an attribute before the change.
    pub fn text_before(&self, name: &str) -> Option<&str> {
        text(self.dynamodb.old_image.as_ref()?, name)
    }
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    match item.get(name) {
        Some(AttributeValue::S(text)) => Some(text),
        _ => None,
    }
}

fn number(item: &Item, name: &str) -> Option<u64> {
    match item.get(name) {
        Some(AttributeValue::N(number)) => number.parse().ok(),
        _ => None,
    }
}

fn read<R: DeserializeOwned>(image: Option<&Item>) -> Result<Option<R>, TableError> {
    let record = image.cloned().map(serde_dynamo::from_item).transpose();
    // The error itself would quote the content of the item, and it is logged.
    record.map_err(|_| TableError::Broken(format!("an image is no {}", std::any::type_name::<R>())))
}
