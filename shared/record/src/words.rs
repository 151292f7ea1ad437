//! The words that stand before a field: its role, and its mark.

use proc_macro2::TokenTree;
use syn::Ident;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Result};

use crate::mistakes::Mistakes;

/// The role of a field: who sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleWord {
    Input,
    Fixed,
    Later,
    Org,
    Parent,
    Own,
    Hidden,
    Derived,
    Created,
    Updated,
}

/// The mark of a field: a rule for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    Filter,
    SparseFilter,
    Unique,
    UniqueFilter,
    Dates,
    Address,
    Masks,
    Sealed,
}

impl RoleWord {
    const ALL: [Self; 10] = [
        Self::Input,
        Self::Fixed,
        Self::Later,
        Self::Org,
        Self::Parent,
        Self::Own,
        Self::Hidden,
        Self::Derived,
        Self::Created,
        Self::Updated,
    ];

    /// The word itself.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Fixed => "fixed",
            Self::Later => "later",
            Self::Org => "org",
            Self::Parent => "parent",
            Self::Own => "own",
            Self::Hidden => "hidden",
            Self::Derived => "derived",
            Self::Created => "created",
            Self::Updated => "updated",
        }
    }

    /// Whether the body of an update may have the field.
    pub const fn is_changed(self) -> bool {
        matches!(self, Self::Input | Self::Later)
    }

    /// Whether a caller may send the field.
    pub const fn is_sent(self) -> bool {
        matches!(self, Self::Input | Self::Fixed | Self::Later | Self::Org | Self::Parent)
    }

    /// Reads one, with its token. `None` after a mistake.
    pub fn parse(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Option<(Self, Ident)>> {
        let token = input.call(Ident::parse_any)?;
        let role = Self::ALL.into_iter().find(|role| token == role.word());
        if role.is_none() {
            mistakes.add(&token, format!("no role is called `{token}`: the roles are {}", words(&Self::ALL)));
        }
        Ok(role.map(|role| (role, token)))
    }
}

/// The words of `roles`, as a message has them.
pub fn words(roles: &[RoleWord]) -> String {
    let words: Vec<String> = roles.iter().map(|role| format!("`{}`", role.word())).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => words.concat(),
    }
}

impl Mark {
    /// The roles that may have it.
    pub const fn roles(&self) -> &'static [RoleWord] {
        match self {
            Self::Dates => &[RoleWord::Created],
            Self::Sealed => &[RoleWord::Hidden],
            // An update has to be able to set it, and to be refused.
            Self::Address => &[RoleWord::Input, RoleWord::Later],
            Self::Filter | Self::SparseFilter | Self::Unique | Self::UniqueFilter | Self::Masks => {
                &[RoleWord::Input, RoleWord::Fixed, RoleWord::Later, RoleWord::Own]
            }
        }
    }

    /// Whether lists can be filtered by the field.
    pub const fn is_filter(&self) -> bool {
        matches!(self, Self::Filter | Self::SparseFilter)
    }

    /// Whether no two records of a list have the same value.
    pub const fn is_unique(&self) -> bool {
        matches!(self, Self::Unique | Self::UniqueFilter)
    }

    /// Reads the words between the parentheses, with the first token. `None` after a mistake.
    pub fn parse(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Option<(Self, Ident)>> {
        let token =
            input.call(Ident::parse_any).map_err(|error| syn::Error::new(error.span(), marks("a mark is missing")))?;
        let mark = Self::named(&token, input);
        if mark.is_none() {
            mistakes.add(&token, unknown(&token));
        }
        if let (Some(_), Ok(further)) = (&mark, input.parse::<TokenTree>()) {
            mistakes.add(further, marks("a field has one mark"));
        }
        Ok(mark.map(|mark| (mark, token)))
    }

    /// The mark that begins with `token` and goes on in `input`.
    fn named(token: &Ident, input: ParseStream<'_>) -> Option<Self> {
        let is_filter = |input: ParseStream<'_>| -> bool {
            let is = input.fork().call(Ident::parse_any).is_ok_and(|next| next == "filter");
            is && input.call(Ident::parse_any).is_ok()
        };
        match token.to_string().as_str() {
            "filter" => Some(Self::Filter),
            "sparse" => is_filter(input).then_some(Self::SparseFilter),
            "unique" if is_filter(input) => Some(Self::UniqueFilter),
            "unique" => Some(Self::Unique),
            "dates" => Some(Self::Dates),
            "address" => Some(Self::Address),
            "masks" => Some(Self::Masks),
            "sealed" => Some(Self::Sealed),
            _ => None,
        }
    }
}

/// Why no mark begins with `token`.
fn unknown(token: &Ident) -> String {
    match token.to_string().as_str() {
        "sparse" => "`sparse` stands before `filter`: `(sparse filter)`".to_owned(),
        other => marks(&format!("no mark is called `{other}`")),
    }
}

/// `message`, with all marks.
fn marks(message: &str) -> String {
    format!(
        "{message}: the marks are `filter`, `sparse filter`, `unique`, `unique filter`, `dates`, `address`, `masks` and `sealed`"
    )
}
