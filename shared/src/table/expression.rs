//! Expressions of a write: which attributes it changes, and which condition must hold. No other file writes an `UpdateExpression`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::table::item::{Item, number};
use crate::values::time::Timestamp;

/// A change of some attributes of an item. It names each attribute as `#name`, because the name may be a word of DynamoDB.
#[derive(Debug, Clone, Default)]
pub struct UpdateExpression {
    set: String,
    add: String,
    remove: String,
    values: Item,
}

impl UpdateExpression {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `attribute` to `value`.
    #[must_use]
    pub fn set(mut self, attribute: &str, value: AttributeValue) -> Self {
        let _ = write!(self.set, ", #{attribute} = :set_{attribute}");
        self.with(attribute, value)
    }

    /// Sets `attribute` to `value`, unless the item has the attribute.
    #[must_use]
    pub fn set_if_absent(self, attribute: &str, value: AttributeValue) -> Self {
        self.copy(attribute, attribute, value)
    }

    /// Sets `attribute` to the value that the attribute `from` has before the update, or to `otherwise` where the item has none.
    #[must_use]
    pub fn copy(mut self, attribute: &str, from: &str, otherwise: AttributeValue) -> Self {
        let _ = write!(self.set, ", #{attribute} = if_not_exists(#{from}, :set_{attribute})");
        self.with(attribute, otherwise)
    }

    /// Adds `value` to a number, which is 0 where the item has none, or to a set.
    #[must_use]
    pub fn add(mut self, attribute: &str, value: AttributeValue) -> Self {
        let _ = write!(self.add, ", #{attribute} :set_{attribute}");
        self.with(attribute, value)
    }

    /// Adds one to a number, which is `first` before that where the item has none.
    #[must_use]
    pub fn count_from(mut self, attribute: &str, first: AttributeValue) -> Self {
        let _ = write!(self.set, ", #{attribute} = if_not_exists(#{attribute}, :set_{attribute}) + :one");
        self.values.insert(":one".to_owned(), number(1));
        self.with(attribute, first)
    }

    /// Removes `attribute`.
    #[must_use]
    pub fn remove(mut self, attribute: &str) -> Self {
        let _ = write!(self.remove, ", #{attribute}");
        self
    }

    /// Removes all `attributes`.
    #[must_use]
    pub fn remove_all(self, attributes: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        attributes.into_iter().fold(self, |update, attribute| update.remove(attribute.as_ref()))
    }

    fn with(mut self, attribute: &str, value: AttributeValue) -> Self {
        self.values.insert(format!(":set_{attribute}"), value);
        self
    }

    /// The `UpdateExpression`.
    fn expression(&self) -> String {
        let clauses = [("SET", &self.set), ("ADD", &self.add), ("REMOVE", &self.remove)];
        let clauses = clauses.into_iter().filter_map(|(verb, of)| Some((verb, of.strip_prefix(',')?)));
        clauses.map(|(verb, of)| format!("{verb}{of}")).collect::<Vec<_>>().join(" ")
    }
}

/// A condition that must hold of an item for its write. `#name` is the attribute `name`, which may be a word of DynamoDB.
#[derive(Debug, Clone)]
pub struct Condition {
    expression: Cow<'static, str>,
    values: Item,
}

impl Condition {
    /// The condition `expression`, with its values by their names.
    pub fn of<const N: usize>(expression: &'static str, values: [(&'static str, AttributeValue); N]) -> Self {
        Self::new(expression, values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The same, of an expression or of values that are only known at run time.
    pub fn new(expression: impl Into<Cow<'static, str>>, values: Item) -> Self {
        Self { expression: expression.into(), values }
    }

    /// The item is there.
    pub fn exists() -> Self {
        Self::of("attribute_exists(pk)", [])
    }

    /// The item is not there.
    pub fn absent() -> Self {
        Self::of("attribute_not_exists(pk)", [])
    }

    /// The item is not there, or expired before `now`: DynamoDB removes it some time later.
    pub fn absent_or_expired(now: Timestamp) -> Self {
        Self::of("attribute_not_exists(pk) OR #ttl <= :now", [(":now", number(now.unix_seconds()))])
    }
}

/// The parameters of a call that its expressions need. DynamoDB refuses an empty map of names or values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Expressions {
    /// `UpdateExpression`.
    pub update: Option<String>,
    /// `ConditionExpression`.
    pub condition: Option<String>,
    /// `ExpressionAttributeNames`.
    pub names: Option<HashMap<String, String>>,
    /// `ExpressionAttributeValues`.
    pub values: Option<Item>,
}

impl Expressions {
    /// The parameters for an update and for a condition, if the call has them.
    pub fn of(update: Option<&UpdateExpression>, condition: Option<&Condition>) -> Self {
        let mut values = update.map(|update| update.values.clone()).unwrap_or_default();
        values.extend(condition.iter().flat_map(|condition| condition.values.clone()));
        let (update, condition) = (
            update.map(UpdateExpression::expression),
            condition.map(|condition| condition.expression.clone().into_owned()),
        );
        let names: HashMap<_, _> = update.iter().chain(&condition).flat_map(|expression| names(expression)).collect();
        let (names, values) = ((!names.is_empty()).then_some(names), (!values.is_empty()).then_some(values));
        Self { update, condition, names, values }
    }
}

/// Each `#name` of an expression, and the attribute that it stands for.
fn names(expression: &str) -> impl Iterator<Item = (String, String)> {
    let end = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    let names = expression.split('#').skip(1).filter_map(move |start| start.split(end).next());
    names.map(|name| (format!("#{name}"), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Condition, Expressions, UpdateExpression};
    use crate::table::item::number;

    #[test]
    fn an_update_has_one_clause_for_each_kind_of_change() {
        let update = UpdateExpression::new()
            .remove("gone")
            .set("status", number(1))
            .add("count", number(2))
            .add("all", number(3));
        let update = update.count_from("version", number(5)).copy("first", "next", number(0));
        let update = update.set_if_absent("since", number(4)).remove_all(["a", "b"]);
        assert_eq!(
            update.expression(),
            "SET #status = :set_status, #version = if_not_exists(#version, :set_version) + :one, \
             #first = if_not_exists(#next, :set_first), #since = if_not_exists(#since, :set_since) \
             ADD #count :set_count, #all :set_all REMOVE #gone, #a, #b"
        );
    }

    #[test]
    fn an_update_and_its_condition_share_names_only() {
        let condition = Condition::of("#status = :status", [(":status", number(1))]);
        let Expressions { names, values, .. } =
            Expressions::of(Some(&UpdateExpression::new().set("status", number(2))), Some(&condition));
        assert_eq!(names, Some([("#status".into(), "status".into())].into()));
        assert_eq!(values, Some([(":status".into(), number(1)), (":set_status".into(), number(2))].into()));
    }

    #[test]
    fn expressions_without_names_or_values_have_no_map_of_them() {
        let condition = Some("attribute_exists(pk)".to_owned());
        let only = Expressions { condition, ..Expressions::default() };
        assert_eq!(Expressions::of(None, Some(&Condition::exists())), only);
    }
}
