//! One organisation learns nothing of another's records: their ids answer like ids that nobody has.

use local::Stack;
use local::gateway::{Answer, Call};
use serde_json::{Value, json};
use shared::routes;

use crate::fixture::{ACME, GLOBEX, call, data, demo_id, everything, id, kind, path, post, stack, valid_body};

/// An id that nobody has.
const NOBODYS: &str = "01900000-0000-7000-8000-ffffffffffff";

/// A stack that knows the key, so that equal requests cost the same.
async fn warm_stack() -> Stack {
    let stack = stack().await;
    stack.answer(&call("GET", "/api/v1/user/get_agent_list/", ACME)).await;
    stack
}

/// All that a caller can see, and what it cost, the request's own id aside.
fn visible(mut answer: Answer) -> Answer {
    answer.headers.remove("x-request-id");
    answer
}

#[tokio::test]
async fn another_s_id_answers_byte_for_byte_like_nobody_s_and_changes_nothing() {
    let stack = warm_stack().await;
    let before = everything(&stack).await;
    for route in routes::ALL {
        let parameters: Vec<_> = route.parameters().collect();
        for foreign in &parameters {
            let with = |replacement: &str| {
                let path = path(route, |name| if name == *foreign { replacement.into() } else { demo_id('a', name) });
                Call { body: valid_body(route, 'a').into(), ..call(route.method, &path, ACME) }
            };
            // Once before: the first request of a process for a list reads its head.
            for warming in [&demo_id('b', foreign), NOBODYS] {
                stack.answer(&with(warming)).await;
            }
            let others = visible(stack.answer(&with(&demo_id('b', foreign))).await);
            let nobodys = visible(stack.answer(&with(NOBODYS)).await);
            assert_eq!(others, nobodys, "{} {foreign}", route.name);
            assert_eq!(others.status, 404, "{} {foreign}", route.name);
        }
    }
    assert_eq!(everything(&stack).await, before);
}

/// The body around an id.
type Around<'a> = &'a dyn Fn(&str) -> Value;

#[tokio::test]
async fn another_s_id_in_a_body_answers_like_nobody_s_and_changes_nothing() {
    let stack = warm_stack().await;
    let assistant = id('a', kind::ASSISTANT, 1);
    let widget = format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 1));
    let conversation = "/api/v1/conversation";
    // Where the id stands, of what kind it is, and the body around it.
    let cases: [(&str, u8, Around<'_>); 5] = [
        ("/api/v1/assistant", kind::WEBHOOK, &|id| json!({"webhook_id": id})),
        (&widget, kind::CONTACT, &|id| json!({"contact_ids": [id]})),
        (conversation, kind::ASSISTANT, &|id| json!({"assistant_id": id})),
        (conversation, kind::WIDGET, &|id| json!({"assistant_id": assistant, "widget_id": id})),
        (conversation, kind::CONTACT, &|id| json!({"assistant_id": assistant, "contact_id": id})),
    ];
    for (path, kind, body) in cases {
        let send = async |id: &str| visible(stack.answer(&post(path, ACME, body(id).to_string())).await);
        // First, so that the lists it appends to are known: whoever is first pays for that.
        let own = send(&id('a', kind, 1)).await;
        assert!(own.status < 300, "{path} {kind} {}", own.body);
        let before = everything(&stack).await;
        let (others, nobodys) = (send(&id('b', kind, 1)).await, send(NOBODYS).await);
        assert_eq!(others, nobodys, "{path} {kind}");
        assert_eq!(others.status, 422, "{path} {kind} {}", others.body);
        assert_eq!(everything(&stack).await, before, "{path} {kind}");
    }
}

#[tokio::test]
async fn a_body_that_names_another_organisation_is_forbidden() {
    let stack = warm_stack().await;
    let organisations = ["01900000-0000-7000-8000-b00000000001", NOBODYS];
    for path in ["/api/v1/assistant", "/api/v1/agency"] {
        let [other, nobody] = organisations.map(|org| post(path, ACME, format!(r#"{{"org_id":"{org}"}}"#)));
        let (other, nobody) = (visible(stack.answer(&other).await), visible(stack.answer(&nobody).await));
        assert_eq!(other, nobody);
        assert_eq!(other.status, 403);
        assert_eq!(
            other.body,
            r#"{"detail":[{"loc":["body","org_id"],"msg":"The API key belongs to another organisation","type":"forbidden"}]}"#
        );
    }
}

#[tokio::test]
async fn lists_hold_the_organisation_s_own_rows_only() {
    let stack = stack().await;
    // Which of its assistants an organisation asks for is told in the query, and so may be another's.
    let of = |organisation| format!("&assistant_id={}", id(organisation, kind::ASSISTANT, 1));
    for (organisation, key, totals) in [('a', ACME, [120, 250, 2, 2, 1, 3]), ('b', GLOBEX, [3, 2, 2, 2, 1, 3])] {
        let others = if organisation == 'a' { 'b' } else { 'a' };
        let (deliveries, contacts) = (&routes::LIST_DELIVERIES, &routes::LIST_CAMPAIGN_CONTACTS);
        let paths = [
            "/api/v1/user/get_agent_list/".to_owned(),
            "/api/v1/link_tag_entity/list".to_owned(),
            "/api/v1/outbound_webhook/list".to_owned(),
            "/api/v1/conversation".to_owned(),
            path(deliveries, |name| demo_id(organisation, name)),
            path(contacts, |name| demo_id(organisation, name)),
        ];
        let lists = paths.iter().zip(totals).map(|(path, total)| (path.as_str(), String::new(), total));
        let filtered = [
            ("/api/v1/conversation", "&status=open".to_owned(), 1),
            ("/api/v1/conversation", "&status=closed".to_owned(), 1),
            ("/api/v1/conversation", of(organisation), 2),
            ("/api/v1/conversation", of(others), 0),
            ("/api/v1/conversation", format!("{}&status=open", of(others)), 0),
            ("/api/v1/conversation", format!("{}&status=closed", of(others)), 0),
        ];
        for (path, query, total) in lists.chain(filtered) {
            let mut call = call("GET", path, key);
            call.query += &query;
            let page = data(&stack.answer(&call).await);
            assert_eq!(page["total"], total, "{path}{query}");
            let prefix = format!("01900000-0000-7000-8000-{organisation}");
            for row in page["items"].as_array().unwrap() {
                assert!(row["id"].as_str().unwrap().starts_with(&prefix), "{row}");
            }
        }
    }
}

#[tokio::test]
async fn every_item_but_a_key_belongs_to_an_organisation() {
    let stack = stack().await;
    for route in routes::ALL {
        stack.answer(&crate::fixture::valid_call(route, 'a', ACME)).await;
    }
    #[expect(clippy::disallowed_methods, reason = "only a test looks at everything")]
    let items = stack.client.scan().table_name(local::database::TABLE_NAME).send().await.unwrap();
    assert!(items.items().len() > 100);
    for item in items.items() {
        let pk = item["pk"].as_s().unwrap();
        assert!(pk.starts_with("ORG#01900000-0000-7000-8000-") || pk.starts_with("KEY#"), "{pk}");
    }
}
