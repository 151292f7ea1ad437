//! The chart of the keys of the table (`docs/TABLE.md`, and in short at the top of `table/keys.rs`): it has the forms of all keys that are written
//! or read while the operations, a campaign, deliveries, payments, cascades and filters run, and no other form.

use std::collections::{BTreeMap, BTreeSet};

use local::calls::DatabaseCall;
use local::faults::Faults;
use local::receiver::Behaviour;
use local::stream::Stream;
use local::{Settings, Stack};
use regex_automata::meta::Regex;
use repository::root;
use serde_json::{Value, json};
use shared::records::conversation::Conversation;
use shared::records::widget::WidgetType;
use shared::routes;
use shared::values::id::SPREAD;

use crate::exercises::EXERCISES;
use crate::support::chart::{List, code, comment, lists, page};
use crate::support::customers::Customer;
use crate::support::fixture::{
    ACME, as_stored, call, data, few_streaming, get, go_on_at, handle, make, post, valid_call,
};
use crate::support::forms::{DUE, FORMS, Form, form_of, path_of};
use crate::support::generated::{generated, generated_between};
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
    /// What the service has called: the actions with their keys or conditions.
    calls: BTreeSet<(String, String)>,
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
        let items = |call: DatabaseCall| call.items.into_iter().map(move |item| (call.action.clone(), item));
        self.calls.extend(faults.calls().into_iter().flat_map(items));
    }
}

/// All operations, and what follows from them.
async fn operations(seen: &mut Seen) {
    let faults = Faults::default();
    let settings = Settings { faults: faults.clone(), audit_days: 400, ..few_streaming() };
    let stack = Stack::start(settings).await.unwrap();
    seen.begun(&stack);
    faults.note_calls();
    stack.gateway.service.store.warm_up().await.unwrap();
    retire_payment_webhook(&stack).await;
    let key = Customer::of(&stack, &json!({})).await.key;
    data(&stack.answer(&post(routes::CREATE_ASSISTANT.path, &key, "{}")).await);
    may_become_idle(&stack).await;
    let (removals, others): (Vec<_>, Vec<_>) = EXERCISES.iter().partition(|exercise| exercise.route.method == "DELETE");
    for exercise in others.into_iter().chain(removals) {
        let call = keyed(valid_call(exercise.route, 'a', ACME), exercise.route.name);
        let answer = stack.answer(&call).await;
        assert!(answer.status < 500, "{} {}", exercise.route.name, answer.body);
        let mut before = String::new();
        for mut call in (exercise.calls_more)() {
            call.path = call.path.replace("{id}", &before);
            let answer: Value = serde_json::from_str(&stack.answer(&call).await.body).unwrap();
            answer["data"]["id"].as_str().unwrap_or_default().clone_into(&mut before);
        }
    }
    stack.settle().await.unwrap();
    stack.tick("send-campaigns").await.unwrap();
    stack.payment_provider.fail(&[500]);
    stack.tick("remove-payment-webhooks").await.unwrap();
    limited_key(&stack).await;
    cascade(&stack).await;
    long_list(&stack).await;
    get(&stack, routes::LIST_AUDIT.path).await;
    seen.ended(&stack, &faults);
}

/// A conversation is opened that the tick closes when it is idle.
async fn may_become_idle(stack: &Stack) {
    let settings = json!({"conversation": {"idle_close_minutes": 10}}).to_string();
    let assistant = data(&stack.answer(&post(routes::CREATE_ASSISTANT.path, ACME, settings)).await);
    let opened = json!({"assistant_id": assistant["id"]}).to_string();
    data(&stack.answer(&post(routes::OPEN_CONVERSATION.path, ACME, opened)).await);
    stack.tick("release-deliveries").await.unwrap();
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
    go_on_at::<Conversation>(stack, SPREAD + 2_000_000).await;
    let assistant = make(stack, "/api/v1/assistant", json!({})).await;
    let contact = make(stack, "/api/v1/contact/upsert", json!({"email": "long@acme.example"})).await;
    let fields = json!({"assistant_id": assistant, "contact_id": contact});
    let conversation = make(stack, "/api/v1/conversation", fields).await;
    stack.settle().await.unwrap();
    get(stack, "/api/v1/conversation").await;
    get(stack, "/api/v1/conversation?status=open").await;
    get(stack, "/api/v1/conversation?date_from=2026-01-01").await;
    get(stack, &format!("/api/v1/conversation/by-contact/{contact}")).await;
    data(&stack.answer(&post(&format!("/api/v1/conversation/{conversation}/close"), ACME, "")).await);
    stack.settle().await.unwrap();
}

