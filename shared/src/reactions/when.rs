//! The changes to which a reaction reacts.

use crate::reactions::{count, emit};
use crate::table::change::Change;

/// A change of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It was made, changed or removed.
    Changed,
    /// It was made.
    Made,
    /// It was made or changed.
    Written,
    /// It was removed.
    Removed,
    /// DynamoDB has removed it, because its TTL had passed.
    Expired,
    /// A request with a key has made, changed or removed any record.
    Stamped,
    /// It may be an event.
    Emitted,
    /// A metric may count it.
    Counted,
    /// A field of it has changed its value.
    Became {
        /// The field.
        field: &'static str,
        /// Its value before.
        from: &'static str,
        /// Its value after.
        to: &'static str,
    },
    /// A field of it was set to one of its final values.
    Ended {
        /// The field.
        field: &'static str,
        /// Its last values.
        to: &'static [&'static str],
        /// An attribute that the record must have.
        of: &'static str,
    },
}

impl When {
    /// Whether `change`, of a record called `record`, is such a change.
    pub(super) fn includes(self, record: &str, change: &Change) -> bool {
        match self {
            Self::Stamped => return change.is_stamped(),
            Self::Emitted => return emit::is_emitted(change),
            Self::Counted => return count::is_counted(change),
            _ if change.record_name() != Some(record) => return false,
            _ => {}
        }
        match self {
            Self::Changed | Self::Stamped | Self::Emitted | Self::Counted => true,
            Self::Made => change.is_creation(),
            Self::Written => !change.is_removal(),
            Self::Removed => change.is_removal(),
            Self::Expired => change.is_expiry(),
            Self::Became { field, from, to } => {
                change.text_before(field) == Some(from) && change.text(field) == Some(to)
            }
            Self::Ended { field, to, of } => {
                let ends = |value: Option<&str>| value.is_some_and(|value| to.contains(&value));
                ends(change.text(field)) && !ends(change.text_before(field)) && change.text(of).is_some()
            }
        }
    }
}
