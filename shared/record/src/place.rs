//! The place of a record: its list.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Result};
use syn::{Ident, LitStr, Path, Token, parenthesized};

use crate::mistakes::Mistakes;

const LISTS: &str =
    "a list is `listed(\"LIST\")`, `listed(\"LIST\" of Id => Record)` or `listed(\"LIST\" within Id => Record)`";

const OPTIONS: &str = "behind the list may follow `spread`, then `, pointers FUNCTION`, `, due FUNCTION`, `, terms FUNCTION`, `, counted FUNCTION` and `, shown FUNCTION`; behind `within` only the last three do";

/// The place of a record.
pub struct ListPlace {
    /// The name of the list.
    pub list: LitStr,
    /// Whose list it is.
    pub owner: ListOwner,
    /// Whether the list lies in several partitions.
    pub spread: bool,
    /// The function that returns the pointers of a record.
    pub pointers: Option<Path>,
    /// The function that returns the partition of a record in the index of what becomes due.
    pub due: Option<Path>,
    /// The function that returns the filters that a record matches beside those of its fields.
    pub terms: Option<Path>,
    /// The function that returns what a record uses of the quotas of its organisation.
    pub counted: Option<Path>,
    /// The function that makes a record what an answer shows.
    pub shown: Option<Path>,
}

/// Whose list it is.
pub enum ListOwner {
    /// The organisation's.
    Organisation,
    /// That of the record with an `id`. A path names both.
    Of { id: Ident, parent: Option<Ident> },
    /// That of a `parent`, whose ordinal is in the id of the record.
    Within { id: Ident, parent: Ident },
}

impl ListPlace {
    /// Reads one, as far as it is right.
    pub fn parse(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Self> {
        let word = input.call(Ident::parse_any)?;
        if word != "listed" {
            mistakes.add(&word, format!("no place is called `{word}`: {LISTS}"));
        }
        let content;
        parenthesized!(content in input);
        let list =
            content.parse().map_err(|error| syn::Error::new(error.span(), format!("a list has a name: {LISTS}")));
        let place = list.and_then(|list| Self::of(list, &content, mistakes));
        // Unread tokens would be one more error.
        content.parse::<TokenStream>()?;
        place
    }

    /// The place in `list`, of which `input` says the rest.
    fn of(list: LitStr, input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Self> {
        let owner = ListOwner::parse(input)?;
        let (pointers, due, terms, counted, shown) = (None, None, None, None, None);
        let mut place = Self { list, owner, spread: false, pointers, due, terms, counted, shown };
        // The id of a record within another one has no room for more.
        if !matches!(place.owner, ListOwner::Within { .. }) {
            place.spread = taken(input, "spread")?;
            place.pointers = option(input, "pointers")?;
            place.due = option(input, "due")?;
        }
        place.terms = option(input, "terms")?;
        place.counted = option(input, "counted")?;
        place.shown = option(input, "shown")?;
        if let Ok(further) = input.parse::<TokenTree>() {
            // Behind a comma it is the word that is wrong.
            let is_comma = matches!(&further, TokenTree::Punct(punct) if punct.as_char() == ',');
            let further = if is_comma { input.parse().unwrap_or(further) } else { further };
            mistakes.add(&further, format!("`{further}` is not expected here: {LISTS}; {OPTIONS}"));
        }
        Ok(place)
    }
}

impl ListOwner {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if taken(input, "of")? {
            let id = input.parse()?;
            let parent = if input.peek(Token![=>]) { Some(parent(input)?) } else { None };
            return Ok(Self::Of { id, parent });
        }
        if taken(input, "within")? {
            return Ok(Self::Within { id: input.parse()?, parent: parent(input)? });
        }
        Ok(Self::Organisation)
    }
}

/// Reads `=> Record`.
fn parent(input: ParseStream<'_>) -> Result<Ident> {
    input.parse::<Token![=>]>()?;
    input.parse()
}

/// Reads `word`, if it comes next.
fn taken(input: ParseStream<'_>, word: &str) -> Result<bool> {
    let is_next = input.fork().call(Ident::parse_any).is_ok_and(|next| next == word);
    if is_next {
        input.call(Ident::parse_any)?;
    }
    Ok(is_next)
}

/// Reads `, word function`, if it comes next.
fn option(input: ParseStream<'_>, word: &str) -> Result<Option<Path>> {
    let ahead = input.fork();
    if ahead.parse::<Token![,]>().is_err() || !taken(&ahead, word)? {
        return Ok(None);
    }
    input.parse::<Token![,]>()?;
    taken(input, word)?;
    input.parse().map(Some)
}