/// A campaign with a schedule: its connector fails and works again, its text changes, contacts come and go, and all that expires does.
async fn campaign(seen: &mut Seen) {
    let sender = Sender::of(Setup::start().await, WidgetType::Whatsapp, true, 20).await;
    let Sender { setup, webhook, .. } = &sender;
    seen.begun(&setup.stack);
    setup.faults.note_calls();
    let contacts = sender.contacts();
    let policy = json!({"on": ["no_answer"], "max_attempts": 2, "wait_minutes": 2});
    let made = created(&sender, json!({"interval": 1440, "contact_ids": contacts[..3], "retry_policy": policy})).await;
    let id = id_of(&made);
    setup.receiver.behave("/connector", Behaviour::Answer(500));
    setup.pass(3600);
    setup.minutes(3).await;
    setup.receiver.behave("/connector", Behaviour::Answer(200));
    setup.minutes(2).await;
    sender.update_text(id, "See you later!").await;
    assert_eq!(sender.add(id, &contacts[3..]).await.0, 200);
    setup.pass(DAY);
    setup.minutes(3).await;
    let (_, members) = sender.campaign(id).await;
    sender.delete(&format!("campaign_contact/{}", id_of(&members[0]))).await;
    sender.report(&members[1], "no_answer", 0).await;
    setup.minutes(3).await;
    sender.texts_when_closed().await;
    assert!(!setup.outbox(&sender.org, webhook).await.is_empty());
    // The stream may deliver the change of a closed conversation twice.
    let changes = Stream::changes(&setup.stack.database).unwrap();
    let is_closed = |change: &&Value| change["dynamodb"]["NewImage"]["status"]["S"] == "closed";
    handle(&setup.stack, &changes.iter().filter(is_closed).cloned().collect::<Vec<_>>()).await;
    setup.pass(60 * DAY);
    setup.stack.expire(|_| true).unwrap();
    setup.settle().await;
    sender.delete(&format!("campaign/{id}")).await;
    setup.settle().await;
    // Each function on a schedule reads its partitions of the index, even if they are empty.
    setup.stack.minute().await.unwrap();
    seen.ended(&setup.stack, &setup.faults);
}

