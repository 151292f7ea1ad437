//! Reads DynamoDB's JSON directly into records.
//!
//! The SDK turns every item into a map of attribute values first. For one item that costs next to nothing; for the
//! fifty of a page it is half of the time of the call. [`Rows`] lets the SDK set the answer's text aside instead, and
//! [`QueryOutput`] reads it as serde reads any other JSON. The SDK still handles errors, retries, limits and
//! signatures: this file uses an interceptor, which is the SDK's own way of extension.
//! `docs/adr/0014-pages-are-read-from-the-wire.md` has the figures.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use aws_sdk_dynamodb::config::interceptors::BeforeDeserializationInterceptorContextMut;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_types::body::SdkBody;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body::{Body, Frame};
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use crate::table::error::TableError;
use crate::table::item::unreadable;
use crate::table::keys::Key;

/// An interceptor that keeps the text of a query's answer, and returns an empty one to the SDK.
#[derive(Debug, Clone, Default)]
pub struct Rows(Arc<Mutex<Vec<u8>>>);

impl Rows {
    /// The answer's text; empty if there was no answer.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Intercept for Rows {
    fn name(&self) -> &'static str {
        "Rows"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response_mut();
        if response.status().is_success() {
            let body = response.take_body();
            *response.body_mut() = SdkBody::from_body_1_x(Aside { body, read: Vec::new(), rows: self.clone() });
        }
        Ok(())
    }
}

/// A body that looks empty to the SDK: its content is set aside once it is complete.
struct Aside {
    body: SdkBody,
    read: Vec<u8>,
    rows: Rows,
}

impl Body for Aside {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => self.read.extend_from_slice(frame.data_ref().map(AsRef::as_ref).unwrap_or_default()),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    // The SDK polls once more, for trailers: nothing is left by then.
                    let Self { read, rows, .. } = &mut *self;
                    rows.0.lock().unwrap_or_else(PoisonError::into_inner).append(read);
                    return Poll::Ready(None);
                }
            }
        }
    }
}

/// The output of a query.
pub struct QueryOutput<R> {
    /// The records that can be read.
    pub items: Vec<R>,
    /// The number of items.
    pub read: usize,
    /// Where the next query begins; `None` if this one reached the end.
    pub last_evaluated_key: Option<Record<Key>>,
    /// The cost of the query.
    pub consumed_capacity: Option<Consumed>,
}

impl<R: DeserializeOwned> QueryOutput<R> {
    /// The output in `json`. An unreadable item is left out and logged, so that the others are still returned.
    ///
    /// # Errors
    /// [`TableError::Broken`] where the text is no output.
    pub fn read(json: &str) -> Result<Self, TableError> {
        if let Ok(Output { items, last_evaluated_key, consumed_capacity }) = serde_json::from_str(json) {
            let items: Vec<R> = items.into_iter().map(|Record(record)| record).collect();
            return Ok(Self { read: items.len(), items, last_evaluated_key, consumed_capacity });
        }
        // Reads the items again, one by one. Nearly always all of them can be read, so this is not the normal case.
        let output: Output<&RawValue> =
            serde_json::from_str(json).map_err(|error| TableError::Broken(error.to_string()))?;
        let one = |item: &&RawValue| {
            let record = serde_json::from_str::<Record<R>>(item.get());
            let failed = |error: &serde_json::Error| {
                let key = serde_json::from_str::<Record<Key>>(item.get()).ok();
                unreadable(key.as_ref().map(|Record(key)| key), error);
            };
            record.inspect_err(failed).ok().map(|Record(record)| record)
        };
        let Output { items, last_evaluated_key, consumed_capacity } = output;
        Ok(Self {
            read: items.len(),
            items: items.iter().filter_map(one).collect(),
            last_evaluated_key,
            consumed_capacity,
        })
    }
}

/// A query's output as DynamoDB sends it.
#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase", bound = "I: Deserialize<'de>")]
struct Output<I> {
    /// The items.
    #[serde(default = "Vec::new")]
    items: Vec<I>,
    /// Where the next query begins; `None` if this one reached the end.
    pub last_evaluated_key: Option<Record<Key>>,
    /// The cost of the query.
    pub consumed_capacity: Option<Consumed>,
}

/// The cost that an answer reports.
#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Consumed {
    /// Capacity units.
    pub capacity_units: f64,
}

/// A record in the form of an item: `{"name": {"S": "…"}}`.
pub struct Record<R>(pub R);

