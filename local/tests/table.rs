//! The chart of the keys of the table (`docs/TABLE.md`, and in short at the top of `table/keys.rs`): it has the forms of all keys that are written
//! or read while the operations, a campaign, deliveries, payments, cascades and filters run, and no other form.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use local::calls::DatabaseCall;
use local::faults::Faults;
use local::receiver::Behaviour;
use local::stream::Stream;
use local::{Settings, Stack};
use regex_automata::meta::Regex;
use serde_json::{Value, json};
use shared::records::widget::WidgetType;
use shared::values::id::SPREAD;

use crate::exercises::EXERCISES;
use crate::support::fixture::{ACME, as_stored, call, data, few_streaming, get, go_on_at, make, post, valid_call};
use crate::support::forms::{DUE, FORMS, Form, ORG, PLACEHOLDERS, form_of, with_constants};
use crate::support::generated::{generated, generated_between, names_in, read};
use crate::support::keyed::keyed;
use crate::support::owners::owner;
use crate::support::sender::{Sender, created};
use crate::support::sending::{Setup, id_of};

/// More than one step of a cascade removes.
const MANY: u32 = 251;
const DAY: i64 = 86_400;

/// What was seen of the table.
#[derive(Default)]
struct Seen {
    /// The keys of items that were there or were written.
    items: BTreeSet<(String, String)>,
    /// The partitions of the index in which they stood.
    due: BTreeSet<String>,
    /// What the rows of each list are.
    rows: BTreeMap<String, BTreeSet<String>>,
    /// What the service has called.
    calls: Vec<DatabaseCall>,
}

impl Seen {
    fn item(&mut self, item: &Value) {
        let text = |name: &str| item[name]["S"].as_str().map(str::to_owned);
        let (pk, sk) = (text("pk").unwrap(), text("sk").unwrap());
        if let (Some((_, list)), Some(record)) = (pk.split_once("#LIST#"), text("record")) {
            let list = list.split("#ROWS").next().unwrap().split('#').next().unwrap();
            self.rows.entry(list.to_owned()).or_default().insert(record);
        }
        self.due.extend(text("due_pk"));
        self.items.insert((pk, sk));
    }

    /// Adds the items that a stack has begun with.
    fn begun(&mut self, stack: &Stack) {
        for item in as_stored(stack) {
            let text = item.into_iter().filter_map(|(name, value)| Some((name, json!({"S": value.as_s().ok()?}))));
            self.item(&text.collect());
        }
    }

    /// Adds all changes of a stack's table, and the calls of its functions.
    fn ended(&mut self, stack: &Stack, faults: &Faults) {
        for change in Stream::changes(&stack.database).unwrap() {
            let images = ["NewImage", "OldImage"].map(|image| &change["dynamodb"][image]);
            images.into_iter().filter(|image| image.is_object()).for_each(|image| self.item(image));
        }
        self.calls.extend(faults.calls());
    }
}