/// How the functions read the items of each form, and which partitions of the index they query. A key of no form is `wrong`.
fn reads(seen: &Seen, wrong: &mut Vec<String>) -> (Vec<BTreeSet<&'static str>>, BTreeSet<usize>) {
    let (mut reads, mut due) = (vec![BTreeSet::new(); FORMS.len()], BTreeSet::new());
    for (action, item) in &seen.calls {
        match action.as_str() {
            "GetItem" | "BatchGetItem" => {
                let (pk, sk) = item.split_once(' ').unwrap();
                match form_of(FORMS, pk, Some(sk)) {
                    Ok(form) => {
                        reads[form].insert("by key");
                    }
                    Err(error) => wrong.push(error),
                }
            }
            "Query" if let Some((_, condition)) = item.split_once("due_pk = ") => {
                let partition = condition.split(' ').next().unwrap();
                due.extend(form_of(DUE, partition, None).map_err(|error| wrong.push(error)));
            }
            "Query" => {
                let condition = item.strip_prefix("pk = ").unwrap();
                let (pk, range) = condition.split_once(" AND sk ").unwrap_or((condition, ">= "));
                let items = seen.items.range((pk.to_owned(), String::new())..).take_while(|(of, _)| of == pk);
                let found = items.filter(|(_, sk)| is_within(sk, range));
                for form in found.filter_map(|(_, sk)| form_of(FORMS, pk, Some(sk)).ok()) {
                    reads[form].insert("by query");
                }
            }
            _ => {}
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

/// What of the chart is not so in the sources: each file has the words of the keys that it makes, within a text, and calls the function that makes them.
fn misplaced(forms: &[Form], wrong: &mut Vec<String>) {
    for form in forms {
        let source = code(&path_of(form.made_in));
        for word in form.words() {
            let within_text = Regex::new(&format!("\"(?:[^\"\\n]*[^A-Z_\"])?{word}(?:[^A-Z_][^\"\\n]*)?\"")).unwrap();
            if !within_text.is_match(&source) {
                wrong.push(format!("{} does not make {} {}: it has no {word}", form.made_in, form.pk, form.sk));
            }
        }
        if let Some((function, file)) = form.written_in {
            let calls = Regex::new(&format!("\\b{function}\\(")).unwrap();
            let makes = source.contains(&format!("fn {function}("));
            if !makes || !calls.is_match(&code(&path_of(file))) {
                wrong.push(format!("{} {}: {file} does not call {function} of {}", form.pk, form.sk, form.made_in));
            }
        }
    }
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

#[tokio::test]
async fn the_chart_has_the_form_of_every_key_and_no_other() {
    let mut seen = Seen::default();
    operations(&mut seen).await;
    campaign(&mut seen).await;

    let mut wrong = Vec::new();
    let (read, mut due) = reads(&seen, &mut wrong);
    let is_read_alone = |form: &usize| FORMS[*form].most == "0" && !read[*form].is_empty();
    let mut known: BTreeSet<usize> = (0..FORMS.len()).filter(is_read_alone).collect();
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
    let name = |list: &List| list.name.split('#').next().unwrap().to_owned();
    let declared: BTreeMap<_, _> =
        lists().into_iter().map(|list| (name(&list), BTreeSet::from([list.record]))).collect();
    assert_eq!(declared, seen.rows, "the lists that the records declare are not those that were seen");

    let page = page(&read, &filters(&seen)).await;
    for link in page.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap()) {
        assert!(root().join("docs").join(link).exists(), "there is no {link}");
    }
    generated("docs/TABLE.md", &page);
    generated_between("shared/src/table/keys.rs", ("//! ```text", "//! ```\n"), &comment());
}

#[test]
fn a_key_without_a_form_and_a_form_at_another_place_are_found() {
    let org = "ORG#01900000-0000-7000-8000-a00000000001";
    assert!(form_of(FORMS, &format!("{org}#LIST#TAG#ROWS"), Some("0000000001")).is_ok());
    for (pk, sk) in
        [("LIST#TAG#ROWS", "1"), ("LIST#TAG#ROWS", "0000000001#"), ("LIST#Tag#ROWS", "0000000001"), ("X", "X")]
    {
        assert!(form_of(FORMS, &format!("{org}#{pk}"), Some(sk)).is_err(), "{pk} {sk}");
    }
    let mut wrong = Vec::new();
    let form = |pk, sk, made_in, written_in| Form { pk, sk, item: "", most: "1", made_in, written_in };
    let keys = "table/keys.rs";
    misplaced(&[form("MADE_BY#<origin>", "MADE_BY", keys, Some(("made_by", "table/transaction.rs")))], &mut wrong);
    assert!(wrong.is_empty(), "{wrong:?}");
    misplaced(&[form("MADE_BY#<origin>", "", keys, Some(("made_by", "table/once.rs")))], &mut wrong);
    misplaced(&[form("MADE#<origin>", "", keys, None), form("THREAD#<widget>", "", keys, None)], &mut wrong);
    assert_eq!(wrong.len(), 3, "{wrong:?}");
}
