//! Tests of captured forms and captured intents: what is checked, who hears of them, and what becomes of the contact.

use local::http::Call;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, data, demo_id, failure, get, id, kind, make, post, stack};
use crate::support::sending::{Org, Setup, id_of};

/// An organisation with a conversation through a widget, with a contact.
struct Talk {
    setup: Setup,
    org: Org,
    assistant: Value,
    contact: Value,
    conversation: Value,
}

impl Talk {
    async fn start() -> Self {
        let setup = Setup::start().await;
        let org = setup.org().await;
        let assistant = setup.post(&org, "/api/v1/assistant", json!({})).await;
        let widget = json!({"widget_type": "chat", "assistant_id": assistant["id"]});
        let widget = setup.post(&org, "/api/v1/widget", widget).await;
        let contact = setup.post(&org, "/api/v1/contact/upsert", json!({"email": "ada@example.com"})).await;
        let between = json!({
            "assistant_id": assistant["id"], "widget_id": widget["id"], "contact_id": contact["id"], "device_type": "mobile",
        });
        let conversation = setup.post(&org, "/api/v1/conversation", between).await;
        Self { setup, org, assistant, contact, conversation }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.setup.post(&self.org, path, body).await
    }

    async fn get(&self, path: &str) -> Value {
        self.setup.get(&self.org, path).await
    }

    /// A form for a name, a mail and a date, with more members.
    async fn form(&self, more: Value) -> Value {
        let mut form = json!({"name": "Appointment", "form_type": "simple", "fields": [
            {"name": "name", "type": "string", "required": true}, {"name": "mail", "type": "email"}, {"name": "when", "type": "date"},
        ]});
        form.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/api/v1/form", form).await
    }

    /// Fills in a form.
    async fn fill(&self, form: &Value, values: Value) -> Value {
        self.post(&self.path("captured_form"), json!({"form_id": form["id"], "field_values": values})).await
    }

    fn path(&self, of_it: &str) -> String {
        format!("/api/v1/conversation/{}/{of_it}", id_of(&self.conversation))
    }

    async fn webhook(&self, path: &str, mut fields: Value) -> Value {
        fields["endpoint"] = format!("{}{path}", self.setup.receiver.url).into();
        self.post("/api/v1/outbound_webhook", fields).await
    }

    /// The events that `path` has got.
    async fn events(&self, path: &str) -> Vec<Value> {
        self.setup.settle().await;
        self.setup.receiver.received(path).iter().map(|one| serde_json::from_slice(&one.body).unwrap()).collect()
    }

    async fn types(&self, path: &str) -> Vec<Value> {
        self.events(path).await.into_iter().map(|event| event["event"].clone()).collect()
    }

    async fn contact(&self) -> Value {
        self.get(&format!("/api/v1/contact/{}", id_of(&self.contact))).await
    }
}

#[tokio::test]
async fn all_values_are_checked_at_once_each_at_its_place() {
    let talk = Talk::start().await;
    let form = talk.form(json!({})).await;
    let wrong = json!({"form_id": form["id"], "field_values": {"mail": "ada", "when": "soon", "other": 1}});
    let refused = talk.setup.ask(&talk.org, "POST", &talk.path("captured_form"), &wrong).await;
    let (status, issues) = failure(&refused);
    assert_eq!(status, 422);
    let places: Vec<&str> = issues.iter().map(|issue| issue.split("] ").next().unwrap()).collect();
    let expected = ["name", "mail", "when", "other"].map(|name| format!("[\"body\",\"field_values\",\"{name}\""));
    assert_eq!(places, expected);
    let made = talk.fill(&form, json!({"name": "Ada"})).await;
    let path = format!("/api/v1/captured_form/{}", id_of(&made));
    let (status, issues) =
        failure(&talk.setup.ask(&talk.org, "PUT", &path, &json!({"field_values": {"when": 1}})).await);
    assert_eq!((status, issues.len()), (422, 2), "{issues:?}");
    assert_eq!(talk.get(&path).await, made);
}

#[tokio::test]
async fn a_form_with_fields_of_any_kind_can_be_filled_in() {
    let talk = Talk::start().await;
    let form = talk.form(json!({"fields": ["mail", {"label": "Age"}, {"name": "when", "type": "sundial"}]})).await;
    let values = json!({"mail": 1, "age": {"deep": []}, "when": "at noon"});
    let made = talk.fill(&form, values.clone()).await;
    assert_eq!(made["field_values"], values);
}

