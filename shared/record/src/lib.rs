//! The macro `record!`, which declares a record. `shared::table::declaration` describes its roles, its marks and its places.
//!
//! `parse` reads a declaration, `check` looks for mistakes, and `expand` writes the code of the record. Each mistake is an error of the
//! compiler at its token, and all of them are reported at once.

#![warn(missing_docs)]

mod check;
mod expand;
mod mistakes;
mod parse;
mod place;
mod words;

use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser as _};

use crate::mistakes::Mistakes;
use crate::parse::Declaration;

/// Declares a record: see `shared::table::declaration`.
#[proc_macro]
pub fn record(declaration: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let (code, mistakes) = expanded(declaration.into());
    let errors = mistakes.into_errors();
    quote::quote! { #errors #code }.into()
}

/// The code of the declared record, and the mistakes in its declaration. The fields without a mistake are expanded too: without them the compiler
/// would report one more error for each use of the record.
fn expanded(declaration: TokenStream) -> (TokenStream, Mistakes) {
    let mut mistakes = Mistakes::default();
    let parsed = (|input: ParseStream<'_>| Declaration::parse(input, &mut mistakes)).parse2(declaration);
    let code = match parsed {
        Ok(mut declaration) => {
            check::check(&mut declaration, &mut mistakes);
            expand::record(&declaration)
        }
        Err(error) => {
            mistakes.syntax(error);
            TokenStream::new()
        }
    };
    (code, mistakes)
}

#[cfg(test)]
mod tests {
    use super::expanded;

    /// The code that a declaration expands to, and its mistakes: token and message.
    fn declared(declaration: &str) -> (String, Vec<(String, String)>) {
        let (code, mistakes) = expanded(declaration.parse().unwrap());
        let mistakes = mistakes.0.into_iter().map(|mistake| (mistake.token, mistake.error.to_string()));
        (code.to_string(), mistakes.collect())
    }

    /// A record with these `fields`, in the place `place`.
    fn record(place: &str, fields: &str) -> String {
        format!("/// A note.\npub struct Note(NoteId): {place} {{ {fields} }}")
    }

    /// The one mistake of `declaration`.
    fn mistake(declaration: &str) -> (String, String) {
        let (_, mut mistakes) = declared(declaration);
        assert_eq!(mistakes.len(), 1, "{declaration}: {mistakes:?}");
        mistakes.remove(0)
    }

    /// Fields with one mistake: its token, and what its message says.
    const FIELDS: [(&str, &str, &str); 31] = [
        ("inpt title: String,", "inpt", "no role is called `inpt`: the roles are `input`, `fixed`, `later`, `org`,"),
        ("pub title: String,", "pub", "no role is called `pub`: the roles are"),
        ("input(filtr) title: String,", "filtr", "no mark is called `filtr`: the marks are `filter`, `sparse filter`,"),
        ("input(sparse) title: String,", "sparse", "`sparse` stands before `filter`"),
        ("input(sparse unique) title: String,", "sparse", "`sparse` stands before `filter`"),
        ("input(masks key) title: JsonObject,", "key", "a field has one mark: the marks are"),
        ("input(filter unique) title: String,", "unique", "a field has one mark: the marks are"),
        ("input(filter, unique) title: String,", ",", "a field has one mark: the marks are"),
        ("input(dates) at: Timestamp,", "dates", "the role `input` does not take this mark: it is for `created`"),
        ("updated(dates) at: Timestamp,", "dates", "the role `updated` does not take this mark: it is for `created`"),
        ("created(filter) at: Timestamp,", "filter", "it is for `input`, `fixed`, `later` and `own`"),
        ("hidden(unique) title: String = String::new(),", "unique", "it is for `input`, `fixed`, `later` and `own`"),
        ("org(filter) org_id: OrgId,", "filter", "the role `org` does not take this mark"),
        ("fixed(address) url: String,", "address", "it is for `input` and `later`"),
        ("hidden(masks) title: JsonObject = JsonObject::default(),", "masks", "the role `hidden` does not take"),
        ("later title: String,", "title", "a field with the role `later` needs a default, such as `= None`"),
        ("input text: String, own title: String,", "title", "a field with the role `own` needs a default"),
        ("org org_id: OrgId, hidden title: Option<String>,", "title", "a field with the role `hidden` needs a default"),
        (
            "org org_id: OrgId = OrgId(nil),",
            "OrgId (nil)",
            "has no default: its value is the organisation of the caller",
        ),
        ("created one: Timestamp, created two: Timestamp,", "created", "another field is `created` already"),
        ("updated one: Timestamp, updated two: Timestamp,", "updated", "another field is `updated` already"),
        ("org one: OrgId, org two: OrgId,", "org", "another field is `org` already"),
        ("derived(filter) title: String = Note::title,", "filter", "the role `derived` does not take this mark"),
        ("derived title: String,", "title", "the role `derived` needs the function that makes it"),
        ("input id: String,", "id", "a field may not be called `id`"),
        ("input version: u64,", "version", "a field may not be called `version`"),
        ("own changed_by: u64 = 0,", "changed_by", "a field may not be called `changed_by`"),
        ("input title: String, fixed r#title: String,", "r#title", "the record has a field `title` already"),
        (
            "#[serde(skip)] input title: String,",
            "# [serde (skip)]",
            "a declaration has documentation, and no other attribute",
        ),
        ("parent agency_id: AgencyId,", "parent", "the role `parent` needs a list of the parent"),
        ("input() title: String,", "", "a mark is missing: the marks are"),
    ];

    #[test]
    fn a_mistake_in_a_field_is_reported_at_its_token() {
        for (fields, token, message) in FIELDS {
            let (at, says) = mistake(&record("listed(\"NOTE\")", fields));
            assert_eq!(at, token, "{fields}: {says}");
            assert!(says.contains(message), "{fields}: {says}");
        }
        let parent = record("listed(\"NOTE\" of AgencyId => Agency)", "parent agency_id: AgencyId = AgencyId(nil),");
        let (at, says) = mistake(&parent);
        assert_eq!(at, "AgencyId (nil)");
        assert!(says.contains("has no default: its value is the record that the path names"), "{says}");
    }

    /// Places with one mistake: its token, and what its message says.
    const PLACES: [(&str, &str, &str); 10] = [
        ("single(\"NOTE\")", "single", "no place is called `single`: a list is `listed(\"LIST\")`"),
        ("listed()", "", "a list has a name: a list is `listed(\"LIST\")`"),
        ("listed(NOTE)", "", "a list has a name"),
        ("listed(\"NOTE\" spred)", "spred", "`spred` is not expected here: a list is"),
        ("listed(\"NOTE\" off AgencyId => Agency)", "off", "`off` is not expected here"),
        ("listed(\"NOTE\", pointer Note::pointer)", "pointer", "behind the list may follow `spread`"),
        ("listed(\"NOTE\", due Note::due, pointers Note::pointer)", "pointers", "`pointers` is not expected here"),
        ("listed(\"NOTE\" within AgencyId => Agency spread)", "spread", "behind `within` only the last three do"),
        ("listed(\"NOTE\" within AgencyId)", "", "expected `=>`"),
        ("listed(\"NOTE\" of)", "", "expected identifier"),
    ];

    #[test]
    fn a_mistake_in_the_place_is_reported_at_its_token() {
        for (place, token, message) in PLACES {
            let (at, says) = mistake(&record(place, "input title: String,"));
            assert_eq!(at, token, "{place}: {says}");
            assert!(says.contains(message), "{place}: {says}");
        }
    }

    #[test]
    fn all_mistakes_are_reported_at_once_and_the_rest_is_expanded() {
        let fields = "
            /// One.
            inpt one: String,
            /// Two.
            input two String,
            /// Three.
            input(dates) three: BTreeMap<String, String>,
            /// Four.
            input four: BTreeMap<String, >>,
            /// Five.
            own five: u64,
            /// Six.
            input six: String,
        ";
        let (code, mistakes) = declared(&record("listed(\"NOTE\" spred)", fields));
        let tokens: Vec<_> = mistakes.iter().map(|(token, _)| token.as_str()).collect();
        assert_eq!(tokens, ["spred", "inpt", "", "", "dates", "five"], "{mistakes:?}");
        for (name, is_there) in [("one", false), ("two", false), ("three", true), ("four", false), ("six", true)] {
            assert_eq!(code.contains(&format!("pub {name} :")), is_there, "{name}");
        }
    }

    #[test]
    fn an_input_other_than_a_record_is_refused() {
        for declaration in
            ["", "pub enum Note {}", "pub struct Note(NoteId) {}", "pub struct Note(NoteId): listed(\"NOTE\")"]
        {
            let (token, _) = mistake(declaration);
            assert_eq!(token, "", "{declaration}");
        }
    }

    #[test]
    fn every_role_mark_and_place_is_read() {
        let fields = "
            /// A title,
            /// in two lines.
            input title: String,
            input(filter) kind: Kind = Kind::Plain,
            input(sparse filter) tag_id: Option<TagId> = None => Tag,
            fixed(unique) code: BTreeMap<String, u64>,
            fixed(unique filter) email: Email => Person,
            input(masks) settings: JsonObject = JsonObject::default(),
            later(address) url: Option<String> = None,
            input r#type: u64 = 1 + 1,
            org org_id: OrgId,
            parent agency_id: AgencyId,
            own count: u64 = 0,
            hidden secret: Option<String> = None,
            derived length: u64 = Note::length,
            created(dates) created_at: Timestamp = Timestamp::from_unix_millis(0),
            updated updated_at: Timestamp,
        ";
        for place in [
            "listed(\"NOTE\" of AgencyId => Agency)",
            "listed(\"NOTE\" of AgencyId => Agency spread, pointers Self::pointers, due Note::due)",
            "listed(\"NOTE\" of AgencyId, due Note::due, terms Note::terms, counted Note::uses, shown Note::shown)",
            "listed(\"NOTE\" within AgencyId => Agency)",
        ] {
            let (code, mistakes) = declared(&record(place, fields));
            assert!(mistakes.is_empty(), "{place}: {mistakes:?}");
            syn::parse_str::<syn::File>(&code).unwrap();
            assert!(code.contains("\" A title, in two lines.\"") && code.contains("\"type\""), "{code}");
        }
        for place in ["listed(\"NOTE\")", "listed(\"NOTE\" spread)", "listed(\"NOTE\", pointers Note::pointers)"] {
            assert_eq!(declared(&record(place, "")).1, []);
        }
    }

    /// A record of which a caller sends nothing, and that code makes: no body can.
    #[test]
    fn a_record_that_no_body_makes_cannot_be_created_by_one() {
        let (code, mistakes) = declared(&record("listed(\"NOTE\")", "own event: Event, created made_at: Timestamp,"));
        assert_eq!(mistakes, []);
        assert!(!code.contains("MadeOfBody"));
        let (code, _) = declared(&record("listed(\"NOTE\")", "own event: Event = Event::Test,"));
        assert!(code.contains("MadeOfBody"));
    }
}