impl<'de, R: Deserialize<'de>> Deserialize<'de> for Record<R> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        R::deserialize(Typed { kind: Type::M, json }).map(Record)
    }
}

/// The types of attribute values, by their names on the wire.
#[derive(serde::Deserialize, Debug, Clone, Copy)]
#[serde(rename_all = "UPPERCASE")]
enum Type {
    S,
    N,
    B,
    Bool,
    Null,
    M,
    L,
    Ss,
    Ns,
    Bs,
}

/// An attribute value of known type, as the JSON after the type: the text of `{"S": "…"}`, the members of `{"M": {…}}`.
struct Typed<J> {
    kind: Type,
    json: J,
}

impl<'de, J: Deserializer<'de>> Deserializer<'de> for Typed<J> {
    type Error = J::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, J::Error> {
        match self.kind {
            Type::S => self.json.deserialize_str(visitor),
            Type::Bool => self.json.deserialize_bool(visitor),
            Type::N => {
                let text = Cow::<str>::deserialize(self.json)?;
                match (text.parse(), text.parse()) {
                    (Ok(number), _) => visitor.visit_u64(number),
                    (_, Ok(number)) => visitor.visit_i64(number),
                    _ => visitor.visit_f64(text.parse().map_err(J::Error::custom)?),
                }
            }
            Type::B => {
                let text = Cow::<str>::deserialize(self.json)?;
                visitor.visit_byte_buf(STANDARD.decode(&*text).map_err(J::Error::custom)?)
            }
            Type::Null => {
                IgnoredAny::deserialize(self.json)?;
                visitor.visit_unit()
            }
            Type::M => self.json.deserialize_map(Unwrap { kind: None, visitor }),
            Type::L => self.json.deserialize_seq(Unwrap { kind: None, visitor }),
            Type::Ss => self.json.deserialize_seq(Unwrap { kind: Some(Type::S), visitor }),
            Type::Ns => self.json.deserialize_seq(Unwrap { kind: Some(Type::N), visitor }),
            Type::Bs => self.json.deserialize_seq(Unwrap { kind: Some(Type::B), visitor }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, J::Error> {
        match self.kind {
            Type::Null => self.deserialize_any(visitor),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, J::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, J::Error> {
        match self.kind {
            Type::M => self.json.deserialize_map(Variant(visitor)),
            _ => self.json.deserialize_enum(name, variants, visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, J::Error> {
        self.json.deserialize_ignored_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

/// Passes members and elements to the record's own visitor. With a `kind`, all of them have that type; without one,
/// each names its own type.
struct Unwrap<V> {
    kind: Option<Type>,
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Unwrap<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(formatter)
    }

    fn visit_map<A: MapAccess<'de>>(self, values: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Values { kind: self.kind, values })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(Values { kind: self.kind, values })
    }
}

/// The same for an enum with data: a map whose only key is the variant.
struct Variant<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Variant<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    fn visit_map<A: MapAccess<'de>>(self, values: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(MapAccessDeserializer::new(Values { kind: None, values }))
    }
}

struct Values<A> {
    kind: Option<Type>,
    values: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Values<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.values.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.values.next_value_seed(One { kind: self.kind, seed })
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Values<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.values.next_element_seed(One { kind: self.kind, seed })
    }
}

/// One of several values: it has a known type, or is an object whose only key is its type.
struct One<S> {
    kind: Option<Type>,
    seed: S,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for One<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<S::Value, D::Error> {
        match self.kind {
            Some(kind) => self.seed.deserialize(Typed { kind, json }),
            None => json.deserialize_map(self),
        }
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for One<S> {
    type Value = S::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an attribute value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut value: A) -> Result<S::Value, A::Error> {
        let kind = value.next_key()?.ok_or_else(|| A::Error::custom("an attribute value without a type"))?;
        let one = value.next_value_seed(One { kind: Some(kind), seed: self.seed })?;
        match value.next_key::<Type>()? {
            None => Ok(one),
            Some(_) => Err(A::Error::custom("an attribute value of two types")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde::Serialize;

    use super::*;
    use crate::table::item::{Item, from_item};
    use crate::values::bytes::Bytes;

    #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
    enum Kind {
        Plain,
        Tuple(i64, String),
        Struct { of: f64 },
    }

    #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
    struct Everything {
        text: String,
        escaped: String,
        small: u8,
        negative: i64,
        large: u64,
        fraction: f64,
        flag: bool,
        nothing: Option<String>,
        something: Option<i32>,
        bytes: Bytes,
        list: Vec<Option<u32>>,
        map: BTreeMap<String, Vec<String>>,
        words: BTreeSet<String>,
        kinds: Vec<Kind>,
        #[serde(default)]
        absent: Option<bool>,
    }

    const ITEM: &str = r#"{
        "pk": {"S": "ORG#1"}, "unknown": {"M": {"a": {"L": [{"NS": ["1"]}]}}},
        "text": {"S": "plain"}, "escaped": {"S": "a\"\u00e9\n"},
        "small": {"N": "255"}, "negative": {"N": "-9007199254740993"}, "large": {"N": "18446744073709551615"},
        "fraction": {"N": "1.5"}, "flag": {"BOOL": true}, "nothing": {"NULL": true}, "something": {"N": "-1"},
        "bytes": {"B": "AAEC/w=="},
        "list": {"L": [{"N": "1"}, {"NULL": true}]}, "map": {"M": {"a": {"L": [{"S": "b"}]}, "c": {"L": []}}},
        "words": {"SS": ["x", "y"]},
        "kinds": {"L": [{"S": "Plain"}, {"M": {"Tuple": {"L": [{"N": "1"}, {"S": "z"}]}}}, {"M": {"Struct": {"M": {"of": {"N": "2"}}}}}]}
    }"#;

    /// The value that the SDK makes of `json`.
    fn attribute(json: &serde_json::Value) -> aws_sdk_dynamodb::types::AttributeValue {
        use aws_sdk_dynamodb::types::AttributeValue::{B, Bool, L, M, N, Null, S, Ss};
        let (kind, value) = json.as_object().unwrap().iter().next().unwrap();
        let text = || value.as_str().unwrap().to_owned();
        let list = || value.as_array().unwrap();
        match kind.as_str() {
            "S" => S(text()),
            "N" => N(text()),
            "B" => B(STANDARD.decode(text()).unwrap().into()),
            "BOOL" => Bool(value.as_bool().unwrap()),
            "M" => M(item(value)),
            "L" => L(list().iter().map(attribute).collect()),
            "SS" => Ss(list().iter().map(|word| word.as_str().unwrap().to_owned()).collect()),
            // `NULL`, and the sets that this record does not read.
            _ => Null(true),
        }
    }

    fn item(json: &serde_json::Value) -> Item {
        json.as_object().unwrap().iter().map(|(name, value)| (name.clone(), attribute(value))).collect()
    }

    #[test]
    fn a_record_is_read_from_the_wire_as_from_an_item() {
        let Record(read) = serde_json::from_str::<Record<Everything>>(ITEM).unwrap();
        assert_eq!(read, from_item(item(&serde_json::from_str(ITEM).unwrap())).unwrap());
        assert_eq!((read.escaped.as_str(), read.negative, read.large), ("a\"é\n", -9_007_199_254_740_993, u64::MAX));
        assert_eq!((read.nothing, read.something, read.absent), (None, Some(-1), None));
        assert_eq!(read.kinds, [Kind::Plain, Kind::Tuple(1, "z".into()), Kind::Struct { of: 2.0 }]);
    }

    #[test]
    fn sets_of_numbers_and_bytes_are_read() {
        let Record(read) =
            serde_json::from_str::<Record<BTreeMap<String, BTreeSet<i64>>>>(r#"{"a": {"NS": ["2", "-1"]}}"#).unwrap();
        assert_eq!(read["a"], BTreeSet::from([-1, 2]));
        let Record(read) =
            serde_json::from_str::<Record<BTreeMap<String, Vec<Bytes>>>>(r#"{"a": {"BS": ["AA==", "/w=="]}}"#).unwrap();
        assert_eq!(read["a"].iter().map(Bytes::expose).collect::<Vec<_>>(), [[0], [255]]);
    }

    #[test]
    fn an_invalid_attribute_value_is_an_error() {
        for json in [
            r#"{"a": {}}"#,
            r#"{"a": {"S": "x", "N": "1"}}"#,
            r#"{"a": {"X": "x"}}"#,
            r#"{"a": "x"}"#,
            r#"{"a": {"S": 1}}"#,
            "[]",
        ] {
            assert!(serde_json::from_str::<Record<BTreeMap<String, String>>>(json).is_err(), "{json}");
        }
        for json in [r#"{"a": {"N": "x"}}"#, r#"{"a": {"N": "256"}}"#, r#"{"a": {"S": "1"}}"#] {
            assert!(serde_json::from_str::<Record<BTreeMap<String, u8>>>(json).is_err(), "{json}");
        }
    }
}
