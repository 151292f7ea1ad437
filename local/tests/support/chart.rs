//! The page about the keys of the table (`docs/TABLE.md`), and the chart at the top of `table/keys.rs`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use local::Stack;
use regex_automata::meta::Regex;
use repository::{names_in, read};
use serde_json::{Value, json};

use crate::support::fixture::{as_stored, few_streaming};
use crate::support::forms::{DUE, FORMS, Form, ORG, PLACEHOLDERS, path_of, with_constants};

/// A file without its tests.
pub fn code(path: &str) -> String {
    read(path).split("#[cfg(test)]").next().unwrap().to_owned()
}

/// A line of the list of lists.
pub struct List {
    /// Its name in keys.
    pub name: String,
    /// What its rows are.
    pub record: String,
    /// Whether the rows of a long one lie in several partitions.
    spreads: bool,
}

/// The lists that the records declare.
pub fn lists() -> Vec<List> {
    let declaration = Regex::new(r"pub struct [A-Za-z]+\([A-Za-z]+\): listed\([^)]*").unwrap();
    let mut lists = Vec::new();
    for file in names_in("shared/src/records").iter().filter_map(|file| file.strip_suffix(".rs")) {
        let source = code(&format!("shared/src/records/{file}.rs"));
        for declared in declaration.find_iter(&source) {
            let declared = &source[declared.range()];
            let (head, place) = declared.split_once("listed(").unwrap();
            let record = head.trim_start_matches("pub struct ").split('(').next().unwrap().to_owned();
            let words: Vec<&str> = place.split([' ', ',']).collect();
            let name = words[0].trim_matches('"');
            let parent = words.get(2).map(|of| of.trim_end_matches("Id").to_lowercase());
            let name = match (words.get(1), parent) {
                (Some(&"of"), Some(parent)) => format!("{name}#<{parent}>"),
                (Some(&"within"), Some(_)) => format!("{name}#<ordinal>"),
                _ => name.to_owned(),
            };
            lists.push(List { name, record, spreads: words.contains(&"spread") });
        }
    }
    lists.sort_by(|one, other| one.name.cmp(&other.name));
    lists
}

/// The chart of these forms; the partition keys without what they all begin with.
fn chart(forms: &[(&Form, String)], prefix: &str) -> String {
    let link = |file: &str| {
        format!("[`{}`](../{})", file.trim_start_matches("table/").trim_start_matches("records/"), path_of(file))
    };
    let mut chart = String::from(
        "| Partition key | Sort key | Item | Items in a partition | Read | Key made in |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for (form, read) in forms {
        let (Form { sk, item, made_in, .. }, pk) = (form, form.pk.trim_start_matches(prefix));
        let made =
            form.written_in.map_or_else(|| link(made_in), |(_, file)| format!("{}, for {}", link(made_in), link(file)));
        writeln!(chart, "| `{pk}` | `{sk}` | {item} | {} | {read} | {made} |", form.most()).unwrap();
    }
    chart
}

/// What the placeholders of the chart stand for.
fn placeholders() -> String {
    let mut explained: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, _, meaning) in PLACEHOLDERS {
        let name = format!("`<{name}>`");
        match explained.iter_mut().find(|(known, _)| known == meaning) {
            Some((_, names)) => names.push(name),
            None => explained.push((meaning, vec![name])),
        }
    }
    explained.into_iter().map(|(meaning, names)| format!("- {}: {meaning}\n", names.join(", "))).collect()
}

/// Three items of the demo set: a link, a pointer to it, and a set in which it stands.
async fn example() -> String {
    let stack = Stack::start(few_streaming()).await.unwrap();
    let items: Vec<Value> =
        as_stored(&stack).into_iter().map(|item| json!(serde_dynamo::Item::from(HashMap::from_iter(item)))).collect();
    let find = |is_it: &dyn Fn(&str, &str, &Value) -> bool| {
        let is_it = |item: &&Value| is_it(item["pk"]["S"].as_str().unwrap(), item["sk"]["S"].as_str().unwrap(), item);
        items.iter().find(is_it).unwrap()
    };
    let row =
        find(&|pk, sk, _| pk.contains(&format!("-a{}#LIST#LINK#ROWS", "0".repeat(10) + "1")) && sk == "0000000001");
    let pointer = find(&|pk, _, item| pk.contains("#TAG_LINKS#") && item["id"] == row["id"]);
    let tag = row["tag_id"]["S"].as_str().unwrap();
    let set = find(&|pk, _, _| pk.ends_with(&format!("#SET#LINK#tag_id={tag}#BLOCKS")));
    [row, pointer, set].map(|item| format!("{item}\n")).concat()
}