/// All operations, and what follows from them.
async fn operations(seen: &mut Seen) {
    let faults = Faults::default();
    let stack = Stack::start(Settings { faults: faults.clone(), ..few_streaming() }).await.unwrap();
    seen.begun(&stack);
    faults.note_calls();
    stack.gateway.service.store.warm_up().await.unwrap();
    retire_payment_webhook(&stack).await;
    let (removals, others): (Vec<_>, Vec<_>) = EXERCISES.iter().partition(|exercise| exercise.route.method == "DELETE");
    for exercise in others.into_iter().chain(removals) {
        let call = keyed(valid_call(exercise.route, 'a', ACME), exercise.route.name);
        let answer = stack.answer(&call).await;
        assert!(answer.status < 500, "{} {}", exercise.route.name, answer.body);
        let mut before = String::new();
        for mut call in (exercise.calls_more)() {
            call.path = call.path.replace("{id}", &before);
            let answer = stack.answer(&call).await;
            before = serde_json::from_str::<Value>(&answer.body).unwrap()["data"]["id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
        }
    }
    stack.settle().await.unwrap();
    stack.tick("send-campaigns").await.unwrap();
    stack.payment_provider.fail(&[500]);
    stack.tick("remove-payment-webhooks").await.unwrap();
    limited_key(&stack).await;
    cascade(&stack).await;
    long_list(&stack).await;
    seen.ended(&stack, &faults);
}

/// An agency with a webhook at the payment provider is deleted.
async fn retire_payment_webhook(stack: &Stack) {
    let agency = json!({"billing_plan": {"payment_api_key": "sk_demo_of_this_test"}}).to_string();
    let agency = data(&stack.answer(&post("/api/v1/agency", ACME, agency)).await);
    get(stack, &format!("/api/v1/agency/billing/{}/setup_payment_webhook", id_of(&agency))).await;
    data(&stack.answer(&call("DELETE", &format!("/api/v1/agency/{}", id_of(&agency)), ACME)).await);
    stack.settle().await.unwrap();
}

/// A key gets a limit that one request exhausts, is listed, and is revoked.
async fn limited_key(stack: &Stack) {
    let invoke = async |function: &str, payload: Value| {
        let answer = stack.gateway.invoke_by_name(function, payload.to_string().as_bytes()).await;
        serde_json::from_str::<Value>(&answer.body).unwrap()
    };
    let issued = invoke("issue-api-key", json!({"name": "Limited"})).await;
    let named = json!({"org_id": issued["org_id"], "id": issued["id"]});
    let limits = json!({"org_id": issued["org_id"], "id": issued["id"], "requests_per_second": 1, "burst": 1});
    invoke("update-api-key", limits).await;
    data(&stack.answer(&call("GET", "/api/v1/tag/list", issued["api_key"].as_str().unwrap())).await);
    invoke("list-api-keys", named.clone()).await;
    invoke("revoke-api-key", named).await;
}

/// More belongs to an agency than one step removes.
async fn cascade(stack: &Stack) {
    let agency = owner(stack, "agency", MANY).await;
    data(&stack.answer(&call("DELETE", &agency.path, ACME)).await);
    stack.settle().await.unwrap();
}

/// The list of conversations has two million rows, and is filtered.
async fn long_list(stack: &Stack) {
    go_on_at(stack, SPREAD + 2_000_000).await;
    let assistant = make(stack, "/api/v1/assistant", json!({})).await;
    let contact = make(stack, "/api/v1/contact/upsert", json!({"email": "long@acme.example"})).await;
    let fields = json!({"assistant_id": assistant, "contact_id": contact});
    let conversation = make(stack, "/api/v1/conversation", fields).await;
    stack.settle().await.unwrap();
    get(stack, "/api/v1/conversation?status=open").await;
    get(stack, "/api/v1/conversation?date_from=2026-01-01").await;
    get(stack, &format!("/api/v1/conversation/by-contact/{contact}")).await;
    data(&stack.answer(&post(&format!("/api/v1/conversation/{conversation}/close"), ACME, "")).await);
    stack.settle().await.unwrap();
}

/// A campaign with a schedule: its connector fails and works again, its text changes, contacts come and go, and all that expires does.
async fn campaign(seen: &mut Seen) {
    let sender = Sender::of(Setup::start().await, WidgetType::Whatsapp, true, 24).await;
    let Sender { setup, webhook, .. } = &sender;
    seen.begun(&setup.stack);
    setup.faults.note_calls();
    let contacts = sender.contacts();
    let made = created(&sender, json!({"interval": 1440, "contact_ids": contacts[..5]})).await;
    let id = id_of(&made);
    setup.receiver.behave("/connector", Behaviour::Answer(500));
    setup.pass(3600);
    setup.minutes(3).await;
    setup.receiver.behave("/connector", Behaviour::Answer(200));
    setup.minutes(20).await;
    sender.update_text(id, "See you later!").await;
    assert_eq!(sender.add(id, &contacts[5..]).await.0, 200);
    setup.pass(DAY);
    setup.minutes(3).await;
    let (_, members) = sender.campaign(id).await;
    sender.delete(&format!("campaign_contact/{}", id_of(&members[0]))).await;
    sender.told_when_closed().await;
    assert!(!setup.outbox(&sender.org, webhook).await.is_empty());
    setup.pass(60 * DAY);
    setup.stack.expire(|_| true).unwrap();
    setup.settle().await;
    sender.delete(&format!("campaign/{id}")).await;
    setup.settle().await;
    seen.ended(&setup.stack, &setup.faults);
}

/// How each form is read.
fn reads(seen: &Seen, wrong: &mut Vec<String>) -> (Vec<BTreeSet<&'static str>>, BTreeSet<usize>) {
    let (mut reads, mut due) = (vec![BTreeSet::new(); FORMS.len()], BTreeSet::new());
    for call in &seen.calls {
        for item in call.items.iter().filter(|_| ["GetItem", "BatchGetItem", "Query"].contains(&&*call.action)) {
            if let Some((_, condition)) = item.split_once("due_pk = ") {
                let partition = condition.split(' ').next().unwrap();
                due.extend(form_of(DUE, partition, None).map_err(|error| wrong.push(error)));
                continue;
            }
            let Some((pk, range)) = item
                .strip_prefix("pk = ")
                .map(|condition| condition.split_once(" AND sk ").unwrap_or((condition, ">= ")))
            else {
                let (pk, sk) = item.split_once(' ').unwrap();
                match form_of(FORMS, pk, Some(sk)) {
                    Ok(form) => drop(reads[form].insert("by key")),
                    Err(error) => wrong.push(error),
                }
                continue;
            };
            for (_, sk) in seen.items.range((pk.to_owned(), String::new())..).take_while(|(of, _)| of == pk) {
                if is_within(sk, range)
                    && let Ok(form) = form_of(FORMS, pk, Some(sk))
                {
                    reads[form].insert("by query");
                }
            }
        }
    }
    (reads, due)
}

/// Whether a query with this condition of the sort key finds it.
fn is_within(sk: &str, range: &str) -> bool {
    let (how, bound) = range.split_once(' ').unwrap();
    match how {
        ">=" => sk >= bound,
        "<" => sk < bound,
        "BETWEEN" => bound.split_once(" AND ").is_some_and(|(from, to)| (from..=to).contains(&sk)),
        other => panic!("{other} is no comparison of a sort key"),
    }
}

/// A file without its tests.
fn code(path: &str) -> String {
    read(path).split("#[cfg(test)]").next().unwrap().to_owned()
}

/// What of the chart is not so in the sources: each file has the words of the keys that it makes, within a text, and calls the function that makes them.
fn misplaced(forms: &[Form], wrong: &mut Vec<String>) {
    for form in forms {
        let source = code(&format!("shared/src/{}", form.made_in));
        for word in form.words() {
            let within_text = Regex::new(&format!("\"(?:[^\"\\n]*[^A-Z_\"])?{word}(?:[^A-Z_][^\"\\n]*)?\"")).unwrap();
            if !within_text.is_match(&source) {
                wrong.push(format!("{} does not make {} {}: it has no {word}", form.made_in, form.pk, form.sk));
            }
        }
        if let Some((function, file)) = form.written_in {
            let calls = Regex::new(&format!("\\b{function}\\(")).unwrap();
            let makes = source.contains(&format!("fn {function}("));
            if !makes || !calls.is_match(&code(&format!("shared/src/{file}"))) {
                wrong.push(format!("{} {}: {file} does not call {function} of {}", form.pk, form.sk, form.made_in));
            }
        }
    }
}

/// A line of the list of lists.
struct List {
    /// Its name in keys.
    name: String,
    /// What its rows are.
    record: String,
    spreads: bool,
}

/// The lists that the records declare.
fn lists() -> Vec<List> {
    let declaration = Regex::new(r#"pub struct [A-Za-z]+\([A-Za-z]+\): listed\([^)]*"#).unwrap();
    let mut lists = Vec::new();
    for file in names_in("shared/src/records").iter().filter(|file| file.ends_with(".rs")) {
        let source = code(&format!("shared/src/records/{file}"));
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

/// By list, the fields of the sets that were seen.
fn filters(seen: &Seen) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut filters: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (list, terms) in seen.items.iter().filter_map(|(pk, _)| pk.split_once("#SET#")?.1.split_once('#')) {
        let terms = terms.split('#').next().unwrap().split('&');
        filters.entry(list).or_default().extend(terms.map(|term| term.split('=').next().unwrap()));
    }
    filters
}

/// The chart of these forms; the partition keys without what they all begin with.
fn chart(forms: &[(&Form, String)], prefix: &str) -> String {
    let link = |file: &str| {
        format!("[`{}`](../shared/src/{file})", file.trim_start_matches("table/").trim_start_matches("records/"))
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
    let mut told: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, _, meaning) in PLACEHOLDERS {
        let name = format!("`<{name}>`");
        match told.iter_mut().find(|(known, _)| known == meaning) {
            Some((_, names)) => names.push(name),
            None => told.push((meaning, vec![name])),
        }
    }
    told.into_iter().map(|(meaning, names)| format!("- {}: {meaning}\n", names.join(", "))).collect()
}

/// Three items of the demo set: a link, a pointer to it, and a set in which it stands.
async fn example() -> String {
    let stack = Stack::start(few_streaming()).await.unwrap();
    let items: Vec<Value> = as_stored(&stack)
        .into_iter()
        .map(|item| json!(serde_dynamo::Item::from(std::collections::HashMap::from_iter(item))))
        .collect();
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
async fn page(seen: &Seen, read: &[BTreeSet<&'static str>]) -> String {
    let told = |ways: &BTreeSet<&str>| match ways.len() {
        0 => "never".to_owned(),
        _ => ways.iter().copied().collect::<Vec<_>>().join(", "),
    };
    let forms: Vec<(&Form, String)> = FORMS.iter().zip(read).map(|(form, ways)| (form, told(ways))).collect();
    let (of_org, others): (Vec<_>, Vec<_>) = forms.into_iter().partition(|(form, _)| form.pk.starts_with(ORG));
    let due: Vec<_> = DUE.iter().map(|form| (form, "by query".to_owned())).collect();
    let filters = filters(seen);
    let mut lists_told = String::from("| List | Rows | Spreads | Sets by |\n| --- | --- | --- | --- |\n");
    for List { name, record, spreads } in lists() {
        let fields = filters.get(&name[..]).into_iter().flatten();
        let fields: Vec<_> = fields.map(|field| if field.is_empty() { "all rows" } else { field }).collect();
        writeln!(lists_told, "| `{name}` | {record} | {} | {} |", if spreads { "yes" } else { "" }, fields.join(", "))
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
        .replace("{lists}", &lists_told)
        .replace("{example}", &example().await)
}

const TEXT: &str = r#"<!-- Written by `cargo generate`. -->
# The keys of the table

This page says which key each item of the DynamoDB table has, how many items share a partition, and which file makes the key.

A test runs the operations, a campaign, deliveries, payments, cascades and filters. It fails where an item has a key of no form below, where no item
has one of these forms, and where a file does not make the key that it is said to make ([`table.rs`](../local/tests/table.rs),
[`forms.rs`](../local/tests/support/forms.rs)). The column *Read* says how the functions read the items while the test ran: by the whole key, or by a
query of the partition.

DynamoDB gives each partition key 1,000 write units and 3,000 read units a second ([ADR 32](adr/0032-partitions-are-counted.md)). The number of items in a
partition has no limit of its own.

## Items of an organisation

Each partition key begins with `{org}`, which the chart leaves out.

{of_org}
## Other items

{others}
## The index `Due`

An item is in this index while it has the attributes `due_pk` and `due_at`. The sort key is `due_at`, a time. The index has the keys of the items only:
whoever queries it reads the items afterwards. It has the items of all organisations.

{due}
## The lists

A record that a list shows is a row of one of these lists. The last columns say whether a long list has its rows in several partitions, and by which fields
the list has sets.

{lists}
## Placeholders

`<…>` is an id (UUID), except for these:

{placeholders}
## How it is laid out

- **Lists.** The rows of a list are numbered from 0 on in the order in which they are made. This number, the *ordinal*, is the sort key of the row and the
  last part of its id. So the id alone leads to the row ([ADR 2](adr/0002-ids-carry-ordinals.md)). The head has the next ordinal.
- **Spread rows.** Of some records, a list that has reached {table/reservation.rs:LONG} rows continues at the ordinal 2⁴², in {table/keys.rs:SHARDS} other partitions.
  {table/keys.rs:NEIGHBOURS} neighbours share a partition ([ADR 33](adr/0033-long-lists-are-spread.md)).
- **Tokens.** An append first takes an ordinal from the head, then writes the row. In between, the head has a *token*: an attribute whose value is the
  ordinal. A reader who finds a token looks whether the row is there ([ADR 18](adr/0018-ordinals-are-reserved.md)).
- **Holes.** A removed row leaves a *hole*. A *block* is {table/ordinals.rs:BLOCK} ordinals: its item has the set of its holes. A *section* is {table/ordinals.rs:SECTION} blocks: its item, beside the
  head, counts the holes of each. One query reads the head with all sections, so it knows the total and the place of each page.
  Where rows expire, the first sections come to have nothing but holes. Then their items go, and the head says how many ordinals are cut off
  ([ADR 34](adr/0034-deliveries-expire.md)).
- **Sets.** The rows with the same value in a field, or in several fields, are a *set*. An ordinal is a bit. The item of a block has {table/ordinals.rs:BLOCK} bits, the item of a
  section counts the bits of its blocks, and behind the first {table/ordinals.rs:SECTION} sections a *volume* counts those of {table/ordinals.rs:SECTION} sections. The function on the
  table's stream writes the sets, a moment after the rows ([ADR 12](adr/0012-filters-are-sets-of-bits.md)).
- **Pointers.** A pointer has the key that somebody looks for, and the attribute `id`: the id of the row. The transaction that writes the row writes its
  pointers too.

Three items of the demo set: a link between a tag and an entity, one of the two pointers to it, and the first block of the set of all links of this tag.

```json
{example}```
"#;

/// The chart in short, as a comment.
fn comment() -> String {
    let line = |form: &Form| format!("//! {:<42} {:<22} {}", form.pk, form.sk, form.item).trim_end().to_owned() + "\n";
    let index = |form: &Form| format!("//! {:<42} {:<22} {}", form.pk, form.sk, form.item) + "\n";
    let items: String = FORMS.iter().map(line).collect();
    items + "//!\n//! In the index `Due`:\n" + &DUE.iter().map(index).collect::<String>()
}

#[tokio::test]
async fn the_chart_has_the_form_of_every_key_and_no_other() {
    let (mut operating, mut sending) = (Seen::default(), Seen::default());
    tokio::join!(operations(&mut operating), campaign(&mut sending));
    let mut seen = operating;
    seen.items.extend(sending.items);
    seen.due.extend(sending.due);
    seen.calls.extend(sending.calls);
    for (list, records) in sending.rows {
        seen.rows.entry(list).or_default().extend(records);
    }

    let mut wrong = Vec::new();
    let (read, mut due) = reads(&seen, &mut wrong);
    let mut known: BTreeSet<usize> =
        (0..FORMS.len()).filter(|form| FORMS[*form].most == "0" && !read[*form].is_empty()).collect();
    for (pk, sk) in &seen.items {
        known.extend(form_of(FORMS, pk, Some(sk)).map_err(|error| wrong.push(error)));
    }
    let mut stood = BTreeSet::new();
    for partition in &seen.due {
        stood.extend(form_of(DUE, partition, None).map_err(|error| wrong.push(error)));
    }
    due.retain(|form| stood.contains(form));
    for (forms, known) in [(FORMS, known), (DUE, due)] {
        let absent = forms.iter().enumerate().filter(|(place, _)| !known.contains(place));
        wrong.extend(absent.map(|(_, Form { pk, sk, .. })| format!("{pk} {sk} was never seen")));
        misplaced(forms, &mut wrong);
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let keys = |form: &Form| (form.pk, form.sk);
    assert!(FORMS.is_sorted_by_key(keys) && DUE.is_sorted_by_key(keys), "the forms are in another order");
    let declared = lists()
        .into_iter()
        .map(|list| (list.name.split('#').next().unwrap().to_owned(), BTreeSet::from([list.record])));
    assert_eq!(
        declared.collect::<BTreeMap<_, _>>(),
        seen.rows,
        "the lists that the records declare are not those that were seen"
    );

    generated("docs/TABLE.md", &page(&seen, &read).await);
    generated_between("shared/src/table/keys.rs", ("//! ```text", "//! ```\n"), &comment());
}