#[tokio::test]
async fn a_captured_form_knows_its_conversation_and_can_be_changed() {
    let talk = Talk::start().await;
    let form = talk.form(json!({})).await;
    let made = talk.fill(&form, json!({"name": "Ada"})).await;
    for name in ["widget_id", "assistant_id", "device_type"] {
        assert_eq!(made[name], talk.conversation[name], "{name}");
    }
    assert_eq!((&made["conversation_id"], &made["captured_form_id"]), (&talk.conversation["id"], &made["id"]));
    assert_eq!((&made["form_id"], &made["form_name"]), (&form["id"], &json!("Appointment")));
    let path = format!("/api/v1/captured_form/{}", id_of(&made));
    let body = json!({"field_values": {"name": "Grace"}, "attributes": {"by": "Bo"}});
    data(&talk.setup.ask(&talk.org, "PUT", &path, &body).await);
    let changed = talk.get(&path).await;
    assert_eq!((&changed["field_values"], &changed["attributes"]), (&body["field_values"], &body["attributes"]));
}

#[tokio::test]
async fn captured_forms_are_listed_by_form_and_by_conversation() {
    let talk = Talk::start().await;
    let (one, other) = (talk.form(json!({})).await, talk.form(json!({})).await);
    let elsewhere = talk.setup.open(&talk.org, &talk.assistant).await;
    let first = talk.fill(&one, json!({"name": "Ada"})).await;
    talk.fill(&other, json!({"name": "Bo"})).await;
    let path = format!("/api/v1/conversation/{}/captured_form", id_of(&elsewhere));
    talk.post(&path, json!({"form_id": one["id"], "field_values": {"name": "Cy"}})).await;
    talk.setup.settle().await;
    let of_form = format!("/api/v1/capturedform/{}?page=1", id_of(&one));
    let of_both = format!("{of_form}&conversation_id={}", id_of(&talk.conversation));
    for (path, total) in [(&of_form, 2), (&of_both, 1), (&talk.path("captured_form"), 2), (&path, 1)] {
        assert_eq!(talk.get(path).await["total"], total, "{path}");
    }
    assert_eq!(talk.get(&of_both).await["items"], json!([first]));
}

#[tokio::test]
async fn the_webhook_of_a_form_gets_what_is_filled_in_once() {
    let talk = Talk::start().await;
    let own = talk.webhook("/own", json!({"events": ["captured_form.*"]})).await;
    talk.webhook("/other", json!({"events": ["captured_form.created"]})).await;
    let deaf = talk.webhook("/deaf", json!({"events": ["tag.created"]})).await;
    let (form, silent) = (talk.form(json!({"webhook_id": own["id"]})).await, talk.form(json!({})).await);
    let of_deaf = talk.form(json!({"webhook_id": deaf["id"]})).await;
    let made = talk.fill(&form, json!({"name": "Ada"})).await;
    talk.fill(&silent, json!({"name": "Bo"})).await;
    let filled = talk.fill(&of_deaf, json!({"name": "Cy"})).await;
    let path = format!("/api/v1/captured_form/{}", id_of(&filled));
    talk.setup.settle().await;
    data(&talk.setup.ask(&talk.org, "PUT", &path, &json!({"field_values": {"name": "Di"}})).await);
    assert_eq!(talk.types("/deaf").await, ["captured_form.created", "captured_form.updated"]);
    assert_eq!(talk.types("/other").await.len(), 3);
    let events = talk.events("/own").await;
    assert_eq!(events.len(), 4, "{events:?}");
    let of_it: Vec<_> = events.iter().filter(|event| event["data"]["id"] == made["id"]).collect();
    assert_eq!(of_it.len(), 1);
    assert_eq!(of_it[0]["data"], made);
}

#[tokio::test]
async fn the_webhook_of_a_form_is_enough_to_hear_of_it() {
    let talk = Talk::start().await;
    let deaf = talk.webhook("/deaf", json!({"events": ["tag.created"]})).await;
    let form = talk.form(json!({"webhook_id": deaf["id"]})).await;
    talk.fill(&form, json!({"name": "Ada"})).await;
    assert_eq!(talk.types("/deaf").await, ["captured_form.created"]);
    // What did not arrive is sent again.
    let path = format!("/api/v1/outbound_webhook/{}", id_of(&deaf));
    data(&talk.setup.ask(&talk.org, "PUT", &path, &json!({"enabled": false})).await);
    talk.fill(&form, json!({"name": "Bo"})).await;
    talk.setup.settle().await;
    data(&talk.setup.ask(&talk.org, "PUT", &path, &json!({"enabled": true})).await);
    let recovered = talk.post(&format!("{path}/recover"), json!({"since": "2026-01-01T00:00:00Z"})).await;
    assert_eq!(recovered["recovered"], 1);
    talk.setup.minute().await;
    assert_eq!(talk.types("/deaf").await.len(), 2);
}

