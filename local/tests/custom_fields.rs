//! Tests of custom fields of contacts: their definitions, the check by every write of a contact, and the filters of lists.

use futures_util::future::join_all;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::records::{detail, issue};
use crate::support::sending::{Org, Setup, id_of};

const FIELDS: &str = "/api/v1/contact_custom_field";
const CONTACTS: &str = "/api/v1/contact";

async fn started() -> (Setup, Org) {
    let setup = Setup::start().await;
    let org = setup.org().await;
    (setup, org)
}

/// Makes the field `name` with its type and more members.
async fn field(setup: &Setup, org: &Org, name: &str, field_type: &str, more: Value) -> Value {
    let mut body = json!({"name": name, "field_type": field_type});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    setup.post(org, FIELDS, body).await
}

/// A field of each type.
async fn of_each_type(setup: &Setup, org: &Org) {
    for (name, field_type, more) in [
        ("city", "string", json!({})),
        ("seats", "number", json!({})),
        ("vip", "boolean", json!({})),
        ("since", "date", json!({})),
        ("plan", "choice", json!({"choices": ["free", "gold"]})),
    ] {
        field(setup, org, name, field_type, more).await;
    }
}

fn at(place: &str, name: &str) -> Value {
    json!([place, name])
}

fn of_value(name: &str, kind: &str, message: &str) -> Value {
    issue(&json!(["body", "custom_fields", name]), kind, message)
}

async fn put(setup: &Setup, org: &Org, made: &Value, path: &str, body: Value) -> Answer {
    setup.ask(org, "PUT", &format!("{path}/{}", id_of(made)), &body).await
}

/// The e-mail addresses on a page of contacts, and the total.
async fn found(setup: &Setup, org: &Org, query: &str) -> (Vec<String>, u64) {
    let page = setup.get(org, &format!("{CONTACTS}?custom_field={query}&size=100")).await;
    let email = |contact: &Value| contact["email"].as_str().unwrap().split('@').next().unwrap().to_owned();
    (page["items"].as_array().unwrap().iter().map(email).collect(), page["total"].as_u64().unwrap())
}

fn names(names: &[&str]) -> (Vec<String>, u64) {
    (names.iter().map(|name| (*name).to_owned()).collect(), names.len() as u64)
}

async fn upsert(setup: &Setup, org: &Org, name: &str, values: Value) -> Answer {
    let body = json!({"email": format!("{name}@example.com"), "custom_fields": values});
    setup.ask(org, "POST", &format!("{CONTACTS}/upsert"), &body).await
}

#[tokio::test]
async fn the_name_and_the_type_of_a_field_stay() {
    let (setup, org) = started().await;
    let plan = field(&setup, &org, "plan", "choice", json!({"choices": ["free", "gold"]})).await;
    let changed = json!({"name": "tariff", "field_type": "string", "is_filter": true});
    let issues = json!([
        issue(&at("body", "name"), "value_error", "The name of a field cannot be changed"),
        issue(&at("body", "field_type"), "value_error", "The type of a field cannot be changed"),
        issue(&at("body", "is_filter"), "value_error", "A field becomes a filter when it is created, and not later"),
    ]);
    assert_eq!(detail(&put(&setup, &org, &plan, FIELDS, changed).await), (422, issues));
    let message = "A field of type 'choice' should have at least 1 choice";
    let issues = json!([issue(&at("body", "choices"), "value_error", message)]);
    assert_eq!(detail(&put(&setup, &org, &plan, FIELDS, json!({"choices": null})).await), (422, issues.clone()));
    let without = json!({"name": "size", "field_type": "choice"});
    assert_eq!(detail(&setup.ask(&org, "POST", FIELDS, &without).await), (422, issues));
    // A client may send the whole record back.
    let mut whole = plan.clone();
    (whole["choices"], whole["required"]) = (json!(["free", "silver", "gold"]), json!(true));
    assert_eq!(put(&setup, &org, &plan, FIELDS, whole.clone()).await.status, 200);
    assert_eq!(setup.get(&org, &format!("{FIELDS}/{}", id_of(&plan))).await, {
        whole["updated_at"] = json!(setup.clock.now());
        whole
    });
}

