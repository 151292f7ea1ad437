//! Lists the calls of each operation for the tests: a plain operation is one line of [`EXERCISES`].

use local::http::Call;
use local::payment_provider::event::NewPaymentEvent;
use serde_json::{Value, json};
use shared::request::route::Route;
use shared::routes;

use crate::support::fixture::{
    ACME, ACME_READ_ONLY, NOW, call, demo_id, demo_payment_secret, id, kind, path, post, signed, valid_call,
};

/// The body around the id of another record.
pub type BodyAround = fn(&str) -> Value;

/// An operation with the calls of the tests. The defaults are the ones of a plain operation: see [`Exercise::of`].
pub struct Exercise {
    pub route: &'static Route,
    /// The body of a call that succeeds for the organisation `a` or `b`.
    pub body: fn(char) -> String,
    /// The query of a call that succeeds for the organisation `a` or `b`, if it needs one.
    pub query: fn(char) -> String,
    /// More requests whose answers are recorded, above all failures. Their events are named `<operation>.<case>`.
    pub recorded: fn() -> Vec<(&'static str, Call)>,
    /// The rows in `docs/COST.md`: the text after the operation's name, and the call. They are measured in this order.
    pub costs: fn() -> Vec<(&'static str, Call)>,
    /// Whether the first call of a process costs more, because it reads the head of a list before it appends.
    pub first_costs_more: bool,
    /// Requests in order, of which the last one makes calls of the table that no recorded event makes. `{id}` in a path
    /// is the id in the answer before.
    pub calls_more: fn() -> Vec<Call>,
    /// The ids in the body that name other records: their kind, and the body around one.
    pub names: &'static [(u8, BodyAround)],
    /// The id that the demo set has for a path parameter, in an organisation.
    pub demo: fn(char, &str) -> String,
    /// The parameters of the path that name another record of the demo set than `demo` does, with its number.
    pub numbers: &'static [(&'static str, u32)],
    /// The texts in the body that only its limit bounds: the rest of the body, and the field.
    pub texts: fn() -> Vec<(Value, &'static str)>,
    /// The number of rows of the demo set's two organisations, if the operation is a list.
    pub rows: Option<[u64; 2]>,
    /// The result of a further request.
    pub further: Further,
}

/// The result of a further request of an operation, with another idempotency key.
#[derive(Clone, Copy, PartialEq)]
pub enum Further {
    /// It has its effect again.
    Effect,
    /// It succeeds, and has no effect.
    NoEffect,
    /// It is refused with 409.
    Conflict,
}

impl Exercise {
    /// A plain operation: no body, one cost, one recorded event.
    const fn of(route: &'static Route) -> Self {
        Self {
            route,
            body: |_| String::new(),
            query: |_| String::new(),
            recorded: Vec::new,
            costs: Vec::new,
            first_costs_more: false,
            calls_more: Vec::new,
            names: &[],
            demo: demo_id,
            numbers: &[],
            texts: Vec::new,
            rows: None,
            further: Further::Effect,
        }
    }
}

/// Every operation, in the order of the route table. The operations with signed requests come last.
pub const EXERCISES: &[Exercise] = &[
    Exercise {
        body: |_| r#"{"name":"Reception"}"#.into(),
        recorded: || {
            let invalid =
                r#"{"voice":"maybe","voice_languages":["en-GB","english"],"assistant_type":"robot","webhook_id":"x"}"#;
            vec![
                ("with-webhook", assistant_with_webhook()),
                ("invalid", with_body(&routes::CREATE_ASSISTANT, invalid)),
                ("not-json", with_body(&routes::CREATE_ASSISTANT, r#"{"name": "Reception",}"#)),
                ("read-only-key", post(routes::CREATE_ASSISTANT.path, ACME_READ_ONLY, "{}")),
            ]
        },
        costs: || vec![("", plain(&routes::CREATE_ASSISTANT)), (", with a webhook", assistant_with_webhook())],
        names: &[(kind::WEBHOOK, |id| json!({"webhook_id": id}))],
        texts: || vec![(json!({"name": "x"}), "system_prompt"), (json!({"name": "x"}), "description")],
        first_costs_more: true,
        ..Exercise::of(&routes::CREATE_ASSISTANT)
    },
    Exercise {
        body: |_| {
            r#"{"name":"Pro","description":"All of it","bots_count":5,"queries_count":1000,"words_count":50000,"voice_seconds":3600,"premium_support":true}"#.into()
        },
        recorded: || {
            let incomplete = r#"{"name":"Pro","bots_count":-1}"#;
            vec![
                ("incomplete", with_body(&routes::CREATE_AGENCY_BILLING_PLAN, incomplete)),
                ("default", with_body(&routes::CREATE_AGENCY_BILLING_PLAN, default_plan())),
            ]
        },
        costs: || {
            let default = with_body(&routes::CREATE_AGENCY_BILLING_PLAN, default_plan());
            vec![("", plain(&routes::CREATE_AGENCY_BILLING_PLAN)), (", as the default", default)]
        },
        calls_more: || vec![no_default_plan(), with_body(&routes::CREATE_AGENCY_BILLING_PLAN, default_plan())],
        first_costs_more: true,
        ..Exercise::of(&routes::CREATE_AGENCY_BILLING_PLAN)
    },
    Exercise {
        body: |_| r#"{"branding":{"name":"Acme"}}"#.into(),
        recorded: || {
            let globex = r#"{"org_id":"01900000-0000-7000-8000-b00000000001"}"#;
            vec![("other-organisation", with_body(&routes::CREATE_AGENCY, globex))]
        },
        first_costs_more: true,
        ..Exercise::of(&routes::CREATE_AGENCY)
    },
    Exercise {
        body: |organisation| format!(r#"{{"contact_ids":["{}"]}}"#, id(organisation, kind::CONTACT, 0)),
        recorded: || {
            let (own, others) = (id('a', kind::CONTACT, 1), id('b', kind::CONTACT, 1));
            let silent = at(&routes::RUN_CAMPAIGN, &id('a', kind::WIDGET, 3));
            vec![
                ("unknown-contact", campaign(&[&own, &others])),
                ("nothing-to-say", Call { body: campaign(&[&own]).body, ..silent }),
            ]
        },
        costs: || {
            let contacts: Vec<_> = (0..25).map(|number| id('a', kind::CONTACT, number)).collect();
            let contacts: Vec<_> = contacts.iter().map(String::as_str).collect();
            vec![
                (", 1 contact", campaign(&contacts[1..2])),
                (", 25 contacts", campaign(&contacts)),
                (", the same request again", campaign(&contacts)),
            ]
        },
        first_costs_more: true,
        names: &[(kind::CONTACT, |id| json!({"contact_ids": [id]}))],
        ..Exercise::of(&routes::RUN_CAMPAIGN)
    },
    Exercise {
        recorded: || {
            vec![
                ("no-key", Call { query: String::new(), ..plain(&routes::GET_AGENT_LIST) }),
                ("page-out-of-bounds", with_query(&routes::GET_AGENT_LIST, "&page=0&size=101")),
            ]
        },
        costs: || two_pages(&routes::GET_AGENT_LIST),
        rows: Some([120, 3]),
        ..Exercise::of(&routes::GET_AGENT_LIST)
    },
    Exercise {
        costs: || two_pages(&routes::READ_LINK_TAG_ENTITY_LIST),
        rows: Some([250, 2]),
        ..Exercise::of(&routes::READ_LINK_TAG_ENTITY_LIST)
    },
    Exercise {
        recorded: || vec![("not-configured", at(&routes::SETUP_PAYMENT_WEBHOOK, &id('a', kind::AGENCY, 2)))],
        costs: || {
            vec![(", first", plain(&routes::SETUP_PAYMENT_WEBHOOK)), (", again", plain(&routes::SETUP_PAYMENT_WEBHOOK))]
        },
        ..Exercise::of(&routes::SETUP_PAYMENT_WEBHOOK)
    },
    Exercise::of(&routes::DELETE_LINKED_ASSISTANT_DATASOURCE),
    Exercise::of(&routes::DELETE_DATASOURCE_FILE),
    Exercise::of(&routes::DELETE_CAMPAIGN_CONTACT),
    Exercise::of(&routes::DELETE_INTENT),
    Exercise::of(&routes::DELETE_FORM),
    Exercise {
        recorded: || {
            vec![
                ("not-found", at(&routes::DELETE_TAG, &id('b', kind::TAG, 1))),
                ("not-a-uuid", at(&routes::DELETE_TAG, "vip")),
                ("bad-key", valid_call(&routes::DELETE_TAG, 'a', "in-wrong")),
            ]
        },
        ..Exercise::of(&routes::DELETE_TAG)
    },
    Exercise {
        body: |_| r#"{"endpoint":"https://93.184.215.14/hooks","name":"Events"}"#.into(),
        recorded: || {
            let metadata = r#"{"endpoint":"https://169.254.169.254/latest"}"#;
            vec![("not-public", with_body(&routes::CREATE_WEBHOOK, metadata))]
        },
        first_costs_more: true,
        texts: || vec![(json!({"endpoint": "https://93.184.215.14/"}), "name")],
        ..Exercise::of(&routes::CREATE_WEBHOOK)
    },
    Exercise::of(&routes::READ_WEBHOOK),
    Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_WEBHOOKS) },
    Exercise {
        body: |_| r#"{"name":"Renamed"}"#.into(),
        texts: || vec![(json!({"enabled": false}), "name")],
        ..Exercise::of(&routes::UPDATE_WEBHOOK)
    },
    Exercise::of(&routes::DELETE_WEBHOOK),
    Exercise::of(&routes::ROTATE_WEBHOOK_SECRET),
    Exercise {
        recorded: || vec![("disabled", at(&routes::SEND_TEST_EVENT, &id('a', kind::WEBHOOK, 0)))],
        first_costs_more: true,
        ..Exercise::of(&routes::SEND_TEST_EVENT)
    },
    Exercise {
        body: |_| r#"{"since":"2026-01-25T00:00:00.000Z"}"#.into(),
        recorded: || {
            let body = r#"{"since":"2025-12-24T00:00:00.000Z","until":"2025-12-01T00:00:00.000Z","events":["tags.*"]}"#;
            let disabled = at(&routes::RECOVER_WEBHOOK, &id('a', kind::WEBHOOK, 0));
            vec![("invalid", with_body(&routes::RECOVER_WEBHOOK, body)), ("disabled", disabled)]
        },
        calls_more: || {
            let events = r#"{"endpoint":"https://93.184.215.14/","events":["conversation.closed"]}"#;
            let recover = Call { body: plain(&routes::RECOVER_WEBHOOK).body, ..at(&routes::RECOVER_WEBHOOK, "{id}") };
            vec![with_body(&routes::CREATE_WEBHOOK, events), recover]
        },
        further: Further::NoEffect,
        ..Exercise::of(&routes::RECOVER_WEBHOOK)
    },
    Exercise {
        recorded: || vec![("of-one-state", with_query(&routes::LIST_DELIVERIES, "&state=dead&order=desc"))],
        costs: || {
            let dead = "&state=dead&date_from=2026-01-01";
            vec![("", plain(&routes::LIST_DELIVERIES)), (", of one state", with_query(&routes::LIST_DELIVERIES, dead))]
        },
        rows: Some([1, 1]),
        ..Exercise::of(&routes::LIST_DELIVERIES)
    },
    Exercise {
        recorded: || vec![("too-long", with_query(&routes::READ_DELIVERY_STATS, "&date_from=2026-01-01"))],
        ..Exercise::of(&routes::READ_DELIVERY_STATS)
    },
    // A delivery that is ready stays as it is.
    Exercise { further: Further::NoEffect, ..Exercise::of(&routes::REDELIVER) },
    Exercise {
        body: |organisation| format!(r#"{{"assistant_id":"{}"}}"#, id(organisation, kind::ASSISTANT, 1)),
        recorded: || {
            let (assistant, contact) = (id('a', kind::ASSISTANT, 1), id('b', kind::CONTACT, 1));
            let body = format!(r#"{{"assistant_id":"{assistant}","contact_id":"{contact}"}}"#);
            vec![("unknown-contact", with_body(&routes::OPEN_CONVERSATION, body))]
        },
        first_costs_more: true,
        names: &[
            (kind::ASSISTANT, |id| json!({"assistant_id": id})),
            (kind::WIDGET, |id| json!({"assistant_id": demo_id('a', "assistant_id"), "widget_id": id})),
            (kind::CONTACT, |id| json!({"assistant_id": demo_id('a', "assistant_id"), "contact_id": id})),
        ],
        texts: || {
            let assistant = json!({"assistant_id": demo_id('a', "assistant_id")});
            vec![(assistant.clone(), "device_type"), (assistant, "attributes")]
        },
        ..Exercise::of(&routes::OPEN_CONVERSATION)
    },
    Exercise {
        body: |_| r#"{"sender_type":"user","text":"Until when are you open?"}"#.into(),
        recorded: || {
            let body = r#"{"sender_type":"user","text":"One more thing"}"#.into();
            let closed = Call { body, ..at(&routes::ADD_MESSAGE, &id('a', kind::CONVERSATION, 0)) };
            vec![("closed", closed), ("answer", answer())]
        },
        costs: || vec![("", plain(&routes::ADD_MESSAGE)), (", an answer from a data source", answer())],
        names: &[(kind::DATASOURCE, |id| json!({"sender_type": "bot", "text": "9 to 5", "data_source_ids": [id]}))],
        texts: || vec![(json!({"sender_type": "user"}), "text")],
        ..Exercise::of(&routes::ADD_MESSAGE)
    },
    Exercise {
        body: |_| r#"{"summary":"Asked for the opening hours","rating":5,"outcome":"answered"}"#.into(),
        recorded: || vec![("invalid", with_body(&routes::UPDATE_CONVERSATION, r#"{"rating":6,"attributes":[]}"#))],
        texts: || vec![(json!({"rating": 5}), "device_type"), (json!({"rating": 5}), "attributes")],
        ..Exercise::of(&routes::UPDATE_CONVERSATION)
    },
    Exercise {
        body: |_| r#"{"reason":"solved"}"#.into(),
        recorded: || {
            let without = with_body(&routes::CLOSE_CONVERSATION, "");
            vec![
                ("closed", at(&routes::CLOSE_CONVERSATION, &id('a', kind::CONVERSATION, 0))),
                ("without-reason", without),
            ]
        },
        calls_more: opened_and_closed,
        further: Further::Conflict,
        ..Exercise::of(&routes::CLOSE_CONVERSATION)
    },
    Exercise::of(&routes::READ_CONVERSATION),
    Exercise {
        recorded: || {
            vec![
                ("open-ones", with_query(&routes::LIST_CONVERSATIONS, "&status=open")),
                ("no-date", with_query(&routes::LIST_CONVERSATIONS, "&date_from=yesterday")),
            ]
        },
        costs: || {
            let of_assistant = format!("&status=open&assistant_id={}", id('a', kind::ASSISTANT, 1));
            vec![
                (", all", plain(&routes::LIST_CONVERSATIONS)),
                (", of one status", with_query(&routes::LIST_CONVERSATIONS, "&status=open")),
                (", of one status and assistant", with_query(&routes::LIST_CONVERSATIONS, &of_assistant)),
                (", of a day", with_query(&routes::LIST_CONVERSATIONS, "&date_from=2026-01-01&date_to=2026-01-02")),
            ]
        },
        // A conversation that is closed leaves a hole in the list of the open ones.
        calls_more: || {
            let open_ones = with_query(&routes::LIST_CONVERSATIONS, "&status=open");
            opened_and_closed().into_iter().chain([open_ones]).collect()
        },
        rows: Some([2, 2]),
        ..Exercise::of(&routes::LIST_CONVERSATIONS)
    },
    Exercise::of(&routes::READ_CAMPAIGN),
    Exercise { rows: Some([3, 3]), ..Exercise::of(&routes::LIST_CAMPAIGN_CONTACTS) },
    Exercise {
        body: |_| r#"{"first_name":"Ada","email":"ada@example.com","phone_number":"+49 151 2345678"}"#.into(),
        recorded: || {
            let existing = r#"{"email":"CONTACT1@acme.example","last_name":"Lovelace"}"#;
            let of_two = r#"{"email":"contact1@acme.example","phone_number":"31200002"}"#;
            let query = "&email=grace@example.com&phone_number=4915123456&first_name=Grace";
            vec![
                ("existing", with_body(&routes::UPSERT_CONTACT, existing)),
                ("query", Call { body: Vec::new(), ..with_query(&routes::UPSERT_CONTACT, query) }),
                ("empty", Call { body: Vec::new(), ..with_query(&routes::UPSERT_CONTACT, "&email=&phone_number=") }),
                ("of-two-contacts", with_body(&routes::UPSERT_CONTACT, of_two)),
                ("nothing-to-find-it-by", with_body(&routes::UPSERT_CONTACT, r#"{"first_name":"Ada"}"#)),
                (
                    "custom-fields",
                    with_body(
                        &routes::UPSERT_CONTACT,
                        r#"{"email":"ada@example.com","custom_fields":{"plan":"gold"}}"#,
                    ),
                ),
                (
                    "wrong-custom-fields",
                    with_body(
                        &routes::UPSERT_CONTACT,
                        r#"{"email":"ada@example.com","custom_fields":{"plan":"bronze","seats":12}}"#,
                    ),
                ),
            ]
        },
        costs: || {
            let existing = r#"{"email":"contact1@acme.example","last_name":"Lovelace"}"#;
            let new = r#"{"first_name":"Joan","email":"joan@example.com","phone_number":"+49 151 2345679"}"#;
            vec![
                (", new", with_body(&routes::UPSERT_CONTACT, new)),
                (
                    ", new, without a telephone number",
                    with_body(&routes::UPSERT_CONTACT, r#"{"email":"grace@example.com"}"#),
                ),
                (", existing", with_body(&routes::UPSERT_CONTACT, existing)),
                (", unchanged", with_body(&routes::UPSERT_CONTACT, existing)),
            ]
        },
        texts: || vec![(json!({"email": "ada@example.com"}), "first_name")],
        first_costs_more: true,
        further: Further::NoEffect,
        ..Exercise::of(&routes::UPSERT_CONTACT)
    },
    Exercise {
        body: |_| {
            r#"{"contacts":[{"email":"ada@example.com"},{"email":"contact1@acme.example","last_name":"One"},{"last_name":"Nobody"}]}"#.into()
        },
        recorded: || vec![("none", with_body(&routes::IMPORT_CONTACTS, r#"{"contacts":[]}"#))],
        further: Further::NoEffect,
        ..Exercise::of(&routes::IMPORT_CONTACTS)
    },
    Exercise {
        body: |_| r#"{"last_name":"Renamed"}"#.into(),
        recorded: || {
            vec![
                ("taken", with_body(&routes::UPDATE_CONTACT, r#"{"email":"Contact2@acme.example"}"#)),
                ("custom-fields", with_body(&routes::UPDATE_CONTACT, r#"{"custom_fields":{"plan":"gold"}}"#)),
                ("wrong-custom-fields", with_body(&routes::UPDATE_CONTACT, r#"{"custom_fields":{"birthday":"soon"}}"#)),
            ]
        },
        costs: || {
            let custom = r#"{"custom_fields":{"plan":"gold"}}"#;
            vec![
                ("", plain(&routes::UPDATE_CONTACT)),
                (", with a custom field", with_body(&routes::UPDATE_CONTACT, custom)),
            ]
        },
        calls_more: || vec![with_body(&routes::UPDATE_CONTACT, r#"{"email":"other@example.com","phone_number":null}"#)],
        ..Exercise::of(&routes::UPDATE_CONTACT)
    },
    Exercise::of(&routes::DELETE_CONTACT),
    Exercise {
        body: |_| r#"{"first_name":"Ada","last_name":"Lovelace","email":"ada@example.com"}"#.into(),
        recorded: || {
            let taken = r#"{"first_name":"Ada","last_name":"Lovelace","email":"User1@acme.example"}"#;
            vec![
                ("taken", with_body(&routes::CREATE_USER, taken)),
                ("invalid", with_body(&routes::CREATE_USER, r#"{"first_name":"Ada","email":"ada"}"#)),
            ]
        },
        further: Further::Conflict,
        ..Exercise::of(&routes::CREATE_USER)
    },
    Exercise {
        body: |_| r#"{"last_name":"Renamed"}"#.into(),
        recorded: || vec![("taken", with_body(&routes::UPDATE_USER, r#"{"email":"User2@acme.example"}"#))],
        calls_more: || vec![with_body(&routes::UPDATE_USER, r#"{"email":"other@example.com"}"#)],
        ..Exercise::of(&routes::UPDATE_USER)
    },
    Exercise::of(&routes::DELETE_USER),
    Exercise { further: Further::Conflict, ..Exercise::of(&routes::CANCEL_CAMPAIGN) },
    Exercise {
        demo: |organisation, _| id(organisation, kind::NEW_CAMPAIGN, 2),
        recorded: || vec![("completed", at(&routes::PAUSE_CAMPAIGN, &id('a', kind::FAILED_CAMPAIGN, 1)))],
        further: Further::NoEffect,
        ..Exercise::of(&routes::PAUSE_CAMPAIGN)
    },
    Exercise { further: Further::NoEffect, ..Exercise::of(&routes::RESUME_CAMPAIGN) },
    Exercise {
        demo: |organisation, _| id(organisation, kind::FAILED_CAMPAIGN, 1),
        recorded: || vec![("paused", at(&routes::RETRY_CAMPAIGN, &id('a', kind::CAMPAIGN, 0)))],
        further: Further::Conflict,
        ..Exercise::of(&routes::RETRY_CAMPAIGN)
    },
    Exercise {
        body: |_| r##"{"name":"Returning","color_code":"#2980b9"}"##.into(),
        recorded: || vec![("without-name", with_body(&routes::CREATE_TAG, r#"{"name":null,"attributes":[]}"#))],
        ..Exercise::of(&routes::CREATE_TAG)
    },
    Exercise { rows: Some([3, 3]), ..Exercise::of(&routes::LIST_TAGS) },
    Exercise {
        recorded: || vec![("not-found", at(&routes::READ_TAG, &id('b', kind::TAG, 1)))],
        ..Exercise::of(&routes::READ_TAG)
    },
    Exercise {
        body: |_| r#"{"name":"Very important","color_code":null}"#.into(),
        recorded: || vec![("name-is-null", with_body(&routes::UPDATE_TAG, r#"{"name":null}"#))],
        texts: || vec![(json!({"name": "x"}), "description")],
        ..Exercise::of(&routes::UPDATE_TAG)
    },
    Exercise {
        body: |_| r#"{"name":"Delivery","description":"Asks when an order arrives"}"#.into(),
        recorded: || vec![("invalid", with_body(&routes::CREATE_INTENT, r#"{"is_active":"perhaps"}"#))],
        ..Exercise::of(&routes::CREATE_INTENT)
    },
    Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_INTENTS) },
    Exercise::of(&routes::READ_INTENT),
    Exercise { body: |_| r#"{"is_active":false}"#.into(), ..Exercise::of(&routes::UPDATE_INTENT) },
    Exercise {
        body: |_| r#"{"name":"Complaint","form_type":"natural","fields":[{"name":"order"}]}"#.into(),
        recorded: || {
            let webhook = format!(r#"{{"name":"Order","form_type":"simple","webhook_id":"{}"}}"#, webhook('a'));
            vec![
                ("incomplete", with_body(&routes::CREATE_FORM, r#"{"form_type":"long"}"#)),
                ("with-webhook", with_body(&routes::CREATE_FORM, webhook)),
            ]
        },
        names: &[(kind::WEBHOOK, |id| json!({"name": "Order", "form_type": "simple", "webhook_id": id}))],
        ..Exercise::of(&routes::CREATE_FORM)
    },
    Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_FORMS) },
    Exercise::of(&routes::READ_FORM),
    Exercise {
        body: |organisation| format!(r#"{{"webhook_id":"{}"}}"#, webhook(organisation)),
        recorded: || {
            let globex = format!(r#"{{"webhook_id":"{}"}}"#, webhook('b'));
            vec![("unknown-webhook", with_body(&routes::UPDATE_FORM, globex))]
        },
        names: &[(kind::WEBHOOK, |id| json!({"webhook_id": id}))],
        ..Exercise::of(&routes::UPDATE_FORM)
    },
    Exercise {
        body: |_| r#"{"name":"Price list","ds_type":"pdf"}"#.into(),
        recorded: || {
            let other = r#"{"ds_type":"film","org_id":"01900000-0000-7000-8000-b00000000001"}"#;
            vec![("invalid", with_body(&routes::CREATE_DATASOURCE, other))]
        },
        ..Exercise::of(&routes::CREATE_DATASOURCE)
    },
    Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_DATASOURCES) },
    Exercise::of(&routes::READ_DATASOURCE),
    Exercise { body: |_| r#"{"ds_status":"in_process"}"#.into(), ..Exercise::of(&routes::UPDATE_DATASOURCE) },
    Exercise::of(&routes::DELETE_DATASOURCE),
    Exercise {
        body: |organisation| {
            format!(
                r#"{{"name":"Shop","widget_type":"chat","assistant_id":"{}"}}"#,
                demo_id(organisation, "assistant_id")
            )
        },
        recorded: || {
            let metadata = r#"{"widget_type":"phone","connector_url":"https://169.254.169.254/latest"}"#;
            vec![
                ("not-public", with_body(&routes::CREATE_WIDGET, metadata)),
                (
                    "buttons-that-are-none",
                    with_body(&routes::CREATE_WIDGET, r#"{"action_buttons":[{"label":"Call"},7]}"#),
                ),
            ]
        },
        names: &[(kind::ASSISTANT, |id| json!({"widget_type": "chat", "assistant_id": id}))],
        texts: || vec![(json!({"widget_type": "chat"}), "opening_message")],
        first_costs_more: true,
        ..Exercise::of(&routes::CREATE_WIDGET)
    },
    Exercise { rows: Some([4, 4]), ..Exercise::of(&routes::LIST_WIDGETS) },
    Exercise::of(&routes::READ_WIDGET),
    Exercise {
        body: |_| r#"{"connector_url":"https://93.184.215.14/connector"}"#.into(),
        calls_more: || {
            let assistant = id('a', kind::ASSISTANT, 0);
            vec![with_body(&routes::UPDATE_WIDGET, format!(r#"{{"assistant_id":"{assistant}"}}"#))]
        },
        recorded: || {
            let (metadata, globex) =
                (r#"{"connector_url":"https://169.254.169.254/latest"}"#, demo_id('b', "assistant_id"));
            vec![
                ("not-public", with_body(&routes::UPDATE_WIDGET, metadata)),
                ("unknown-assistant", with_body(&routes::UPDATE_WIDGET, format!(r#"{{"assistant_id":"{globex}"}}"#))),
            ]
        },
        names: &[(kind::ASSISTANT, |id| json!({"assistant_id": id}))],
        ..Exercise::of(&routes::UPDATE_WIDGET)
    },
    Exercise::of(&routes::DELETE_WIDGET),
    Exercise::of(&routes::ROTATE_WIDGET_SECRET),
    Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_ASSISTANTS) },
    Exercise::of(&routes::READ_ASSISTANT),
    Exercise {
        body: |organisation| format!(r#"{{"voice":true,"webhook_id":"{}"}}"#, id(organisation, kind::WEBHOOK, 0)),
        recorded: || {
            let globex = format!(r#"{{"webhook_id":"{}"}}"#, webhook('b'));
            vec![("unknown-webhook", with_body(&routes::UPDATE_ASSISTANT, globex))]
        },
        names: &[(kind::WEBHOOK, |id| json!({"webhook_id": id}))],
        ..Exercise::of(&routes::UPDATE_ASSISTANT)
    },
    Exercise::of(&routes::DELETE_ASSISTANT),
    Exercise {
        numbers: &[("datasource_id", 0)],
        recorded: || vec![("unknown-datasource", linking(&routes::LINK_ASSISTANT_DATASOURCE, kind::DATASOURCE))],
        further: Further::NoEffect,
        ..Exercise::of(&routes::LINK_ASSISTANT_DATASOURCE)
    },
    Exercise { rows: Some([1, 1]), ..Exercise::of(&routes::LIST_ASSISTANT_DATASOURCES) },
    Exercise {
        numbers: &[("intent_id", 0)],
        recorded: || vec![("unknown-intent", linking(&routes::LINK_ASSISTANT_INTENT, kind::INTENT))],
        further: Further::NoEffect,
        ..Exercise::of(&routes::LINK_ASSISTANT_INTENT)
    },
    Exercise::of(&routes::UNLINK_ASSISTANT_INTENT),
    Exercise { rows: Some([1, 1]), ..Exercise::of(&routes::LIST_ASSISTANT_INTENTS) },
    Exercise::of(&routes::LIST_LLM_MODELS),
    Exercise { rows: Some([3, 3]), ..Exercise::of(&routes::LIST_AGENCIES) },
    Exercise::of(&routes::READ_AGENCY),
    Exercise {
        body: |_| r#"{"billing_plan":{"payment_api_key":"sk_demo…acme","currency":"EUR"}}"#.into(),
        ..Exercise::of(&routes::UPDATE_AGENCY)
    },
    Exercise::of(&routes::DELETE_AGENCY),
    Exercise::of(&routes::CHECK_PAYMENT_WEBHOOK),
    Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_AGENCY_BILLING_PLANS) },
    Exercise::of(&routes::READ_AGENCY_BILLING_PLAN),
    Exercise {
        body: |_| r#"{"bots_count":7,"plan_lookup_key":"pro"}"#.into(),
        recorded: || {
            let negative = r#"{"bots_count":-1,"name":null}"#;
            let default = with_body(&routes::UPDATE_AGENCY_BILLING_PLAN, r#"{"default_plan":true}"#);
            vec![("invalid", with_body(&routes::UPDATE_AGENCY_BILLING_PLAN, negative)), ("default", default)]
        },
        calls_more: || {
            vec![no_default_plan(), with_body(&routes::UPDATE_AGENCY_BILLING_PLAN, r#"{"default_plan":true}"#)]
        },
        ..Exercise::of(&routes::UPDATE_AGENCY_BILLING_PLAN)
    },
    Exercise::of(&routes::DELETE_AGENCY_BILLING_PLAN),
    Exercise::of(&routes::READ_USER),
    Exercise {
        recorded: || vec![("no-filter", with_query(&routes::LIST_CONTACTS, "&custom_field=birthday:2000-01-31"))],
        costs: || {
            vec![
                ("", plain(&routes::LIST_CONTACTS)),
                (", with a custom field", with_query(&routes::LIST_CONTACTS, "&custom_field=plan:gold")),
            ]
        },
        rows: Some([25, 3]),
        ..Exercise::of(&routes::LIST_CONTACTS)
    },
    Exercise::of(&routes::READ_CONTACT),
    Exercise {
        body: |_| r#"{"name":"seats","field_type":"number","is_filter":true}"#.into(),
        recorded: || {
            let route = &routes::CREATE_CONTACT_CUSTOM_FIELD;
            vec![
                ("taken", with_body(route, r#"{"name":"Plan","field_type":"string"}"#)),
                ("without-choices", with_body(route, r#"{"name":"size","field_type":"choice"}"#)),
            ]
        },
        further: Further::Conflict,
        ..Exercise::of(&routes::CREATE_CONTACT_CUSTOM_FIELD)
    },
    Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_CONTACT_CUSTOM_FIELDS) },
    Exercise::of(&routes::READ_CONTACT_CUSTOM_FIELD),
    Exercise {
        body: |_| r#"{"choices":["free","silver","gold"]}"#.into(),
        recorded: || {
            let other = r#"{"name":"tariff","field_type":"string"}"#;
            vec![("name-and-type", with_body(&routes::UPDATE_CONTACT_CUSTOM_FIELD, other))]
        },
        // A field that is no filter any more makes room for another one.
        calls_more: || vec![with_body(&routes::UPDATE_CONTACT_CUSTOM_FIELD, r#"{"is_filter":false}"#)],
        ..Exercise::of(&routes::UPDATE_CONTACT_CUSTOM_FIELD)
    },
    Exercise::of(&routes::DELETE_CONTACT_CUSTOM_FIELD),
    Exercise {
        body: |organisation| tagging(&id(organisation, kind::TAG, 2), "form", &id(organisation, kind::FORM, 1)),
        recorded: || {
            let (own, globex) = (id('a', kind::TAG, 1), id('b', kind::CONTACT, 1));
            vec![("unknown-contact", with_body(&routes::CREATE_LINK_TAG_ENTITY, tagging(&own, "contact", &globex)))]
        },
        names: &[
            (kind::TAG, |tag| json!({"tag_id": tag, "entity_type": "form", "entity_id": id('a', kind::FORM, 1)})),
            (kind::WIDGET, |id| tagged("widget", id)),
            (kind::ASSISTANT, |id| tagged("assistant", id)),
            (kind::CONTACT, |id| tagged("contact", id)),
            (kind::CONVERSATION, |id| tagged("conversation", id)),
            (kind::DATASOURCE, |id| tagged("datasource", id)),
            (kind::FORM, |id| tagged("form", id)),
            (kind::INTENT, |id| tagged("intent", id)),
        ],
        further: Further::NoEffect,
        ..Exercise::of(&routes::CREATE_LINK_TAG_ENTITY)
    },
    Exercise::of(&routes::DELETE_LINK_TAG_ENTITY),
    Exercise {
        body: |_| {
            r#"{"outcome":"answered","at":"2026-02-01T11:59:00Z","duration_seconds":42,"recording_url":"https://calls.example.com/42.wav","cost":0.0125}"#.into()
        },
        demo: |organisation, _| id(organisation, kind::NEW_CAMPAIGN, 1),
        recorded: || {
            let route = &routes::REPORT_CAMPAIGN_CONTACT_OUTCOME;
            let (busy, wrong) =
                (r#"{"outcome":"busy","at":"2026-02-01T11:59:00Z"}"#, r#"{"outcome":"lost","at":"now","cost":-1}"#);
            let at_contact = |contact: &str| Call { body: busy.into(), ..at(route, contact) };
            vec![
                ("not-sent", at_contact(&id('a', kind::CAMPAIGN, 1))),
                ("not-found", at_contact(&id('b', kind::NEW_CAMPAIGN, 1))),
                ("invalid", with_body(route, wrong)),
            ]
        },
        further: Further::NoEffect,
        ..Exercise::of(&routes::REPORT_CAMPAIGN_CONTACT_OUTCOME)
    },
    Exercise {
        body: |_| r#"{"outcome":"read","at":"2026-02-01T11:59:00Z"}"#.into(),
        recorded: || {
            let future = r#"{"outcome":"read","at":"2099-01-01T00:00:00Z"}"#;
            vec![("future", with_body(&routes::REPORT_CONVERSATION_OUTCOME, future))]
        },
        further: Further::NoEffect,
        ..Exercise::of(&routes::REPORT_CONVERSATION_OUTCOME)
    },
    Exercise { rows: Some([1, 1]), ..Exercise::of(&routes::READ_CONVERSATION_TRANSCRIPT) },
    Exercise { rows: Some([1, 1]), ..Exercise::of(&routes::LIST_CONTACT_CONVERSATIONS) },
    Exercise {
        demo: |organisation, _| id(organisation, kind::FAILED_CAMPAIGN, 1),
        recorded: || vec![("paused", at(&routes::DELETE_CAMPAIGN, &id('a', kind::CAMPAIGN, 0)))],
        ..Exercise::of(&routes::DELETE_CAMPAIGN)
    },
    Exercise {
        recorded: || vec![("open", at(&routes::DELETE_CONVERSATION, &id('a', kind::CONVERSATION, 1)))],
        demo: |organisation, _| id(organisation, kind::CONVERSATION, 0),
        ..Exercise::of(&routes::DELETE_CONVERSATION)
    },
    Exercise {
        body: |organisation| named("contact_ids", [2, 3].map(|number| id(organisation, kind::CONTACT, number))),
        recorded: || {
            let unknown = [id('a', kind::CONTACT, 4), id('b', kind::CONTACT, 4), id('a', kind::CONTACT, 4)];
            vec![
                ("unknown", with_body(&routes::DELETE_CONTACTS, named("contact_ids", unknown))),
                ("none", with_body(&routes::DELETE_CONTACTS, named("contact_ids", []))),
            ]
        },
        costs: || {
            let of = |numbers: std::ops::Range<u32>| {
                let ids = numbers.map(|number| id('a', kind::CONTACT, number));
                with_body(&routes::DELETE_CONTACTS, named("contact_ids", ids))
            };
            vec![(", 1 contact", of(0..1)), (", 20 contacts", of(1..21))]
        },
        ..Exercise::of(&routes::DELETE_CONTACTS)
    },
    Exercise {
        body: |organisation| named("form_ids", [id(organisation, kind::FORM, 0)]),
        recorded: || vec![("none", with_body(&routes::DELETE_FORMS, named("form_ids", [])))],
        ..Exercise::of(&routes::DELETE_FORMS)
    },
    Exercise {
        body: |organisation| named("tag_ids", [0, 2].map(|number| id(organisation, kind::TAG, number))),
        recorded: || vec![("none", with_body(&routes::DELETE_TAGS, named("tag_ids", [])))],
        ..Exercise::of(&routes::DELETE_TAGS)
    },
    Exercise {
        body: |organisation| named("conversation_ids", [id(organisation, kind::CONVERSATION, 0)]),
        recorded: || {
            let open = [0, 1].map(|number| id('a', kind::CONVERSATION, number));
            vec![
                ("open", with_body(&routes::DELETE_CONVERSATIONS, named("conversation_ids", open))),
                ("none", with_body(&routes::DELETE_CONVERSATIONS, named("conversation_ids", []))),
            ]
        },
        ..Exercise::of(&routes::DELETE_CONVERSATIONS)
    },
    Exercise { rows: Some([3, 3]), ..Exercise::of(&routes::LIST_CAMPAIGNS) },
    Exercise {
        body: |_| r#"{"name":"prices.pdf","size_bytes":9120,"content_type":"application/pdf"}"#.into(),
        recorded: || {
            let invalid = r#"{"name":"","size_bytes":104857601,"content_type":"pdf"}"#;
            let (empty, missing) = (r#"{"name":"prices.pdf","size_bytes":0}"#, id('b', kind::DATASOURCE, 1));
            vec![
                ("invalid", with_body(&routes::CREATE_DATASOURCE_FILE, invalid)),
                ("empty", with_body(&routes::CREATE_DATASOURCE_FILE, empty)),
                ("not-found", at(&routes::CREATE_DATASOURCE_FILE, &missing)),
            ]
        },
        first_costs_more: true,
        texts: || vec![(json!({"name": "x", "size_bytes": 1}), "description")],
        ..Exercise::of(&routes::CREATE_DATASOURCE_FILE)
    },
    Exercise {
        body: |_| r#"{"content":"We open at nine."}"#.into(),
        recorded: || {
            let route = &routes::ADD_DATASOURCE_TEXT_BLOB;
            let globex = "&org_id=01900000-0000-7000-8000-b00000000001";
            vec![
                ("named", with_query(route, "&ds_type=text_blob&name=hours.txt&description=Opening%20hours")),
                ("empty", with_body(route, r#"{"content":""}"#)),
                ("other-organisation", with_query(route, globex)),
            ]
        },
        first_costs_more: true,
        ..Exercise::of(&routes::ADD_DATASOURCE_TEXT_BLOB)
    },
    Exercise { rows: Some([3, 3]), ..Exercise::of(&routes::LIST_DATASOURCE_FILES) },
    Exercise {
        recorded: || vec![("not-found", at(&routes::READ_DATASOURCE_FILE, &id('b', kind::DATASOURCE_FILE, 1)))],
        ..Exercise::of(&routes::READ_DATASOURCE_FILE)
    },
    Exercise {
        body: |_| r#"{"to":"+49 151 2345679","message":"Your table is ready."}"#.into(),
        numbers: &[("widget_id", SMS)],
        recorded: || {
            let route = &routes::SEND_MESSAGE;
            vec![
                ("known-contact", with_body(route, r#"{"to":"+31200001","message":"Your table is ready."}"#)),
                ("suppressed", with_body(route, r#"{"to":"+3120999900","message":"Your table is ready."}"#)),
                ("a-widget-that-calls", of_widget(route, TELEPHONE)),
                ("no-connector", of_widget(route, 1)),
                ("not-found", at(route, &id('b', kind::WIDGET, SMS))),
                ("invalid", with_body(route, r#"{"to":"0151 2345678","message":""}"#)),
            ]
        },
        costs: || {
            let known = with_body(&routes::SEND_MESSAGE, r#"{"to":"+31200001","message":"Your table is ready."}"#);
            vec![
                (", a new contact", plain(&routes::SEND_MESSAGE)),
                (", a known contact", known.clone()),
                (", an open conversation", known),
            ]
        },
        calls_more: || vec![plain(&routes::SEND_MESSAGE), plain(&routes::SEND_MESSAGE)],
        ..Exercise::of(&routes::SEND_MESSAGE)
    },
    Exercise {
        body: |_| r#"{"from":"+49 151 2345681","text":"Is my table ready?","external_id":"SM-1"}"#.into(),
        numbers: &[("widget_id", SMS)],
        recorded: || {
            let route = &routes::RECEIVE_MESSAGE;
            vec![
                ("known-contact", from_known("SM-2")),
                ("a-widget-that-calls", of_widget(route, TELEPHONE)),
                ("no-connector", of_widget(route, 1)),
                ("not-found", at(route, &id('b', kind::WIDGET, SMS))),
                ("invalid", with_body(route, r#"{"from":"0151 2345678","text":"","external_id":""}"#)),
            ]
        },
        costs: || {
            vec![
                (", a new contact", plain(&routes::RECEIVE_MESSAGE)),
                (", a known contact", from_known("SM-2")),
                (", an open conversation", from_known("SM-3")),
                (", the same message again", from_known("SM-3")),
            ]
        },
        calls_more: || vec![from_known("SM-2"), from_known("SM-3")],
        further: Further::NoEffect,
        ..Exercise::of(&routes::RECEIVE_MESSAGE)
    },
    Exercise {
        body: |organisation| format!(r#"{{"contact_ids":["{}"]}}"#, id(organisation, kind::CONTACT, 0)),
        recorded: || vec![("a-widget-that-calls", of_widget(&routes::MESSAGE_CONTACTS, TELEPHONE))],
        names: &[(kind::CONTACT, |id| json!({"contact_ids": [id]}))],
        ..Exercise::of(&routes::MESSAGE_CONTACTS)
    },
    Exercise {
        body: |_| r#"{"to":"+49 151 2345670","prompt_dynamic_variables":{"name":"Ada","table":7}}"#.into(),
        numbers: &[("widget_id", TELEPHONE)],
        recorded: || {
            let route = &routes::START_CALL;
            vec![
                ("known-contact", with_body(route, r#"{"to":"+31200001"}"#)),
                ("suppressed", with_body(route, r#"{"to":"+3120999900"}"#)),
                ("a-widget-that-writes", of_widget(route, SMS)),
                ("not-found", at(route, &id('b', kind::WIDGET, TELEPHONE))),
                ("invalid", with_body(route, r#"{"to":"0151 2345678","prompt_dynamic_variables":[]}"#)),
            ]
        },
        costs: || {
            let known = with_body(&routes::START_CALL, r#"{"to":"+31200001"}"#);
            vec![(", a new contact", plain(&routes::START_CALL)), (", a known contact", known)]
        },
        ..Exercise::of(&routes::START_CALL)
    },
    Exercise {
        body: |organisation| format!(r#"{{"contact_ids":["{}"]}}"#, id(organisation, kind::CONTACT, 0)),
        numbers: &[("widget_id", TELEPHONE)],
        recorded: || vec![("a-widget-that-writes", of_widget(&routes::CALL_CONTACTS, SMS))],
        names: &[(kind::CONTACT, |id| json!({"contact_ids": [id]}))],
        ..Exercise::of(&routes::CALL_CONTACTS)
    },
    Exercise {
        body: |organisation| {
            let widget = id(organisation, kind::WIDGET, 1);
            json!({
                "name": "Reminders", "type": "message", "start_time": "2030-01-07T08:00:00Z", "interval": 1440,
                "widget_id": widget, "contact_ids": [id(organisation, kind::CONTACT, 0)], "message": "See you tomorrow.",
                "execution_weekdays": [1, 2, 3, 4, 5], "time_window_start": "09:00", "time_window_end": "17:00",
                "time_zone": "Europe/Berlin", "enabled": true,
            })
            .to_string()
        },
        recorded: || {
            let route = &routes::CREATE_CAMPAIGN;
            let never = scheduled(&json!({"time_window_start": "09:00", "time_window_end": "09:00", "interval": 60}));
            let invalid = json!({
                "name": "Never", "type": "message", "start_time": "tomorrow", "interval": 0, "execution_weekdays": [8],
                "time_window_start": "9", "time_zone": "Mars/Olympus",
            });
            vec![
                ("once", scheduled(&json!({}))),
                ("never-opens", never),
                ("invalid", with_body(route, invalid.to_string())),
                ("no-widget", scheduled(&json!({"enabled": true}))),
            ]
        },
        costs: || {
            let contacts: Vec<String> = (0..25).map(|number| id('a', kind::CONTACT, number)).collect();
            vec![
                (", with a widget and 1 contact", plain(&routes::CREATE_CAMPAIGN)),
                (", without either", scheduled(&json!({}))),
                (", 25 contacts", scheduled(&json!({"contact_ids": contacts}))),
            ]
        },
        names: &[
            (kind::WIDGET, |id| scheduled_body(&json!({"widget_id": id}))),
            (kind::CONTACT, |id| scheduled_body(&json!({"contact_ids": [id]}))),
        ],
        first_costs_more: true,
        ..Exercise::of(&routes::CREATE_CAMPAIGN)
    },
    Exercise {
        body: |organisation| json!({"contact_ids": [id(organisation, kind::CONTACT, 1)]}).to_string(),
        demo: |organisation, _| id(organisation, kind::NEW_CAMPAIGN, 2),
        recorded: || {
            let run = at(&routes::ADD_CAMPAIGN_CONTACTS, &id('a', kind::CAMPAIGN, 0));
            vec![("without-schedule", run)]
        },
        costs: || vec![(", 1 contact", plain(&routes::ADD_CAMPAIGN_CONTACTS)), (", 23 contacts", more_contacts())],
        calls_more: || vec![more_contacts()],
        names: &[(kind::CONTACT, |id| json!({"contact_ids": [id]}))],
        further: Further::NoEffect,
        ..Exercise::of(&routes::ADD_CAMPAIGN_CONTACTS)
    },
    Exercise {
        body: |_| r#"{"name":"Opening hours","time_window_start":"10:00","enabled":true}"#.into(),
        demo: |organisation, _| id(organisation, kind::NEW_CAMPAIGN, 2),
        recorded: || {
            let route = &routes::UPDATE_CAMPAIGN;
            let cancel = with_body(route, r#"{"status":"cancelled"}"#);
            let over = at(route, &id('a', kind::FAILED_CAMPAIGN, 1));
            vec![
                ("no-such-status", with_body(route, r#"{"status":"completed"}"#)),
                ("cancelled", cancel),
                ("completed", Call { body: br#"{"status":"paused"}"#.to_vec(), ..over }),
            ]
        },
        names: &[(kind::WIDGET, |id| json!({"widget_id": id}))],
        further: Further::NoEffect,
        ..Exercise::of(&routes::UPDATE_CAMPAIGN)
    },
    Exercise {
        body: |_| r#"{"name":"Shop"}"#.into(),
        recorded: || {
            let (scoped, wrong) = (
                r#"{"name":"Shop","scopes":["contact:write","campaign:read"],"expires_at":"2027-01-01T00:00:00Z"}"#,
                r#"{"scopes":["contact:read","contacts:read"],"requests_per_second":0}"#,
            );
            vec![
                ("with-scopes", with_body(&routes::CREATE_KEY, scoped)),
                ("invalid", with_body(&routes::CREATE_KEY, wrong)),
            ]
        },
        names: &[(kind::USER, |id| json!({"name": "Shop", "user_id": id}))],
        ..Exercise::of(&routes::CREATE_KEY)
    },
    Exercise { rows: Some([3, 3]), ..Exercise::of(&routes::LIST_KEYS) },
    Exercise {
        body: |_| r#"{"name":"Shop","scopes":["contact:write"]}"#.into(),
        names: &[(kind::USER, |id| json!({"user_id": id}))],
        ..Exercise::of(&routes::UPDATE_KEY)
    },
    Exercise {
        recorded: || vec![("own", at(&routes::REVOKE_KEY, &id('a', kind::API_KEY, 1)))],
        ..Exercise::of(&routes::REVOKE_KEY)
    },
    Exercise { body: |_| r#"{"overlap_seconds":604800}"#.into(), ..Exercise::of(&routes::ROTATE_KEY) },
    Exercise {
        recorded: || {
            let path = format!("{}?after=x&size=0&date_from=x", routes::LIST_AUDIT.path);
            vec![("invalid", call("GET", &path, ACME))]
        },
        ..Exercise::of(&routes::LIST_AUDIT)
    },
    Exercise::of(&routes::READ_OWN_USER),
    Exercise {
        recorded: || {
            let unknown = format!("{}?after={}&type=tags.*", routes::LIST_EVENTS.path, id('b', kind::CONVERSATION, 0));
            vec![("invalid", call("GET", &unknown, ACME))]
        },
        ..Exercise::of(&routes::LIST_EVENTS)
    },
    Exercise::of(&routes::READ_EVENT),
    Exercise::of(&routes::LIST_EVENT_TYPES),
    Exercise {
        body: |_| {
            r#"{"records":["contact"],"filters":{"contact":{"phone_number":"+31612345678"}},"format":"csv"}"#.into()
        },
        recorded: || {
            let several = r#"{"records":["contact","tag"],"filters":{"tag":{"name":"VIP"}},"format":"csv"}"#;
            vec![("invalid", with_body(&routes::CREATE_EXPORT, several))]
        },
        first_costs_more: true,
        ..Exercise::of(&routes::CREATE_EXPORT)
    },
    Exercise::of(&routes::READ_EXPORT),
    Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_EXPORTS) },
    Exercise {
        query: |organisation| format!("user_id={}", id(organisation, kind::USER, 1)),
        recorded: || vec![("without-user", call("GET", routes::READ_USAGE.path, ACME))],
        ..Exercise::of(&routes::READ_USAGE)
    },
    Exercise {
        body: |organisation| usage_of(&id(organisation, kind::USER, 1)).to_string(),
        recorded: || {
            let empty = r#"{"external_id":""}"#;
            vec![("nothing-used", with_body(&routes::REPORT_USAGE, empty))]
        },
        names: &[(kind::USER, |id| json!({"external_id": id, "queries": 1, "user_id": id}))],
        further: Further::NoEffect,
        ..Exercise::of(&routes::REPORT_USAGE)
    },
    Exercise {
        body: |organisation| captured(organisation, CALL_BACK).to_string(),
        recorded: || {
            let wrong = json!({"form_id": demo_id('a', "form_id"), "field_values": {"phone": 1, "name": "Ada"}});
            let globex = captured('b', CALL_BACK).to_string();
            vec![
                ("invalid", with_body(&routes::CREATE_CAPTURED_FORM, wrong.to_string())),
                ("unknown-form", with_body(&routes::CREATE_CAPTURED_FORM, globex)),
            ]
        },
        names: &[(kind::FORM, |form| json!({"form_id": form, "field_values": {}}))],
        first_costs_more: true,
        ..Exercise::of(&routes::CREATE_CAPTURED_FORM)
    },
    Exercise { rows: Some([1, 1]), ..Exercise::of(&routes::LIST_CONVERSATION_CAPTURED_FORMS) },
    Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_CAPTURED_FORMS) },
    Exercise::of(&routes::READ_CAPTURED_FORM),
    Exercise {
        body: |_| r#"{"field_values":{"phone":"+31201234567","when":"today"}}"#.into(),
        recorded: || vec![("invalid", with_body(&routes::UPDATE_CAPTURED_FORM, r#"{"field_values":{"when":1}}"#))],
        ..Exercise::of(&routes::UPDATE_CAPTURED_FORM)
    },
    Exercise {
        body: |organisation| recognised(&demo_id(organisation, "intent_id")).to_string(),
        recorded: || {
            let wrong = json!({"intent_id": demo_id('a', "intent_id"), "confidence": 2});
            let nothing = json!({"intent_id": demo_id('a', "intent_id"), "message_id": id('a', kind::TAG, 0)});
            vec![
                ("invalid", with_body(&routes::CREATE_CAPTURED_INTENT, wrong.to_string())),
                ("unknown-message", with_body(&routes::CREATE_CAPTURED_INTENT, nothing.to_string())),
            ]
        },
        names: &[(kind::INTENT, recognised)],
        calls_more: || {
            let of_message = json!({"intent_id": demo_id('a', "intent_id"), "message_id": id('a', kind::MESSAGE, 0)});
            vec![with_body(&routes::CREATE_CAPTURED_INTENT, of_message.to_string())]
        },
        first_costs_more: true,
        ..Exercise::of(&routes::CREATE_CAPTURED_INTENT)
    },
    Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_CAPTURED_INTENTS) },
    Exercise::of(&routes::READ_CAPTURED_INTENT),
    Exercise {
        body: |_| r#"{"phone_number":"+49 151 2345699","channel":"call","reason":"Asked by letter"}"#.into(),
        recorded: || {
            let route = &routes::CREATE_SUPPRESSION;
            let globex = r#"{"email":"ada@example.com","org_id":"01900000-0000-7000-8000-b00000000001"}"#;
            vec![
                ("email", with_body(route, r#"{"email":"ada@example.com"}"#)),
                ("existing", with_body(route, r#"{"email":"Gone@acme.example","channel":"call"}"#)),
                ("nothing-to-suppress", with_body(route, r#"{"channel":"all"}"#)),
                ("both", with_body(route, r#"{"phone_number":"+49 151 2345699","email":"ada@example.com"}"#)),
                ("other-organisation", with_body(route, globex)),
            ]
        },
        costs: || {
            let existing = with_body(&routes::CREATE_SUPPRESSION, r#"{"email":"gone@acme.example","channel":"call"}"#);
            vec![
                (", new", with_body(&routes::CREATE_SUPPRESSION, r#"{"email":"grace@example.com"}"#)),
                (", with a further channel", existing.clone()),
                (", existing", existing),
            ]
        },
        calls_more: || {
            vec![with_body(&routes::CREATE_SUPPRESSION, r#"{"email":"gone@acme.example","channel":"call"}"#)]
        },
        texts: || vec![(json!({"email": "ada@example.com"}), "reason")],
        first_costs_more: true,
        further: Further::NoEffect,
        ..Exercise::of(&routes::CREATE_SUPPRESSION)
    },
    Exercise {
        body: |_| {
            r#"{"suppressions":[{"email":"ada@example.com"},{"email":"gone@acme.example"},{"phone_number":"+49 151 2345699","email":"ada@example.com"}]}"#.into()
        },
        recorded: || vec![("none", with_body(&routes::IMPORT_SUPPRESSIONS, r#"{"suppressions":[]}"#))],
        further: Further::NoEffect,
        ..Exercise::of(&routes::IMPORT_SUPPRESSIONS)
    },
    Exercise {
        recorded: || vec![("of-a-number", call("GET", "/api/v1/suppression?phone_number=%2B3120999900", ACME))],
        rows: Some([2, 2]),
        ..Exercise::of(&routes::LIST_SUPPRESSIONS)
    },
    Exercise::of(&routes::READ_SUPPRESSION),
    Exercise::of(&routes::DELETE_SUPPRESSION),
    Exercise {
        query: |_| "metric=conversations_opened&group_by=assistant".to_owned(),
        recorded: || {
            let ask = |query: &str| call("GET", &format!("{}?{query}", routes::READ_ANALYTICS.path), ACME);
            vec![
                ("by-day", ask("metric=messages&date_from=2026-01-01&time_zone=Europe/Berlin")),
                ("invalid", ask("metric=sends&group_by=outcome&date_from=2026-01-31&date_to=2026-01-30T12:01:00Z")),
            ]
        },
        ..Exercise::of(&routes::READ_ANALYTICS)
    },
    Exercise {
        body: |organisation| checkout(organisation, 1).to_string(),
        demo: |organisation, _| id(organisation, kind::AGENCY, 0),
        recorded: || {
            let (route, charge) = (&routes::RECEIVE_PAYMENT_EVENT, NewPaymentEvent::of("charge.refunded"));
            let forged = signed(&plain(route).path, "whsec_of_somebody_else", plain(route).body);
            vec![("forged", forged), ("subscription", payment(&subscription())), ("not-used", payment(&charge))]
        },
        costs: || {
            let invoice =
                NewPaymentEvent { event_id: Some("evt_demo_3".into()), ..NewPaymentEvent::of("invoice.paid") };
            vec![
                (", a checkout", plain(&routes::RECEIVE_PAYMENT_EVENT)),
                (", a subscription", payment(&subscription())),
                (", an invoice", payment(&invoice)),
                (", the same event again", payment(&invoice)),
            ]
        },
        further: Further::NoEffect,
        ..Exercise::of(&routes::RECEIVE_PAYMENT_EVENT)
    },
];

/// The widgets of the demo set that have a connector.
const TELEPHONE: u32 = 2;
const SMS: u32 = 3;

/// The exercise of `route`.
pub fn exercise(route: &Route) -> &'static Exercise {
    let found = EXERCISES.iter().find(|exercise| exercise.route == route);
    found.unwrap_or_else(|| panic!("{} has no exercise: add it", route.name))
}

/// The call of `route` that succeeds for Acme.
fn plain(route: &Route) -> Call {
    valid_call(route, 'a', ACME)
}

fn with_body(route: &Route, body: impl Into<Vec<u8>>) -> Call {
    Call { body: body.into(), ..plain(route) }
}

/// A body with a list of ids.
fn named(list: &str, ids: impl IntoIterator<Item = String>) -> String {
    json!({list: ids.into_iter().collect::<Vec<_>>()}).to_string()
}

/// The body of a plan that becomes the default.
fn default_plan() -> &'static str {
    r#"{"name":"Pro","description":"All of it","bots_count":5,"queries_count":1000,"words_count":50000,"voice_seconds":3600,"premium_support":true,"default_plan":true}"#
}

/// The call after which no plan of the agency is the default.
fn no_default_plan() -> Call {
    let plan = |name: &str| match name {
        "billing_plan_id" => id('a', kind::BILLING_PLAN, 0),
        _ => demo_id('a', name),
    };
    Call {
        path: path(&routes::UPDATE_AGENCY_BILLING_PLAN, plan),
        ..with_body(&routes::UPDATE_AGENCY_BILLING_PLAN, r#"{"default_plan":false}"#)
    }
}

fn with_query(route: &Route, more: &str) -> Call {
    let call = plain(route);
    Call { query: call.query + more, ..call }
}

/// The call about another record of Acme.
fn at(route: &Route, id: &str) -> Call {
    Call { path: path(route, |_| id.to_owned()), ..plain(route) }
}

/// A message of a contact of the demo set, which has no open conversation yet.
fn from_known(external_id: &str) -> Call {
    let body = json!({"from": "+31200003", "text": "Is my table ready?", "external_id": external_id});
    with_body(&routes::RECEIVE_MESSAGE, body.to_string())
}

/// The call about another widget of Acme.
fn of_widget(route: &Route, number: u32) -> Call {
    at(route, &id('a', kind::WIDGET, number))
}

fn two_pages(route: &Route) -> Vec<(&'static str, Call)> {
    vec![(", first page of 50", plain(route)), (", second page of 50", with_query(route, "&page=2"))]
}

fn assistant_with_webhook() -> Call {
    let webhook = id('a', kind::WEBHOOK, 1);
    with_body(&routes::CREATE_ASSISTANT, format!(r#"{{"webhook_id":"{webhook}"}}"#))
}

fn campaign(contacts: &[&str]) -> Call {
    with_body(&routes::RUN_CAMPAIGN, json!({"contact_ids": contacts}).to_string())
}

/// The call that adds more contacts than one transaction can.
fn more_contacts() -> Call {
    let contacts: Vec<String> = (2..25).map(|number| id('a', kind::CONTACT, number)).collect();
    with_body(&routes::ADD_CAMPAIGN_CONTACTS, json!({"contact_ids": contacts}).to_string())
}

/// A call that creates a campaign, whose body also has the members of `more`.
fn scheduled(more: &Value) -> Call {
    with_body(&routes::CREATE_CAMPAIGN, scheduled_body(more).to_string())
}

fn scheduled_body(more: &Value) -> Value {
    let mut body = json!({"name": "Reminders", "type": "message", "start_time": "2030-01-07T09:00:00Z"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn webhook(organisation: char) -> String {
    demo_id(organisation, "webhook_id")
}

/// The report of what a call of a user has used.
fn usage_of(user: &str) -> Value {
    json!({"external_id": "call-1", "queries": 3, "voice_seconds": 95, "user_id": user})
}

/// The body that links a tag to an entity.
fn tagging(tag: &str, entity_type: &str, entity: &str) -> String {
    json!({"tag_id": tag, "entity_type": entity_type, "entity_id": entity}).to_string()
}

fn tagged(entity_type: &str, entity: &str) -> Value {
    json!({"tag_id": demo_id('a', "tag_id"), "entity_type": entity_type, "entity_id": entity})
}

/// The call that links a record of Globex to an assistant of Acme.
fn linking(route: &Route, kind: u8) -> Call {
    let name = |parameter: &str| match parameter {
        "assistant_id" => demo_id('a', parameter),
        _ => id('b', kind, 1),
    };
    Call { path: path(route, name), ..plain(route) }
}

/// The form of the demo set that asks for a call.
const CALL_BACK: u32 = 1;

/// The body that fills a form in.
fn captured(organisation: char, form: u32) -> Value {
    let values = json!({"phone": "+31201234567", "when": "tomorrow"});
    json!({"form_id": id(organisation, kind::FORM, form), "field_values": values})
}

/// The body that says that an intent was recognised.
fn recognised(intent: &str) -> Value {
    json!({"intent_id": intent, "confidence": 0.9})
}

/// The event of a checkout of a user of the demo set.
fn checkout(organisation: char, user: u32) -> Value {
    let user_id = Some(id(organisation, kind::USER, user));
    let event_id = Some("evt_demo_1".into());
    NewPaymentEvent { user_id, event_id, ..NewPaymentEvent::of("checkout.session.completed") }.body(1, NOW / 1000)
}

fn subscription() -> NewPaymentEvent {
    let (lookup_key, event_id) = (Some("pro".into()), Some("evt_demo_2".into()));
    NewPaymentEvent { lookup_key, event_id, ..NewPaymentEvent::of("customer.subscription.updated") }
}

/// The call with an event of the payment provider to Acme's agency that has a webhook.
fn payment(event: &NewPaymentEvent) -> Call {
    let body = event.body(1, NOW / 1000).to_string().into_bytes();
    signed(&plain(&routes::RECEIVE_PAYMENT_EVENT).path, demo_payment_secret('a'), body)
}

/// The call with a bot's answer to the first message of Acme's open conversation.
fn answer() -> Call {
    let (question, source) = (id('a', kind::MESSAGE, 0), id('a', kind::DATASOURCE, 1));
    let said = json!({"sender_type": "bot", "text": "9 to 5", "in_reply_to": question, "data_source_ids": [source]});
    with_body(&routes::ADD_MESSAGE, said.to_string())
}

/// The calls that open and close a conversation with a widget and a contact.
fn opened_and_closed() -> Vec<Call> {
    let (widget, contact) = (id('a', kind::WIDGET, 1), id('a', kind::CONTACT, 1));
    let fields = json!({"assistant_id": demo_id('a', "assistant_id"), "widget_id": widget, "contact_id": contact});
    let close = path(&routes::CLOSE_CONVERSATION, |_| "{id}".to_owned());
    vec![with_body(&routes::OPEN_CONVERSATION, fields.to_string()), call("POST", &close, ACME)]
}