/// The page.
pub async fn page(read: &[BTreeSet<&'static str>], filters: &BTreeMap<&str, BTreeSet<&str>>) -> String {
    let joined = |ways: &BTreeSet<&str>| match ways.len() {
        0 => String::new(),
        _ => ways.iter().copied().collect::<Vec<_>>().join(", "),
    };
    let forms: Vec<(&Form, String)> = FORMS.iter().zip(read).map(|(form, ways)| (form, joined(ways))).collect();
    let (of_org, others): (Vec<_>, Vec<_>) = forms.into_iter().partition(|(form, _)| form.pk.starts_with(ORG));
    let due: Vec<_> = DUE.iter().map(|form| (form, "by query".to_owned())).collect();
    let mut lists_shown = String::from("| List | Rows | Spreads | Sets by |\n| --- | --- | --- | --- |\n");
    for List { name, record, spreads } in lists() {
        let fields = filters.get(&name[..]).into_iter().flatten();
        let fields: Vec<_> = fields.map(|field| if field.is_empty() { "all rows" } else { field }).collect();
        writeln!(lists_shown, "| `{name}` | {record} | {} | {} |", if spreads { "yes" } else { "" }, fields.join(", "))
            .unwrap();
    }
    with_constants(TEXT)
        .replace("{org}", ORG)
        .replace("{of_org}", &chart(&of_org, ORG))
        .replace("{others}", &chart(&others, ""))
        .replace(
            "{due}",
            &chart(&due, "").replace("| `<time>` ", "").replace("| Sort key ", "").replacen("| --- ", "", 1),
        )
        .replace("{placeholders}", &placeholders())
        .replace("{lists}", &lists_shown)
        .replace("{example}", &example().await)
}

const TEXT: &str = "<!-- Written by `cargo generate`. -->
# The keys of the table

All records are items of one DynamoDB table. This page says which key each item has, how many items share a partition, and which file makes the key. Look here
before you add a key, or if you read the table by hand.

| You want to | Read |
| --- | --- |
| understand how a list is stored | [How it is laid out](#how-it-is-laid-out) |
| find the key of an item | [Items of an organisation](#items-of-an-organisation), [Other items](#other-items), [The index `Due`](#the-index-due) |
| know what a word in `<…>` stands for | [Placeholders](#placeholders) |
| know by which fields a list is filtered | [The lists](#the-lists) |

## How it is laid out

Here are three items of the demo set: a link between a tag and an entity, one of the two pointers to it, and the first block of the set of all links of this tag.

```json
{example}```

The items follow these rules:

- **Lists.** The rows of a list are numbered from 0 on in the order in which they are made. This number, the *ordinal*, is the sort key of the row and the
  last part of its id. So the id alone leads to the row ([ADR 2](adr/0002-ids-carry-ordinals.md)). The head has the next ordinal.
- **Spread rows.** Of some records, a list that has reached {table/reservation.rs:LONG} rows continues at the ordinal 2⁴², in {table/keys.rs:SHARDS} other partitions.
  {table/keys.rs:NEIGHBOURS} neighbours share a partition ([ADR 33](adr/0033-long-lists-are-spread.md)).
- **Tokens.** An append first takes an ordinal from the head, then writes the row. In between, the head has a *token*: an attribute whose value is the
  ordinal. A reader who finds a token looks whether the row is there ([ADR 18](adr/0018-ordinals-are-reserved.md)).
- **Holes.** A removed row leaves a *hole*. A *block* is {table/ordinals.rs:BLOCK} ordinals: its item has the set of its holes. A *section* is {table/ordinals.rs:SECTION} blocks: its item, beside the
  head, counts the holes of each. One query reads the head with all sections, so it knows the total and the place of each page.
  If rows expire, the first sections have only holes in the end. Then their items are removed, and the head has the number of ordinals that are cut off
  ([ADR 34](adr/0034-ended-deliveries-expire.md)).
- **Sets.** The rows with the same value in a field, or in several fields, are a *set*. An ordinal is a bit. The item of a block has {table/ordinals.rs:BLOCK} bits, the item of a
  section counts the bits of its blocks, and behind the first {table/ordinals.rs:SECTION} sections a *volume* counts those of {table/ordinals.rs:SECTION} sections. The function on the
  table's stream writes the sets, a moment after the rows ([ADR 12](adr/0012-filters-are-sets-of-bits.md)).
- **Pointers.** A pointer has the key that somebody looks for, and the attribute `id`: the id of the row. The transaction that writes the row writes its
  pointers too.

## How to read the charts

- *Partition key* and *Sort key* together are the key of an item.
- *Items in a partition* says how many items share the partition key. DynamoDB gives each partition key 1,000 write units and 3,000 read units a second
  ([ADR 32](adr/0032-partitions-are-counted.md)). A partition may have any number of items.
- *Read* says how functions read the items while the test ran: by the whole key, or by a query of the partition. If the column is empty, only a condition of a
  write or the table's stream looks at the item.
- *Key made in* names the file that makes the key.

A test runs the operations, a campaign, deliveries, payments, cascades and filters ([`table.rs`](../local/tests/table.rs),
[`forms.rs`](../local/tests/support/forms.rs)). It fails in three cases: an item has a key of none of the forms below, no item has one of these forms, or a file does
not make the key that the chart names it for.

## Items of an organisation

Each partition key begins with `{org}`, which the chart leaves out.

{of_org}
## Other items

{others}
## The index `Due`

An item is in this index while it has the attributes `due_pk` and `due_at`. The sort key is `due_at`, a time. The index has the keys of the items only:
a function that queries it reads the items afterwards. It has the items of all organisations.

{due}
## The lists

A record that a list shows is a row of one of these lists. The last columns say whether a long list has its rows in several partitions, and by which fields
the list has sets.

{lists}
## Placeholders

`<…>` is an id (UUID), except for these:

{placeholders}";

/// The chart in short, as a comment.
pub fn comment() -> String {
    let line = |form: &Form| format!("//! {:<42} {:<24} {}", form.pk, form.sk, form.item).trim_end().to_owned() + "\n";
    let index = |form: &Form| format!("//! {:<42} {:<24} {}", form.pk, form.sk, form.item) + "\n";
    let items: String = FORMS.iter().map(line).collect();
    items + "//!\n//! In the index `Due`:\n" + &DUE.iter().map(index).collect::<String>()
}
