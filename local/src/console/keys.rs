//! What the keys of the table mean, from the page about them, `docs/TABLE.md`.

use std::sync::LazyLock;

use maud::{Markup, html};
use regex_automata::meta::Regex;

static CHART: LazyLock<KeyChart> = LazyLock::new(|| {
    let page = std::fs::read_to_string(repository::root().join("docs/TABLE.md"));
    KeyChart::read(&page.unwrap_or_default())
});

/// The page about the keys.
#[derive(Debug, Default)]
struct KeyChart {
    forms: Vec<KeyForm>,
    /// The name of each list in keys, and its record.
    lists: Vec<(String, String)>,
    /// The meaning of each placeholder that is not an id.
    placeholders: Vec<(String, String)>,
}

/// A form of the keys of an organisation.
#[derive(Debug)]
pub struct KeyForm {
    /// The partition key, without the organisation.
    pub pk: String,
    /// The sort key.
    pub sk: String,
    /// What an item with such a key is.
    pub item: String,
    matches: (Regex, Regex),
}

impl KeyChart {
    fn read(page: &str) -> Self {
        let mut chart = Self::default();
        let mut section = "";
        for line in page.lines() {
            section = line.strip_prefix("## ").unwrap_or(section);
            let cells: Vec<_> = line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
            let is_row = line.starts_with("| `");
            match (section, cells.as_slice()) {
                ("Items of an organisation", [pk, sk, item, ..]) if is_row => {
                    chart.forms.extend(KeyForm::new(pk, sk, item));
                }
                ("The lists", [name, record, ..]) if is_row => {
                    chart.lists.push(((*name).to_owned(), (*record).to_owned()));
                }
                ("Placeholders", _) => {
                    let Some((names, meaning)) = line.strip_prefix("- ").and_then(|line| line.split_once(": ")) else {
                        continue;
                    };
                    let names = names.split(", ").map(|name| name.trim_matches('`').to_owned());
                    chart.placeholders.extend(names.map(|name| (name, meaning.replace('`', ""))));
                }
                _ => {}
            }
        }
        chart
    }
}

impl KeyForm {
    fn new(pk: &str, sk: &str, item: &str) -> Option<Self> {
        let matches = (Regex::new(&pattern(pk)).ok()?, Regex::new(&pattern(sk)).ok()?);
        Some(Self { pk: pk.to_owned(), sk: sk.to_owned(), item: item.to_owned(), matches })
    }

    /// How many characters of the form are no placeholder.
    fn literal(&self) -> usize {
        let mut depth = 0;
        let counted = self.pk.chars().chain(self.sk.chars()).filter(|character| {
            depth += i32::from(*character == '<');
            let counts = depth == 0;
            depth -= i32::from(*character == '>');
            counts
        });
        counted.count()
    }

    /// The placeholders of the form, and what stands in their place.
    fn placeholders(&self) -> Vec<(&str, &'static str)> {
        let mut meanings: Vec<(&str, &'static str)> = Vec::new();
        for name in placeholders_of(&self.pk).chain(placeholders_of(&self.sk)) {
            let meaning = CHART.placeholders.iter().find(|(known, _)| known == name);
            let meaning = meaning.map_or("an id", |(_, meaning)| meaning.as_str());
            if !meanings.iter().any(|(known, _)| *known == name) {
                meanings.push((name, meaning));
            }
        }
        meanings
    }
}

/// The placeholders in a form, with their brackets.
fn placeholders_of(form: &str) -> impl Iterator<Item = &str> {
    form.split_inclusive('>').filter_map(|part| part.find('<').map(|begin| &part[begin..]))
}

/// The pattern of the keys of a form. A list and the terms of a set have several parts.
fn pattern(form: &str) -> String {
    let mut pattern = regex_syntax::escape(form);
    for name in placeholders_of(form) {
        let is_long = ["<list>", "<terms>", "<values>"].contains(&name);
        pattern = pattern.replacen(&regex_syntax::escape(name), if is_long { ".*" } else { "[^#]*" }, 1);
    }
    format!("^{pattern}$")
}

/// The form of a key: of several that match, the one that says most. `pk` is without the organisation.
pub fn form_of(pk: &str, sk: &str) -> Option<&'static KeyForm> {
    let matching = CHART.forms.iter().filter(|form| form.matches.0.is_match(pk) && form.matches.1.is_match(sk));
    matching.max_by_key(|form| form.literal())
}

