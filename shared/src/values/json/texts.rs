//! The texts of a JSON value, each with its place. One pass over the JSON finds them at any depth.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::iter::from_fn;
use std::ops::Range;

use crate::values::mask;

/// A text in a JSON value.
pub(super) struct JsonText {
    /// Where it stands in the JSON, with its quotes.
    pub range: Range<usize>,
    /// The text; `None` if it has half of a surrogate pair.
    pub text: Option<String>,
    /// The names and indexes on the way to it, as one number.
    pub place: u64,
    /// Whether its own name, or the name of an object or array around it, is that of a secret.
    pub is_named_secret: bool,
}

impl JsonText {
    /// Whether it is a secret.
    pub fn is_secret(&self) -> bool {
        self.is_named_secret || self.text.as_deref().is_some_and(mask::has_secret_form)
    }

    /// The form in which it may be shown, if it is a secret.
    pub fn mask(&self) -> String {
        self.text.as_deref().map_or(mask::MASK.into(), mask::mask).into_owned()
    }
}

/// A value on the way to a text.
#[derive(Clone, Copy, Default)]
struct Value {
    place: u64,
    is_named_secret: bool,
}

impl Value {
    /// The member or the item of this value that `step` leads to.
    fn inner(self, step: impl Hash, is_named_secret: bool) -> Self {
        let mut hasher = DefaultHasher::new();
        (self.place, step).hash(&mut hasher);
        Self { place: hasher.finish(), is_named_secret: self.is_named_secret || is_named_secret }
    }
}

/// An object or an array that is not closed yet.
struct Open {
    whole: Value,
    /// The member or the item that comes next. `None` before the name of a member.
    next: Option<Value>,
    /// The index of the item that comes next. `None` in an object.
    index: Option<usize>,
}

/// The texts in `json`, which is known to be JSON. Names of members are no texts.
pub(super) fn texts(json: &str) -> impl Iterator<Item = JsonText> + '_ {
    let (mut open, mut at) = (Vec::<Open>::new(), 0);
    from_fn(move || {
        while let Some(byte) = json.as_bytes().get(at) {
            let start = at;
            at = if *byte == b'"' { end_of_string(json, start) } else { start + 1 };
            let value = open.last().map_or(Some(Value::default()), |open| open.next);
            match (byte, value) {
                (b'"', Some(Value { place, is_named_secret })) => {
                    let text = serde_json::from_str(&json[start..at]).ok();
                    return Some(JsonText { range: start..at, text, place, is_named_secret });
                }
                (b'"', None) => {
                    let name: String = serde_json::from_str(&json[start..at]).unwrap_or_default();
                    let member = |open: &mut Open| open.whole.inner(&name, mask::is_secret_name(&name));
                    open.last_mut().into_iter().for_each(|open| open.next = Some(member(open)));
                }
                (b'{', _) => open.push(Open { whole: value.unwrap_or_default(), next: None, index: None }),
                (b'[', _) => {
                    let whole = value.unwrap_or_default();
                    open.push(Open { whole, next: Some(whole.inner(0, false)), index: Some(0) });
                }
                (b'}' | b']', _) => drop(open.pop()),
                (b',', _) => open.last_mut().into_iter().for_each(Open::advance),
                _ => {}
            }
        }
        None
    })
}

impl Open {
    /// Goes on to the next member or item.
    fn advance(&mut self) {
        self.index = self.index.map(|index| index + 1);
        self.next = self.index.map(|index| self.whole.inner(index, false));
    }
}

/// The end of the string that begins at `start`, behind its last quote.
pub(super) fn end_of_string(json: &str, start: usize) -> usize {
    let (mut at, bytes) = (start + 1, json.as_bytes());
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}