#[tokio::test]
async fn a_webhook_without_events_hears_of_what_is_captured() {
    let talk = Talk::start().await;
    talk.webhook("/hook", json!({})).await;
    let form = talk.form(json!({})).await;
    let intent = talk.post("/api/v1/intent", json!({"name": "Prices"})).await;
    talk.fill(&form, json!({"name": "Ada"})).await;
    talk.post(&talk.path("captured_intent"), json!({"intent_id": intent["id"], "confidence": 0.5})).await;
    let mut types = talk.types("/hook").await;
    types.sort_by_key(Value::to_string);
    assert_eq!(types, ["captured_form.created", "captured_intent.created", "conversation.opened"]);
    let form = format!("/api/v1/form/{}", id_of(&form));
    data(&talk.setup.ask(&talk.org, "DELETE", &form, &Value::Null).await);
    assert!(talk.types("/hook").await.contains(&json!("captured_form.deleted")));
}

#[tokio::test]
async fn a_form_maps_its_values_to_the_contact() {
    let talk = Talk::start().await;
    let mapping = json!({"name": "first_name", "mail": "email", "when": "attributes.appointment"});
    let form = talk.form(json!({"contact_mapping": mapping})).await;
    assert_eq!(form["contact_mapping"], mapping);
    let values = json!({"name": "Ada", "mail": "lovelace@example.com", "when": "2030-01-31"});
    let made = talk.fill(&form, values).await;
    assert_eq!(made["contact_issues"], json!([]));
    let contact = talk.contact().await;
    assert_eq!((&contact["first_name"], &contact["email"]), (&json!("Ada"), &json!("lovelace@example.com")));
    assert_eq!(contact["attributes"], json!({"appointment": "2030-01-31"}));
    // What is not sent stays as it is.
    let path = format!("/api/v1/captured_form/{}", id_of(&made));
    data(&talk.setup.ask(&talk.org, "PUT", &path, &json!({"field_values": {"name": "Grace"}})).await);
    let contact = talk.contact().await;
    assert_eq!((&contact["first_name"], &contact["email"]), (&json!("Grace"), &json!("lovelace@example.com")));
}

#[tokio::test]
async fn a_value_that_the_contact_does_not_take_is_only_noted() {
    let talk = Talk::start().await;
    talk.post("/api/v1/contact/upsert", json!({"email": "grace@example.com", "phone_number": "+31201234567"})).await;
    let mapping = json!({"name": "first_name", "mail": "email", "phone": "phone_number", "note": "attributes.note"});
    let form = talk.form(json!({"contact_mapping": mapping, "fields": []})).await;
    let form_path = format!("/api/v1/form/{}", id_of(&form));
    data(&talk.setup.ask(&talk.org, "PUT", &form_path, &json!({"fields": [{"label": "any"}]})).await);
    let values =
        json!({"name": "Ada", "mail": "GRACE@example.com", "phone": "+31 20 1234567", "note": "x".repeat(32_000)});
    let long = json!({"attributes": {"a": "y".repeat(2_000)}});
    let contact = format!("/api/v1/contact/{}", id_of(&talk.contact));
    data(&talk.setup.ask(&talk.org, "PUT", &contact, &long).await);
    let made = talk.fill(&form, values).await;
    let reasons: Vec<_> = made["contact_issues"].as_array().unwrap().iter().map(|one| one["reason"].clone()).collect();
    assert_eq!(reasons, ["email_taken", "too_long", "phone_taken"]);
    let contact = talk.contact().await;
    assert_eq!((&contact["first_name"], &contact["email"]), (&json!("Ada"), &json!("ada@example.com")));
    assert_eq!(contact["attributes"], long["attributes"]);
    let local = talk.fill(&form, json!({"mail": "nobody", "phone": "0201"})).await;
    let reasons: Vec<_> = local["contact_issues"].as_array().unwrap().iter().map(|one| one["reason"].clone()).collect();
    assert_eq!(reasons, ["not_valid", "not_valid"]);
}

#[tokio::test]
async fn a_mapping_names_fields_of_a_contact() {
    let stack = stack().await;
    let form = json!({"name": "A", "form_type": "simple", "contact_mapping": {"a": "org_id", "b": "attributes.", "": "email", "d": 1}});
    let (status, issues) = failure(&stack.answer(&post("/api/v1/form", ACME, form.to_string())).await);
    assert_eq!((status, issues.len()), (422, 4), "{issues:?}");
}

#[tokio::test]
async fn a_repeated_request_gets_the_captured_form_of_the_first() {
    let talk = Talk::start().await;
    let form = talk.form(json!({"contact_mapping": {"name": "first_name"}})).await;
    let body = json!({"form_id": form["id"], "field_values": {"name": "Ada"}}).to_string();
    let headers: std::collections::BTreeMap<_, _> = [("idempotency-key".to_owned(), "one".to_owned())].into();
    let asked = call("POST", &talk.path("captured_form"), &talk.org.key);
    let asked = Call { body: body.into(), headers, ..asked };
    let first = data(&talk.setup.stack.answer(&asked).await);
    let second = data(&talk.setup.stack.answer(&asked).await);
    assert_eq!(first, second);
    talk.setup.settle().await;
    assert_eq!(talk.get(&talk.path("captured_form")).await["total"], 1);
}