/// The form of the keys of a partition, and what its items are. `pk` is without the organisation.
pub fn partition_form(pk: &str) -> Option<(&'static str, String)> {
    let matching = CHART.forms.iter().filter(|form| form.matches.0.is_match(pk));
    let form = matching.max_by_key(|form| form.literal())?;
    let items: Vec<_> = CHART.forms.iter().filter(|one| one.pk == form.pk).map(|one| one.item.as_str()).collect();
    Some((&form.pk, items.join("; ")))
}

/// The record or purpose to which the items of a partition belong. `pk` is without the organisation.
pub fn group_of(pk: &str) -> String {
    let of_list = ["LIST#", "SET#", "UNIQUE#"].into_iter().find_map(|start| pk.strip_prefix(start));
    let name = of_list.unwrap_or(pk).split('#').next().unwrap_or_default();
    let record = CHART.lists.iter().find(|(list, _)| list.split('#').next() == Some(name) && of_list.is_some());
    let spaced = |record: &str| -> String {
        let letters = record.chars().enumerate();
        letters
            .flat_map(|(place, letter)| (place > 0 && letter.is_uppercase()).then_some(' ').into_iter().chain([letter]))
            .collect()
    };
    record.map_or_else(|| name.replace('_', " "), |(_, record)| spaced(record)).to_lowercase()
}

/// A key, with what it means when it is pointed at or has the focus.
pub fn explained(id: &str, pk: &str, sk: &str, shown: &str) -> Markup {
    let form = form_of(pk, sk);
    html! {
        span.explained {
            code tabindex="0" aria-describedby=(id) { (shown) }
            span.tip role="tooltip" id=(id) {
                @match form {
                    Some(form) => {
                        strong { (form.item) }
                        code { (form.pk) " " (form.sk) }
                        @for (name, meaning) in form.placeholders() { span { code { (name) } " " (meaning) } }
                    }
                    None => "An item of a form that the page about keys does not have.",
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_form_that_says_most() {
        let id = "01900000-0000-7000-8000-a00000000001";
        for (pk, sk, wanted) in [
            ("LIST#TAG#ROWS".to_owned(), "0000000001", "a record: a row of a list"),
            ("LIST#TAG".to_owned(), "HEAD", "head of a list: the next ordinal, and tokens"),
            (format!("SET#LINK#tag_id={id}#BLOCKS"), "00000000", "rows of a set in a block: a bit for each"),
            (format!("CAMPAIGN_RUN#{id}"), "CAMPAIGN_TEXT", "the text of the campaign"),
            (format!("MESSAGE#{id}"), "0000000001", "a message of a conversation"),
        ] {
            assert_eq!(form_of(&pk, sk).map(|form| form.item.as_str()), Some(wanted), "{pk} {sk}");
        }
        assert!(form_of("NOTHING", "x").is_none());
        let groups = ["LIST#TAG#ROWS", "SET#LINK#tag_id=1", "UNIQUE#CONTACT#email#1", "EVENT_LOG"].map(group_of);
        assert_eq!(groups, ["tag", "link", "contact", "event log"]);
        assert_eq!(group_of("LIST#BILLING_PLAN#1#ROWS"), "billing plan");
    }

    #[test]
    fn a_form_says_what_stands_for_its_placeholders() {
        let form = form_of("MESSAGE#x", "0000000001").map(KeyForm::placeholders);
        let wanted = vec![("<conversation>", "an id"), ("<ordinal>", "10 digits, 13 of a row that is spread")];
        assert_eq!(form, Some(wanted));
    }
}
