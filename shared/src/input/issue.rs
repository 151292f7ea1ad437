//! The issues of an input, and their locations.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::input::member;
use crate::input::schema::{Member, Schema, Value, described, object, titled};

/// One entry of `detail`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// The location of the faulty input.
    pub loc: Location,
    /// A sentence for people.
    pub msg: Cow<'static, str>,
    /// A short code for programs.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

impl Schema for Issue {
    fn schema() -> Value {
        let loc = json!({"type": "array", "items": {"type": ["string", "integer"]}});
        let members = vec![
            Member { name: "loc", required: true, schema: described(loc, "Where the faulty input is.") },
            member::<String>("msg", true, "A sentence for people."),
            member::<String>("type", true, "A short code for programs."),
        ];
        titled(object(members), "Issue", "What is wrong with a request.")
    }
}

/// All issues of one input, in the order in which they were found.
pub type Issues = Vec<Issue>;

/// The location of an input, such as `["body", "contact_ids", 0]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(Cow<'static, str>),
    Index(usize),
}

impl Location {
    /// The request as a whole: `[]`.
    pub const fn nowhere() -> Self {
        Self(Vec::new())
    }

    /// The path: `["path"]`.
    pub fn path() -> Self {
        Self::nowhere().name("path")
    }

    /// The query: `["query"]`.
    pub fn query() -> Self {
        Self::nowhere().name("query")
    }

    /// The header `name`, in lower case: `["header", name]`.
    pub fn header(name: &'static str) -> Self {
        Self::nowhere().name("header").name(name)
    }

    /// The last name in it.
    pub fn field(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|step| match step {
            Step::Name(name) => Some(name.as_ref()),
            Step::Index(_) => None,
        })
    }

    /// The body: `["body"]`.
    pub fn body() -> Self {
        Self::nowhere().name("body")
    }

    /// The member `name` of this location.
    #[must_use]
    pub fn name(&self, name: impl Into<Cow<'static, str>>) -> Self {
        self.with(Step::Name(name.into()))
    }

    /// The element `index`, counted from 0, of this location.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// An issue at this location.
    pub fn issue(&self, kind: &'static str, msg: impl Into<Cow<'static, str>>) -> Issue {
        Issue { loc: self.clone(), msg: msg.into(), kind }
    }
}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Name(name) => serializer.serialize_str(name),
            Self::Index(index) => serializer.serialize_u64(*index as u64),
        }
    }
}
