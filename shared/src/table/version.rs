//! Versions: the number of changes of a row. Each write that replaces a row has the condition that the row still has
//! the version that was read.

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::table::expression::Condition;
use crate::table::item::{Item, number, text};

/// The attribute that counts the changes; an item without a change lacks it.
pub(super) const VERSION: &str = "version";
/// The attribute that names the request which changed the row last.
const CHANGED_BY: &str = "changed_by";

/// The attribute of a row that the counters of its organisation include.
const COUNTED: &str = "counted";

/// The number of a row's changes, the request that changed it last, and whether the quotas count it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    #[serde(rename = "version", default, skip_serializing_if = "is_first")]
    number: u64,
    #[serde(rename = "changed_by", default, skip_serializing_if = "Option::is_none")]
    by: Option<Uuid>,
    #[serde(rename = "counted", default, skip_serializing_if = "std::ops::Not::not")]
    is_counted: bool,
}

/// A record that counts its changes.
pub trait Versioned {
    /// The number of its changes.
    fn version(&self) -> Version;

    /// Sets the number of its changes.
    fn set_version(&mut self, version: Version);
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_first(number: &u64) -> bool {
    *number == 0
}

impl Version {
    /// The version in an item.
    pub const fn stored(number: Option<u64>, by: Option<Uuid>, is_counted: bool) -> Self {
        Self { number: if let Some(number) = number { number } else { 0 }, by, is_counted }
    }

    /// The number of changes.
    pub const fn number(self) -> u64 {
        self.number
    }

    /// Whether the counters of the organisation include what the row uses. They do not include a row that was written
    /// before there were quotas.
    pub const fn is_counted(self) -> bool {
        self.is_counted
    }

    /// The same version of a row that the counters include, or do not.
    #[must_use]
    pub const fn counted(self, is_counted: bool) -> Self {
        Self { is_counted, ..self }
    }

    /// Whether the request `by` was the last one to change the row.
    pub fn is_by(self, by: Uuid) -> bool {
        self.by == Some(by)
    }

    /// The next version, made by `by`. A change without a request keeps the last request, so that its repeat is still
    /// recognised.
    #[must_use]
    pub fn next(self, by: Option<Uuid>) -> Self {
        Self { number: self.number + 1, by: by.or(self.by), ..self }
    }

    /// Adds its attributes.
    pub fn hide(self, item: &mut Item) {
        if self.number > 0 {
            item.insert(VERSION.to_owned(), number(self.number));
        }
        item.extend(self.by.map(|by| (CHANGED_BY.to_owned(), text(by))));
        if self.is_counted {
            item.insert(COUNTED.to_owned(), AttributeValue::Bool(true));
        }
    }

    /// The condition that the row `id` still has this version.
    pub(crate) fn unchanged(self, id: Uuid) -> Condition {
        match self.number {
            0 => Condition::of("id = :id AND attribute_not_exists(version)", [(":id", text(id))]),
            seen => Condition::of("id = :id AND version = :version", [(":id", text(id)), (":version", number(seen))]),
        }
    }

    /// The condition that a record outside any list still has this version. A missing record has the first version.
    pub(crate) fn unchanged_single(self) -> Condition {
        match self.number {
            0 => Condition::of("attribute_not_exists(version)", []),
            seen => Condition::of("version = :version", [(":version", number(seen))]),
        }
    }
}

/// The number of an item's version.
pub(crate) fn version(item: &Item) -> u64 {
    item.get(VERSION).and_then(|version: &AttributeValue| version.as_n().ok()?.parse().ok()).unwrap_or_default()
}
