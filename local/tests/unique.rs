//! Tests of unique values: two writers never both get one, and only a row that has a value holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use local::Stack;
use local::http::{Answer, Call};
use serde_json::{Value, json};
use shared::values::hash::{hex, sha256};

use crate::support::fixture::{ACME, call, everything, failure, few, id, json, kind, settings, with_faults};
use crate::support::sweep::cases;

/// A kind of record with unique values, and how its records are named and made.
struct Kind {
    record: &'static str,
    list: &'static str,
    path: &'static str,
    ids: u8,
    /// The body that creates one with this e-mail address.
    create: fn(&str) -> Value,
    fields: &'static [&'static str],
}

const KINDS: [Kind; 2] = [
    Kind {
        record: "Contact",
        list: "CONTACT",
        path: "/api/v1/contact",
        ids: kind::CONTACT,
        create: |email| json!({"email": email}),
        fields: &["email", "phone_number"],
    },
    Kind {
        record: "User",
        list: "USER",
        path: "/api/v1/user",
        ids: kind::USER,
        create: |email| json!({"first_name": "A", "last_name": "B", "email": email}),
        fields: &["email"],
    },
];

/// What a writer does to a value that a record holds.
const WRITERS: [&str; 5] = ["create", "take", "change", "release", "delete"];

fn request(of: &Kind, writer: &str, holder: u32, other: u32) -> Call {
    let email = format!("{}{holder}@acme.example", of.record.to_lowercase());
    let at = |number| format!("{}/{}", of.path, id('a', of.ids, number));
    let with =
        |method: &str, path: &str, body: Value| Call { body: body.to_string().into(), ..call(method, path, ACME) };
    let create = if of.record == "Contact" { format!("{}/upsert", of.path) } else { of.path.to_owned() };
    match writer {
        "create" => with("POST", &create, (of.create)(&email)),
        "take" => with("PUT", &at(other), json!({"email": email.to_uppercase()})),
        "change" => with("PUT", &at(holder), json!({"email": email.to_uppercase()})),
        "release" => with("PUT", &at(holder), json!({"email": format!("released{holder}-{other}@acme.example")})),
        "delete" => call("DELETE", &at(holder), ACME),
        _ => unreachable!("{writer}"),
    }
}

fn text(item: &BTreeMap<String, AttributeValue>, name: &str) -> Option<String> {
    item.get(name).and_then(|value| value.as_s().ok()).cloned()
}

/// The rows of these records.
async fn rows(stack: &Stack, of: &Kind) -> Vec<BTreeMap<String, AttributeValue>> {
    let mut items = everything(stack).await;
    items.retain(|item| text(item, "record").as_deref() == Some(of.record));
    items
}

/// Checks that each value is held by exactly the one row that has it.
async fn look(stack: &Stack, when: &str) {
    let items = everything(stack).await;
    for of in &KINDS {
        let mut wanted = BTreeSet::new();
        for row in items.iter().filter(|item| text(item, "record").as_deref() == Some(of.record)) {
            for field in of.fields {
                let Some(value) = text(row, field) else { continue };
                let value = if *field == "email" { value.to_lowercase() } else { value };
                let hash = hex(&sha256([value.as_bytes()]));
                let org = text(row, "pk").unwrap().split('#').take(2).collect::<Vec<_>>().join("#");
                let holder = (format!("{org}#UNIQUE#{}#{field}#{hash}", of.list), text(row, "id").unwrap());
                assert!(wanted.insert(holder), "{when}: two rows have {value}");
            }
        }
        let mark = format!("#UNIQUE#{}#", of.list);
        let held = items.iter().filter(|item| text(item, "pk").unwrap().contains(&mark));
        let held: BTreeSet<_> = held.map(|item| (text(item, "pk").unwrap(), text(item, "id").unwrap())).collect();
        assert_eq!(held, wanted, "{when}");
    }
}

#[tokio::test]
async fn two_concurrent_writers_never_share_a_value() {
    for (of, first) in cases(KINDS.iter().flat_map(|of| WRITERS.map(|first| (of, first)))) {
        let (stack, faults) = with_faults(settings()).await;
        // Calls take different times, so the writes mix in many orders.
        faults.set_latency(Duration::from_millis(3));
        let (in_order, reversed) = (Stack::start(settings()).await.unwrap(), Stack::start(settings()).await.unwrap());
        // Each pair has three records of its own.
        for (holder, second) in (0..).step_by(3).zip(WRITERS) {
            let one = request(of, first, holder, holder + 1);
            let two = request(of, second, holder, holder + 2);
            let (of_one, of_two): (Answer, Answer) = tokio::join!(stack.answer(&one), stack.answer(&two));
            let both = [failure(&of_one), failure(&of_two)];
            // One of them came after the other.
            let in_order = [failure(&in_order.answer(&one).await), failure(&in_order.answer(&two).await)];
            let mut reversed = [failure(&reversed.answer(&two).await), failure(&reversed.answer(&one).await)];
            reversed.reverse();
            let case = format!("{} {first} {second}", of.record);
            assert!(both == in_order || both == reversed, "{case}: {both:?}, not {in_order:?} or {reversed:?}");
        }
        look(&stack, &format!("{} {first}", of.record)).await;
    }
}