#[tokio::test]
async fn conversations_are_listed_by_a_captured_intent() {
    let talk = Talk::start().await;
    let other = talk.setup.open(&talk.org, &talk.assistant).await;
    let (prices, hours) = (
        talk.post("/api/v1/intent", json!({"name": "Prices"})).await,
        talk.post("/api/v1/intent", json!({"name": "Hours"})).await,
    );
    for (conversation, intent) in [(&talk.conversation, &prices), (&talk.conversation, &prices), (&other, &hours)] {
        let path = format!("/api/v1/conversation/{}/captured_intent", id_of(conversation));
        talk.post(&path, json!({"intent_id": intent["id"]})).await;
    }
    talk.setup.settle().await;
    let by = |intent: &Value, more: &str| format!("/api/v1/conversation?intent_id={}{more}", id_of(intent));
    let ids = async |path: String| {
        let page = talk.get(&path).await;
        let items: Vec<Value> = page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
        assert_eq!(page["total"], items.len());
        items
    };
    let one = vec![talk.conversation["id"].clone()];
    assert_eq!(ids(by(&prices, "")).await, one);
    assert_eq!(ids(by(&hours, "")).await, [other["id"].clone()]);
    for (more, found) in [
        ("&status=open".to_owned(), true),
        ("&status=closed".to_owned(), false),
        (format!("&contact_id={}", id_of(&talk.contact)), true),
        ("&date_from=2026-02-01&date_to=2026-02-02".to_owned(), true),
        ("&date_from=2026-02-02".to_owned(), false),
    ] {
        assert_eq!(ids(by(&prices, &more)).await == one, found, "{more}");
    }
    assert_eq!(ids("/api/v1/conversation".to_owned()).await.len(), 2);
    let page = talk.get(&format!("/api/v1/capturedintent?intent_id={}", id_of(&prices))).await;
    assert_eq!(page["total"], 2);
    let closed = talk.setup.close(&talk.org, &talk.conversation).await;
    talk.setup.settle().await;
    assert_eq!(ids(by(&prices, "&status=closed")).await, one);
    let path = format!("/api/v1/conversation/{}", id_of(&closed));
    data(&talk.setup.ask(&talk.org, "DELETE", &path, &Value::Null).await);
    let path = format!("/api/v1/intent/{}", id_of(&hours));
    data(&talk.setup.ask(&talk.org, "DELETE", &path, &Value::Null).await);
    talk.setup.settle().await;
    for intent in [&prices, &hours] {
        assert_eq!(ids(by(intent, "")).await, Vec::<Value>::new());
    }
    assert_eq!(talk.get("/api/v1/capturedintent").await["total"], 0);
}

#[tokio::test]
async fn a_captured_intent_has_a_confidence_and_a_message() {
    let stack = stack().await;
    let path = format!("/api/v1/conversation/{}/captured_intent", demo_id('a', "conversation_id"));
    let (intent, message) = (id('a', kind::INTENT, 0), id('a', kind::MESSAGE, 0));
    let body = json!({"intent_id": intent, "confidence": 0.25, "message_id": message});
    let made = make(&stack, &path, body.clone()).await;
    let read = get(&stack, &format!("/api/v1/captured_intent/{made}")).await;
    for name in ["intent_id", "confidence", "message_id"] {
        assert_eq!(read[name], body[name], "{name}");
    }
    assert_eq!(read["intent_name"], "Prices");
    for wrong in [json!({"confidence": 1.5}), json!({"confidence": -1}), json!({"message_id": id('a', kind::TAG, 0)})] {
        let mut body = json!({"intent_id": intent});
        body.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        let (status, issues) = failure(&stack.answer(&post(&path, ACME, body.to_string())).await);
        assert_eq!((status, issues.len()), (422, 1), "{wrong}");
    }
}

/// Several requests write to the same contact at once: none is lost, and none is refused.
#[tokio::test]
async fn forms_filled_in_at_once_all_reach_the_contact() {
    let talk = Talk::start().await;
    let form = talk
        .form(json!({"fields": [{"label": "any"}], "contact_mapping": {"a": "attributes.a", "b": "attributes.b"}}))
        .await;
    let one = talk.fill(&form, json!({"a": 1}));
    let other = talk.fill(&form, json!({"b": 2}));
    tokio::join!(one, other);
    assert_eq!(talk.contact().await["attributes"], json!({"a": 1, "b": 2}));
}
