//! CloudWatch's filter patterns for JSON log lines, as far as the template's metric filters use them.
//!
//! `{ ($.a.b = "x" || $.c != 3) && $.d = "y" }`: fields, strings in quotes, numbers, `=`, `!=`, `&&`, `||` and parentheses. `&&` binds
//! closer than `||`. A comparison of a field that a line does not have is false, `!=` included.

use serde_json::{Number, Value};

use crate::Trouble;

/// A filter pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// One of them is true.
    Any(Vec<Pattern>),
    /// All of them are true.
    All(Vec<Pattern>),
    /// A field is equal to a value, or is not.
    Field {
        /// The field and those around it, outermost first.
        path: Vec<String>,
        /// Whether it must be equal.
        equal: bool,
        /// A string or a number.
        value: Value,
    },
}

impl Pattern {
    /// Reads `text`.
    ///
    /// # Errors
    /// [`Trouble`] names what is not supported here. CloudWatch supports more.
    pub fn parse(text: &str) -> Result<Self, Trouble> {
        let unknown = || Trouble(format!("a filter pattern that is not known here: {text}"));
        let mut rest = Rest { tokens: tokens(text).ok_or_else(unknown)?, next: 0 };
        let inside = if rest.take("{") { rest.any() } else { None };
        let closed = rest.take("}") && rest.next == rest.tokens.len();
        inside.filter(|_| closed).ok_or_else(unknown)
    }

    /// Whether `line` matches. One that is no JSON does not.
    pub fn matches(&self, line: &str) -> bool {
        serde_json::from_str(line).is_ok_and(|line| self.holds(&line))
    }

    fn holds(&self, line: &Value) -> bool {
        match self {
            Self::Any(parts) => parts.iter().any(|part| part.holds(line)),
            Self::All(parts) => parts.iter().all(|part| part.holds(line)),
            Self::Field { path, equal, value } => {
                let field = path.iter().try_fold(line, |value, name| value.get(name));
                field.is_some_and(|field| same(field, value) == *equal)
            }
        }
    }
}

/// A number is the same however it is written: `3` and `3.0`.
fn same(field: &Value, value: &Value) -> bool {
    match (field.as_f64(), value.as_f64()) {
        (Some(field), Some(value)) => field.total_cmp(&value).is_eq(),
        _ => field == value,
    }
}

/// The tokens of a pattern, and how many of them are read.
struct Rest {
    tokens: Vec<String>,
    next: usize,
}

impl Rest {
    fn token(&mut self) -> Option<String> {
        self.next += 1;
        self.tokens.get(self.next - 1).cloned()
    }

    /// Reads `token`, if it is the next one.
    fn take(&mut self, token: &str) -> bool {
        let is_next = self.tokens.get(self.next).is_some_and(|next| next == token);
        self.next += usize::from(is_next);
        is_next
    }

    fn any(&mut self) -> Option<Pattern> {
        let mut parts = vec![self.all()?];
        while self.take("||") {
            parts.push(self.all()?);
        }
        Some(Pattern::Any(parts))
    }

    fn all(&mut self) -> Option<Pattern> {
        let mut parts = vec![self.part()?];
        while self.take("&&") {
            parts.push(self.part()?);
        }
        Some(Pattern::All(parts))
    }

    fn part(&mut self) -> Option<Pattern> {
        if self.take("(") {
            let inside = self.any()?;
            return self.take(")").then_some(inside);
        }
        let path = self.token()?.strip_prefix("$.")?.split('.').map(str::to_owned).collect();
        let equal = self.take("=");
        if !equal && !self.take("!=") {
            return None;
        }
        let value = self.token()?;
        let value = match value.strip_prefix('"') {
            Some(string) => Value::from(string),
            None => Value::from(value.parse::<Number>().ok()?),
        };
        Some(Pattern::Field { path, equal, value })
    }
}

/// The words and signs of a pattern; a string keeps its first quote. None where a string does not end, or has an asterisk or a
/// backslash, which mean something to CloudWatch.
fn tokens(text: &str) -> Option<Vec<String>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' {
            rest.get(1..)?.find('"')? + 2
        } else if let Some(sign) = ["&&", "||", "!="].into_iter().find(|sign| rest.starts_with(sign)) {
            sign.len()
        } else if "{}()=".contains(first) {
            1
        } else {
            rest.find(|character: char| character.is_whitespace() || "{}()=!&|\"".contains(character))
                .unwrap_or(rest.len())
                .max(1)
        };
        let token = rest.get(..length)?;
        if first == '"' && token.contains(['*', '\\']) {
            return None;
        }
        // Without the last quote.
        let kept = if first == '"' { length - 1 } else { length };
        tokens.push(token.get(..kept)?.to_owned());
        rest = rest.get(length..)?.trim_start();
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_says_which_lines_match() {
        let pattern = Pattern::parse(r#"{ ($.type = "a b" && $.in.state != "ok") || $.status = 500 }"#).unwrap();
        for (line, wanted) in [
            (r#"{"type":"a b","in":{"state":"bad"}}"#, true),
            (r#"{"type":"a b","in":{"state":"ok"}}"#, false),
            (r#"{"type":"a","in":{"state":"bad"}}"#, false),
            // A missing field is not different from a value.
            (r#"{"type":"a b"}"#, false),
            (r#"{"status":500}"#, true),
            (r#"{"status":500.0}"#, true),
            (r#"{"status":"500"}"#, false),
            (r#"{"status":404}"#, false),
            ("status 500", false),
        ] {
            assert_eq!(pattern.matches(line), wanted, "{line}");
        }
    }

    #[test]
    fn and_binds_closer_than_or() {
        let pattern = Pattern::parse("{$.a=1||$.b=1&&$.c=1}").unwrap();
        assert!(pattern.matches(r#"{"a":1}"#) && pattern.matches(r#"{"b":1,"c":1}"#));
        assert!(!pattern.matches(r#"{"b":1}"#));
        let pattern = Pattern::parse(r#"{ $.a = "" }"#).unwrap();
        assert!(pattern.matches(r#"{"a":""}"#) && !pattern.matches(r#"{"a":"\""}"#));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for text in [
            "",
            "ERROR",
            "{ $.a = 1",
            "{ $.a = 1 } x",
            "{ a = 1 }",
            "{ $.a > 1 }",
            "{ $.a = x }",
            "{ $.a = \"x }",
            "{ $.a = \"x*\" }",
            "{ $.a IS NULL }",
            "{ ($.a = 1 }",
            "{ }",
        ] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }
}