#[tokio::test]
async fn a_value_has_one_holder_after_any_crash() {
    let at = |of: &Kind| format!("{}/{}", of.path, id('a', of.ids, 1));
    for of in &KINDS {
        let is_contact = of.record == "Contact";
        let create = if is_contact { format!("{}/upsert", of.path) } else { of.path.to_owned() };
        let fresh = (of.create)("fresh@acme.example");
        // Each with the status of a first request, and of one that finds the work done.
        let mut work = vec![
            ("create", ("POST", create, fresh), 201, if is_contact { 200 } else { 409 }),
            ("take a free one", ("PUT", at(of), json!({"email": "free@acme.example"})), 200, 200),
            ("delete", ("DELETE", at(of), Value::Null), 200, 404),
        ];
        if is_contact {
            let new = json!({"contacts": [{"email": "a@acme.example", "phone_number": "4915112345678"}, {"email": "b@acme.example"}]});
            work.push(("import", ("POST", format!("{}/import", of.path), new), 200, 200));
        }
        for (name, (method, path, body), first, repeated) in work {
            let call = Call { body: body.to_string().into(), ..call(method, &path, ACME) };
            let mut statuses = BTreeSet::new();
            for writes in 0.. {
                let case = format!("{} {name}, after {writes} writes", of.record);
                let (stack, faults) = with_faults(few()).await;
                let before = rows(&stack, of).await;
                faults.die_after_writes(writes);
                let died = faults.kill(stack.answer(&call)).await;
                faults.end();
                look(&stack, &case).await;
                let is_done = rows(&stack, of).await != before;
                let again = stack.answer(&call).await;
                assert_eq!(again.status, if is_done { repeated } else { first }, "{case}: {}", again.body);
                assert_ne!(rows(&stack, of).await, before, "{case}");
                look(&stack, &case).await;
                if !died {
                    break;
                }
                statuses.insert(is_done);
            }
            assert_eq!(statuses.len(), 2, "{} {name}: no crash before the work was done, or none after it", of.record);
        }
    }
}

#[tokio::test]
async fn upserts_of_one_contact_lose_no_value() {
    let stack = Stack::start(settings()).await.unwrap();
    let post = |path: &str, body: Value| {
        let call = Call { body: body.to_string().into(), ..call("POST", path, ACME) };
        let stack = &stack;
        async move {
            let answer = stack.answer(&call).await;
            assert!(answer.status < 300, "{}", answer.body);
            json(&answer)["data"].clone()
        }
    };
    // Afterwards each of these values belongs to a contact.
    let upserts = |turn: u32| {
        let [known, new, other] = ["known", "new", "other"].map(|name| format!("{name}{turn}@acme.example"));
        let [first, second] = [0, 1].map(|number| format!("+3161{turn:04}{number:03}"));
        let crossed = json!([{"email": new, "phone_number": first}, {"email": known, "phone_number": second}]);
        let chained = json!([{"email": known, "phone_number": first}, {"email": new, "phone_number": first}, {"email": known, "phone_number": second}]);
        let apart = json!([{"email": new, "phone_number": first}, {"email": known}, {"email": other}]);
        (json!({"email": known, "phone_number": first}), [crossed, chained, apart][turn as usize % 3].clone())
    };
    for turn in 0..12 {
        let (before, upserts) = upserts(turn);
        post("/api/v1/contact/upsert", before).await;
        // An import keeps the order of its upserts. The first kind is correct in any order, so it may run concurrently.
        if turn < 6 || turn % 3 != 0 {
            let done = post("/api/v1/contact/import", json!({"contacts": upserts})).await;
            assert!(done["items"].as_array().unwrap().iter().all(|item| item["outcome"] != "failed"), "{done}");
        } else {
            let all = upserts.as_array().unwrap().iter();
            futures_util::future::join_all(all.map(|body| post("/api/v1/contact/upsert", body.clone()))).await;
        }
        let values = upserts.as_array().unwrap().iter().flat_map(|upsert| upsert.as_object().unwrap().clone());
        for (field, value) in values {
            let query = form_urlencoded::Serializer::new(format!("api_key={ACME}&"));
            let query = { query }.append_pair(&field, value.as_str().unwrap()).finish();
            let answer = stack.answer(&Call { query, ..call("GET", "/api/v1/contact", "") }).await;
            assert_eq!(json(&answer)["data"]["items"][0][&field], value, "{turn}: {upserts}");
        }
        look(&stack, &format!("{upserts}")).await;
    }
}