#[tokio::test]
async fn two_fields_have_different_names_in_any_case() {
    let (setup, org) = started().await;
    let plan = field(&setup, &org, "plan", "string", json!({})).await;
    let again = json!({"name": "PLAN", "field_type": "number"});
    let taken = json!([issue(&at("body", "name"), "name_taken", "Another record has this value")]);
    assert_eq!(detail(&setup.ask(&org, "POST", FIELDS, &again).await), (409, taken));
    let other = setup.org().await;
    setup.post(&other, FIELDS, again.clone()).await;
    let deleted = setup.ask(&org, "DELETE", &format!("{FIELDS}/{}", id_of(&plan)), &Value::Null).await;
    assert_eq!(deleted.status, 200);
    setup.post(&org, FIELDS, again).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_at_once_make_fifty_fields_and_three_filters() {
    let (setup, org) = started().await;
    let bodies: Vec<Value> =
        (0..60).map(|number| json!({"name": format!("field {number}"), "field_type": "string"})).collect();
    let filters = (0..5).map(|number| json!({"name": format!("f{number}"), "field_type": "string", "is_filter": true}));
    let filters: Vec<Value> = filters.collect();
    let answers = join_all(filters.iter().map(|body| setup.ask(&org, "POST", FIELDS, body))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 3);
    let refused = answers.iter().find(|answer| answer.status == 409).unwrap();
    let message = "The organisation has 3 of 3 custom fields that are filters";
    assert_eq!(detail(refused), (409, json!([issue(&json!(["body"]), "quota_reached", message)])));
    let answers = join_all(bodies.iter().map(|body| setup.ask(&org, "POST", FIELDS, body))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 47);
    let refused = answers.iter().find(|answer| answer.status == 409).unwrap();
    let message = "The organisation has 50 of 50 custom fields";
    assert_eq!(detail(refused), (409, json!([issue(&json!(["body"]), "quota_reached", message)])));
    let all = setup.get(&org, &format!("{FIELDS}?size=100")).await;
    assert_eq!(all["total"], 50);
    // A field that is no filter any more makes room for another filter, and a deleted one for another field.
    let all = all["items"].as_array().unwrap();
    let filter = all.iter().find(|one| one["is_filter"] == true).unwrap();
    assert_eq!(put(&setup, &org, filter, FIELDS, json!({"is_filter": false})).await.status, 200);
    let deleted = setup.ask(&org, "DELETE", &format!("{FIELDS}/{}", id_of(filter)), &Value::Null).await;
    assert_eq!(deleted.status, 200);
    field(&setup, &org, "another", "number", json!({"is_filter": true})).await;
}

#[tokio::test]
async fn every_write_of_a_contact_reports_all_wrong_values() {
    let (setup, org) = started().await;
    of_each_type(&setup, &org).await;
    let known = setup.post(&org, &format!("{CONTACTS}/upsert"), json!({"email": "known@example.com"})).await;
    let wrong = json!({
        "city": 1, "seats": "12", "vip": "yes", "since": "31.1.2030", "plan": "bronze", "colour": "red", "Plan": "gold",
    });
    let wanted = |place: &[Value]| {
        let of = |(name, kind, message): (&str, &str, &str)| {
            issue(&json!([place, &[json!("custom_fields"), json!(name)]].concat()), kind, message)
        };
        let unknown = "No custom field of contacts has this name";
        json!(
            [
                ("Plan", "extra_forbidden", unknown),
                ("city", "string_type", "Input should be a valid string"),
                ("colour", "extra_forbidden", unknown),
                ("plan", "enum", "Input should be one of 'free', 'gold'"),
                ("seats", "float_type", "Input should be a valid number"),
                ("since", "date_parsing", "Input should be a valid date, such as 2030-01-31"),
                ("vip", "bool_type", "Input should be a valid boolean"),
            ]
            .map(of)
        )
    };
    let in_body = (422, wanted(&[json!("body")]));
    assert_eq!(detail(&upsert(&setup, &org, "new", wrong.clone()).await), in_body);
    assert_eq!(detail(&upsert(&setup, &org, "known", wrong.clone()).await), in_body);
    let body = json!({"first_name": "Ada", "custom_fields": wrong});
    assert_eq!(detail(&put(&setup, &org, &known, CONTACTS, body).await), in_body);
    let right = json!({"city": "Berlin", "seats": 12, "vip": true, "since": "2030-01-31", "plan": "gold"});
    let contacts = json!({"contacts": [
        {"email": "new@example.com", "custom_fields": wrong},
        {"email": "right@example.com", "custom_fields": right},
        {"email": "known@example.com", "custom_fields": wrong},
        {"custom_fields": {"plan": "bronze"}},
    ]});
    let imported = setup.post(&org, &format!("{CONTACTS}/import"), contacts).await;
    let place = |index: usize| [json!("body"), json!("contacts"), json!(index)];
    for (index, outcome) in [(0, "failed"), (1, "created"), (2, "failed"), (3, "failed")] {
        assert_eq!(imported["items"][index]["outcome"], outcome, "{imported}");
    }
    for index in [0, 2] {
        assert_eq!(imported["items"][index]["issues"], wanted(&place(index)));
    }
    let both: Vec<&Value> = imported["items"][3]["issues"].as_array().unwrap().iter().map(|one| &one["loc"]).collect();
    assert_eq!(
        both,
        [&json!(["body", "contacts", 3, "email"]), &json!(["body", "contacts", 3, "custom_fields", "plan"])]
    );
    let stored = setup.get(&org, &format!("{CONTACTS}/{}", id_of(&imported["items"][1]))).await;
    assert_eq!(stored["custom_fields"], right);
    let stored = setup.get(&org, &format!("{CONTACTS}/{}", id_of(&known))).await;
    assert_eq!((&stored["first_name"], &stored["custom_fields"]), (&Value::Null, &json!({})));
}

#[tokio::test]
async fn a_change_keeps_the_values_that_it_leaves_out() {
    let (setup, org) = started().await;
    of_each_type(&setup, &org).await;
    let contact = upsert(&setup, &org, "ada", json!({"plan": "gold", "seats": 1.50, "city": null})).await;
    let contact: Value = serde_json::from_str::<Value>(&contact.body).unwrap()["data"].clone();
    assert_eq!(contact["custom_fields"], json!({"plan": "gold", "seats": 1.50}));
    let path = format!("{CONTACTS}/{}", id_of(&contact));
    for (sent, wanted) in [
        (json!({"custom_fields": {}}), json!({"plan": "gold", "seats": 1.50})),
        (json!({"custom_fields": {"vip": false}}), json!({"plan": "gold", "seats": 1.50, "vip": false})),
        (json!({"custom_fields": {"plan": "free", "seats": null}}), json!({"plan": "free", "vip": false})),
        (json!({"first_name": "Ada"}), json!({"plan": "free", "vip": false})),
        (json!({"custom_fields": null}), json!({})),
    ] {
        let changed = setup.ask(&org, "PUT", &path, &sent).await;
        assert_eq!(changed.status, 200, "{}", changed.body);
        assert_eq!(setup.get(&org, &path).await["custom_fields"], wanted, "{sent}");
    }
    for (sent, wanted) in [
        (json!({"plan": "gold"}), json!({"plan": "gold"})),
        (json!(null), json!({"plan": "gold"})),
        (json!({"vip": true}), json!({"plan": "gold", "vip": true})),
        (json!({"plan": null}), json!({"vip": true})),
    ] {
        assert_eq!(upsert(&setup, &org, "ada", sent.clone()).await.status, 200);
        assert_eq!(setup.get(&org, &path).await["custom_fields"], wanted, "{sent}");
    }
}

#[tokio::test]
async fn a_required_field_is_needed_by_a_new_contact_and_stays() {
    let (setup, org) = started().await;
    upsert(&setup, &org, "old", json!({})).await;
    setup.pass(30);
    let plan = field(&setup, &org, "plan", "string", json!({"required": true})).await;
    let missing = (422, json!([of_value("plan", "missing", "Field required")]));
    assert_eq!(detail(&upsert(&setup, &org, "new", Value::Null).await), missing);
    assert_eq!(detail(&upsert(&setup, &org, "new", json!({"plan": null})).await), missing);
    // A contact that is older than the field needs a value only when it is sent.
    assert_eq!(upsert(&setup, &org, "old", Value::Null).await.status, 200);
    assert_eq!(detail(&upsert(&setup, &org, "old", json!({"plan": null})).await), missing);
    let new = upsert(&setup, &org, "new", json!({"plan": "gold"})).await;
    let new: Value = serde_json::from_str::<Value>(&new.body).unwrap()["data"].clone();
    for sent in [json!({"custom_fields": {"plan": null}}), json!({"custom_fields": null})] {
        assert_eq!(detail(&put(&setup, &org, &new, CONTACTS, sent).await), missing);
    }
    let contacts =
        json!({"contacts": [{"email": "third@example.com"}, {"email": "old@example.com", "last_name": "O"}]});
    let imported = setup.post(&org, &format!("{CONTACTS}/import"), contacts).await;
    let at = json!(["body", "contacts", 0, "custom_fields", "plan"]);
    assert_eq!(imported["items"][0]["issues"], json!([issue(&at, "missing", "Field required")]));
    assert_eq!(imported["items"][1]["outcome"], "updated");
    // A change of the definition holds in every process after half a minute.
    put(&setup, &org, &plan, FIELDS, json!({"required": false})).await;
    setup.pass(30);
    assert_eq!(upsert(&setup, &org, "third", Value::Null).await.status, 201);
}

#[tokio::test]
async fn values_stay_when_their_field_changes_or_goes() {
    let (setup, org) = started().await;
    let plan = field(&setup, &org, "plan", "choice", json!({"choices": ["free", "gold"]})).await;
    let contact = setup
        .post(
            &org,
            &format!("{CONTACTS}/upsert"),
            json!({"email": "ada@example.com", "custom_fields": {"plan": "gold"}}),
        )
        .await;
    let path = format!("{CONTACTS}/{}", id_of(&contact));
    put(&setup, &org, &plan, FIELDS, json!({"choices": ["free"]})).await;
    setup.pass(30);
    assert_eq!(setup.ask(&org, "PUT", &path, &json!({"last_name": "Lovelace"})).await.status, 200);
    assert_eq!(setup.get(&org, &path).await["custom_fields"], json!({"plan": "gold"}));
    let again = json!({"custom_fields": {"plan": "gold"}});
    let wrong = (422, json!([of_value("plan", "enum", "Input should be one of 'free'")]));
    assert_eq!(detail(&setup.ask(&org, "PUT", &path, &again).await), wrong);
    setup.ask(&org, "DELETE", &format!("{FIELDS}/{}", id_of(&plan)), &Value::Null).await;
    setup.pass(30);
    assert_eq!(setup.get(&org, &path).await["custom_fields"], json!({"plan": "gold"}));
    let unknown = (422, json!([of_value("plan", "extra_forbidden", "No custom field of contacts has this name")]));
    assert_eq!(detail(&setup.ask(&org, "PUT", &path, &again).await), unknown);
    assert_eq!(setup.ask(&org, "PUT", &path, &json!({"custom_fields": {"plan": null}})).await.status, 200);
    assert_eq!(setup.get(&org, &path).await["custom_fields"], json!({}));
}

#[tokio::test]
async fn fields_are_read_once_in_half_a_minute_and_before_a_refusal() {
    let (setup, org) = started().await;
    upsert(&setup, &org, "ada", Value::Null).await;
    let calls = async |name: &str, values: Value| upsert(&setup, &org, name, values).await.cost.calls;
    setup.pass(29);
    // The key is read again before that.
    calls("ada", Value::Null).await;
    let known = calls("ada", Value::Null).await;
    assert_eq!(calls("ada", json!({})).await, known);
    setup.pass(1);
    let first = calls("ada", Value::Null).await;
    assert_eq!(first, known + 1);
    assert_eq!(calls("ada", Value::Null).await, known);
    // A value of a new field is accepted at once, although the process still knows that there is none.
    field(&setup, &org, "plan", "string", json!({})).await;
    assert_eq!(upsert(&setup, &org, "ada", json!({"plan": "gold"})).await.status, 200);
}

#[tokio::test]
async fn a_list_is_filtered_by_up_to_three_fields() {
    let (setup, org) = started().await;
    field(&setup, &org, "plan", "choice", json!({"choices": ["free", "gold"], "is_filter": true})).await;
    field(&setup, &org, "vip", "boolean", json!({"is_filter": true})).await;
    field(&setup, &org, "city, or: town", "string", json!({"is_filter": true})).await;
    field(&setup, &org, "seats", "number", json!({})).await;
    let contacts: Vec<Value> = [
        ("a", json!({"plan": "gold", "vip": true, "city, or: town": "Berlin"})),
        ("b", json!({"plan": "gold", "vip": false, "city, or: town": "Köln, rechts"})),
        ("c", json!({"plan": "free", "vip": true, "city, or: town": "Berlin", "seats": 4})),
        ("d", json!({"plan": "gold", "city, or: town": "berlin"})),
        ("e", json!({})),
    ]
    .map(|(name, values)| json!({"email": format!("{name}@example.com"), "custom_fields": values}))
    .into();
    let made = setup.post(&org, &format!("{CONTACTS}/import"), json!({"contacts": contacts})).await;
    setup.settle().await;
    let town = |value: &str| format!("city%5C,%20or%5C:%20town:{value}");
    for (query, wanted) in [
        ("plan:gold".to_owned(), &["a", "b", "d"][..]),
        ("plan:free".to_owned(), &["c"]),
        ("vip:true".to_owned(), &["a", "c"]),
        (town("Berlin"), &["a", "c"]),
        (town("K%C3%B6ln%5C,%20rechts"), &["b"]),
        (town("Paris"), &[]),
        ("vip:true,plan:gold".to_owned(), &["a"]),
        ("plan:gold,vip:true,plan:gold".to_owned(), &["a"]),
        (format!("{},plan:free,vip:true", town("Berlin")), &["c"]),
        (format!("plan:gold,{}", town("Berlin")), &["a"]),
        ("plan:gold,plan:free".to_owned(), &[]),
    ] {
        assert_eq!(found(&setup, &org, &query).await, names(wanted), "{query}");
    }
    let refused = setup.ask(&org, "GET", &format!("{CONTACTS}?custom_field=seats:4"), &Value::Null).await;
    let at = at("query", "custom_field");
    let message = "Only a custom field with 'is_filter' filters the list";
    assert_eq!(detail(&refused), (422, json!([issue(&at, "value_error", message)])));
    let refused = setup.ask(&org, "GET", &format!("{CONTACTS}?custom_field=plan:bronze"), &Value::Null).await;
    assert_eq!(detail(&refused), (422, json!([issue(&at, "enum", "Input should be one of 'free', 'gold'")])));
    let four = setup.ask(&org, "GET", &format!("{CONTACTS}?custom_field=a:1,b:1,c:1,d:1"), &Value::Null).await;
    assert_eq!(detail(&four), (422, json!([issue(&at, "too_long", "Input should have at most 3 values")])));

    // The sets follow every change.
    let of = |index: usize| format!("{CONTACTS}/{}", id_of(&made["items"][index]));
    setup.ask(&org, "PUT", &of(0), &json!({"custom_fields": {"plan": "free"}})).await;
    setup.ask(&org, "PUT", &of(1), &json!({"custom_fields": {"plan": null}})).await;
    setup.ask(&org, "DELETE", &of(2), &Value::Null).await;
    assert_eq!(found(&setup, &org, "plan:gold").await.0, ["d"], "no page has a row that does not match");
    setup.settle().await;
    assert_eq!(found(&setup, &org, "plan:gold").await, names(&["d"]));
    assert_eq!(found(&setup, &org, "plan:free,vip:true").await, names(&["a"]));
    assert_eq!(found(&setup, &org, "vip:false").await, names(&["b"]));
    let by_email = format!("plan:free&email={}", "a@example.com");
    assert_eq!(found(&setup, &org, &by_email).await, names(&["a"]));
    assert_eq!(found(&setup, &org, &by_email.replace("free", "gold")).await, names(&[]));
}

#[tokio::test]
async fn a_new_filter_finds_no_values_of_a_former_field() {
    let (setup, org) = started().await;
    let plan = field(&setup, &org, "plan", "string", json!({"is_filter": true})).await;
    upsert(&setup, &org, "former", json!({"plan": "gold"})).await;
    setup.ask(&org, "DELETE", &format!("{FIELDS}/{}", id_of(&plan)), &Value::Null).await;
    setup.pass(30);
    field(&setup, &org, "plan", "string", json!({"is_filter": true})).await;
    upsert(&setup, &org, "new", json!({"plan": "gold"})).await;
    setup.settle().await;
    assert_eq!(found(&setup, &org, "plan:gold").await, names(&["new"]));
    // As soon as it is written again it is a value of the new field.
    upsert(&setup, &org, "former", json!({"plan": "gold"})).await;
    setup.settle().await;
    assert_eq!(found(&setup, &org, "plan:gold").await, names(&["former", "new"]));
}

#[tokio::test]
async fn contacts_without_a_filtered_value_are_in_no_set() {
    let (setup, org) = started().await;
    of_each_type(&setup, &org).await;
    let sets = || setup.find(None, "contains(pk, :set)", &json!({":set": {"S": "CONTACT#custom_field"}})).len();
    let made = upsert(&setup, &org, "ada", json!({"plan": "gold"})).await;
    assert_eq!(made.status, 201);
    setup.settle().await;
    assert_eq!(sets(), 0);
    field(&setup, &org, "size", "number", json!({"is_filter": true})).await;
    upsert(&setup, &org, "ada", json!({"size": 1})).await;
    setup.settle().await;
    assert!(sets() > 0);
}

#[tokio::test]
async fn values_that_take_too_much_room_are_refused() {
    let (setup, org) = started().await;
    for number in 0..5 {
        field(&setup, &org, &format!("text {number}"), "string", json!({})).await;
    }
    let text = "x".repeat(8000);
    for number in 0..4 {
        let name = format!("text {number}");
        let kept = upsert(&setup, &org, "ada", json!({name: text})).await;
        assert!(kept.status < 300, "{}", kept.body);
    }
    let before = setup.get(&org, CONTACTS).await;
    let contact = &before["items"][0];
    let place = json!(["body", "custom_fields"]);
    let (status, issues) = detail(&upsert(&setup, &org, "ada", json!({"text 4": text})).await);
    assert_eq!((status, &issues[0]["loc"], &issues[0]["type"]), (422, &place, &json!("too_long")));
    let body = json!({"custom_fields": {"text 4": text}});
    let (status, issues) = detail(&put(&setup, &org, contact, CONTACTS, body).await);
    assert_eq!((status, &issues[0]["loc"], &issues[0]["type"]), (422, &place, &json!("too_long")));
    let contacts = json!({"contacts": [{"email": "ada@example.com", "custom_fields": {"text 4": text}}]});
    let imported = setup.post(&org, &format!("{CONTACTS}/import"), contacts).await;
    assert_eq!(imported["items"][0]["issues"][0]["loc"], json!(["body", "contacts", 0, "custom_fields"]));
    assert_eq!(setup.get(&org, CONTACTS).await, before);
}
