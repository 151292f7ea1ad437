//! One organisation learns nothing of another's records: their ids answer like ids that nobody has.

use local::Stack;
use local::gateway::{Answer, Call};
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
            let others = visible(stack.answer(&with(&demo_id('b', foreign))).await);
            let nobodys = visible(stack.answer(&with(NOBODYS)).await);
            assert_eq!(others, nobodys, "{} {foreign}", route.name);
            assert_eq!(others.status, 404, "{} {foreign}", route.name);
        }
    }
    assert_eq!(everything(&stack).await, before);
}

#[tokio::test]
async fn another_s_id_in_a_body_answers_like_nobody_s() {
    let stack = warm_stack().await;
    let widget = format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 1));
    let cases = [
        ("/api/v1/assistant", kind::WEBHOOK, "webhook_id", false),
        (widget.as_str(), kind::CONTACT, "contact_ids", true),
    ];
    for (path, kind, field, list) in cases {
        let body =
            |id: &str| if list { format!(r#"{{"{field}":["{id}"]}}"#) } else { format!(r#"{{"{field}":"{id}"}}"#) };
        let others = visible(stack.answer(&post(path, ACME, body(&id('b', kind, 1)))).await);
        let nobodys = visible(stack.answer(&post(path, ACME, body(NOBODYS))).await);
        assert_eq!(others, nobodys, "{path}");
        assert_eq!(others.status, 422, "{path} {}", others.body);
        let own = stack.answer(&post(path, ACME, body(&id('a', kind, 1)))).await;
        assert!(own.status < 300, "{path} {}", own.body);
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
    for (path, acme, globex) in [("/api/v1/user/get_agent_list/", 120, 3), ("/api/v1/link_tag_entity/list", 250, 2)] {
        for (key, total) in [(ACME, acme), (GLOBEX, globex)] {
            let page = data(&stack.answer(&call("GET", path, key)).await);
            assert_eq!(page["total"], total, "{path}");
            let prefix = if key == ACME { "01900000-0000-7000-8000-a" } else { "01900000-0000-7000-8000-b" };
            for row in page["items"].as_array().unwrap() {
                assert!(row["id"].as_str().unwrap().starts_with(prefix), "{row}");
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
