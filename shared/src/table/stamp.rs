//! Stamps: which request of which key has written a record.
//!
//! A request stamps each row that it writes, so the stream sees who has changed the row. A removed row leaves no item
//! that could be stamped. Its removal is noted, with the stamp, in the item that counts it: the stream sees that item.

use std::fmt::Display;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::table::expression::UpdateExpression;
use crate::table::item::{Item, text};
use crate::table::part::Table;
use crate::values::id::ApiKeyId;
use crate::values::time::Timestamp;

/// Name of the attribute with the stamp.
pub const STAMP: &str = "stamp";
/// Name of the attribute with the kind of the records that a request removed last, and their ids.
pub const REMOVED: &str = "removed";

/// The request that writes, in the form of the attribute: `<key> <time> <operation> <request>`. The key is shortened,
/// because each row has a stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The key.
    pub key: ApiKeyId,
    /// When the request began.
    pub at: Timestamp,
    /// The name of the operation.
    pub operation: String,
    /// The id of the request.
    pub request: String,
}

impl Stamp {
    /// The stamp with this text, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(4, ' ');
        let key = Uuid::from_slice(&URL_SAFE_NO_PAD.decode(words.next()?).ok()?).ok()?;
        let at = Timestamp::from_unix_millis(words.next()?.parse().ok()?);
        let (operation, request) = (words.next()?.to_owned(), words.next()?.to_owned());
        Some(Self { key: ApiKeyId(key), at, operation, request })
    }
}

impl Display for Stamp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, at, operation, request } = self;
        let key = URL_SAFE_NO_PAD.encode(key.0.as_bytes());
        write!(formatter, "{key} {} {operation} {request}", at.unix_millis())
    }
}

impl Table {
    /// The same part of the table, for a request that stamps the rows that it writes.
    #[must_use]
    pub fn stamped(self, stamp: &Stamp) -> Self {
        Self { stamp: Some(stamp.to_string().into()), ..self }
    }

    /// Stamps a row.
    pub(crate) fn stamp(&self, row: &mut Item) {
        row.extend(self.stamp.as_deref().map(|stamp| (STAMP.to_owned(), text(stamp))));
    }

    /// The same update of a row, which also stamps it.
    pub(crate) fn stamping(&self, update: UpdateExpression) -> UpdateExpression {
        match self.stamp.as_deref() {
            Some(stamp) => update.set(STAMP, text(stamp)),
            None => update,
        }
    }

    /// The same update of an item that counts removed rows, which also notes that the `record` of each of `ids` was removed.
    pub(crate) fn noting_removal(
        &self,
        update: UpdateExpression,
        record: &str,
        ids: impl IntoIterator<Item = Uuid>,
    ) -> UpdateExpression {
        match self.stamp.as_deref() {
            Some(stamp) => {
                let removed: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
                update.set(STAMP, text(stamp)).set(REMOVED, text(format_args!("{record} {}", removed.join(" "))))
            }
            None => update,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written() {
        let stamp = Stamp {
            key: ApiKeyId(Uuid::from_u128(7)),
            at: Timestamp::from_unix_millis(1_769_947_200_000),
            operation: "create-tag".to_owned(),
            request: "a request".to_owned(),
        };
        assert_eq!(Stamp::parse(&stamp.to_string()), Some(stamp));
        for wrong in ["", "x", "AAAAAAAAAAAAAAAAAAAABw", "AAAAAAAAAAAAAAAAAAAABw x create-tag 1"] {
            assert_eq!(Stamp::parse(wrong), None, "{wrong}");
        }
    }
}
