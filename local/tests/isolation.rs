//! Tests that an organisation learns nothing about another one's records: a foreign id answers like an unknown id.

use std::collections::BTreeSet;

use local::Stack;
use local::http::{Answer, Call};
use shared::routes;
use shared::table::keys::RATE;

use crate::exercises::{EXERCISES, Exercise};
use crate::support::fixture::{
    ACME, GLOBEX, as_stored, call, data, demo_id, everything, id, kind, path, post, stack, valid_body, valid_call,
};
use crate::support::records::{NOBODYS, detail, not_found};

/// A stack that has cached the key, so that equal requests cost the same.
async fn warm_stack() -> Stack {
    let stack = stack().await;
    stack.answer(&call("GET", "/api/v1/user/get_agent_list/", ACME)).await;
    stack
}

/// The answer and its cost, without the id of the request.
fn visible(mut answer: Answer) -> Answer {
    answer.headers.remove("x-request-id");
    answer
}

#[tokio::test]
async fn a_foreign_id_in_the_path_answers_like_an_unknown_id() {
    let stack = warm_stack().await;
    let before = everything(&stack).await;
    for route in routes::ALL {
        let parameters: Vec<_> = route.parameters().collect();
        for foreign in &parameters {
            let with = |replacement: &str| {
                let path = path(route, |name| if name == *foreign { replacement.into() } else { demo_id('a', name) });
                Call { body: valid_body(route, 'a').into(), ..call(route.method, &path, ACME) }
            };
            // Each request is sent once before: the first request of a process for a list reads its head.
            for warming in [&demo_id('b', foreign), NOBODYS] {
                stack.answer(&with(warming)).await;
            }
            let others = visible(stack.answer(&with(&demo_id('b', foreign))).await);
            let nobodys = visible(stack.answer(&with(NOBODYS)).await);
            assert_eq!(others, nobodys, "{} {foreign}", route.name);
            let answers = detail(&others);
            // Two ids name a link. The issue may name the last one.
            let last = parameters.last().unwrap();
            assert!(
                [foreign, last].iter().any(|record| answers == not_found(record)),
                "{} {foreign} {answers:?}",
                route.name
            );
            // An id of another kind is unknown here. The id of a campaign contact begins like that of its campaign.
            let of_another_kind = id('a', kind::CAMPAIGN, u32::from(*foreign != "campaign_contact_id"));
            assert_eq!(detail(&stack.answer(&with(&of_another_kind)).await), answers, "{} {foreign}", route.name);
        }
    }
    assert_eq!(everything(&stack).await, before);
}

#[tokio::test]
async fn a_foreign_id_in_a_body_answers_like_an_unknown_id() {
    let stack = warm_stack().await;
    let mut cases = 0;
    for Exercise { route, names, .. } in EXERCISES {
        for (kind, body) in *names {
            let name = route.name;
            let send = async |id: &str| {
                let body = body(id).to_string().into();
                visible(stack.answer(&Call { body, ..valid_call(route, 'a', ACME) }).await)
            };
            // The first request loads the heads of its lists, so that the next two cost the same.
            let own = send(&id('a', *kind, 1)).await;
            assert!(own.status < 300, "{name} {kind} {}", own.body);
            let before = everything(&stack).await;
            let (others, nobodys) = (send(&id('b', *kind, 1)).await, send(NOBODYS).await);
            assert_eq!(others, nobodys, "{name} {kind}");
            assert_eq!(others.status, 422, "{name} {kind} {}", others.body);
            assert_eq!(everything(&stack).await, before, "{name} {kind}");
            cases += 1;
        }
    }
    assert!(cases >= 5, "{cases}");
}

#[tokio::test]
async fn a_body_that_names_another_organisation_is_forbidden() {
    let stack = warm_stack().await;
    let organisations = ["01900000-0000-7000-8000-b00000000001", NOBODYS];
    for path in ["/api/v1/assistant", "/api/v1/agency"] {
        let [other, unknown] = organisations.map(|org| post(path, ACME, format!(r#"{{"org_id":"{org}"}}"#)));
        let (other, unknown) = (visible(stack.answer(&other).await), visible(stack.answer(&unknown).await));
        assert_eq!(other, unknown);
        assert_eq!(other.status, 403);
        assert_eq!(
            other.body,
            r#"{"detail":[{"loc":["body","org_id"],"msg":"The API key belongs to another organisation","type":"forbidden"}]}"#
        );
    }
}

#[tokio::test]
async fn a_list_holds_only_rows_of_its_organisation() {
    let stack = stack().await;
    // The query names an assistant, which may be another organisation's.
    let of = |organisation| format!("&assistant_id={}", id(organisation, kind::ASSISTANT, 1));
    for (at, (organisation, key)) in [('a', ACME), ('b', GLOBEX)].into_iter().enumerate() {
        let others = if organisation == 'a' { 'b' } else { 'a' };
        let lists = EXERCISES.iter().filter_map(|Exercise { route, rows, .. }| {
            Some((path(route, |name| demo_id(organisation, name)), String::new(), (*rows)?[at]))
        });
        let filtered = [
            ("&status=open".to_owned(), 1),
            ("&status=closed".to_owned(), 1),
            (of(organisation), 2),
            (of(others), 0),
            (format!("{}&status=open", of(others)), 0),
            (format!("{}&status=closed", of(others)), 0),
        ];
        let filtered = filtered.into_iter().map(|(query, total)| ("/api/v1/conversation".to_owned(), query, total));
        for (path, query, total) in lists.chain(filtered) {
            let page = data(&stack.answer(&call("GET", &format!("{path}?{query}"), key)).await);
            assert_eq!(page["total"], total, "{path}{query}");
            // The id of a file has another form.
            let own =
                [format!("01900000-0000-7000-8000-{organisation}"), format!("01900000-0000-7{organisation}04-8000-")];
            let rows = page["items"].as_array().unwrap();
            assert!(total == 0 || !rows.is_empty(), "{path}{query}: no row to look at");
            for row in rows {
                assert!(own.iter().any(|prefix| row["id"].as_str().unwrap().starts_with(prefix)), "{row}");
            }
        }
    }
}

#[tokio::test]
async fn every_item_except_keys_and_pointers_has_an_organisation() {
    let stack = stack().await;
    for route in routes::ALL {
        stack.answer(&valid_call(route, 'a', ACME)).await;
    }
    let mut of_no_organisation = BTreeSet::new();
    for item in as_stored(&stack) {
        let pk = item["pk"].as_s().unwrap();
        // An event of the payment provider names only an agency. This pointer leads to it and holds only ids.
        if pk.starts_with("PAYMENT_WEBHOOK#") {
            assert!(item["sk"].as_s().unwrap().starts_with("ORG#01900000-0000-7000-8000-"), "{item:?}");
            assert!(item.keys().all(|name| ["pk", "sk", "id"].contains(&name.as_str())), "{item:?}");
        }
        // The day on which a key was used is where every function may write.
        if pk.starts_with(RATE) {
            assert!(item.keys().all(|name| ["pk", "sk", "ttl", "used_on"].contains(&name.as_str())), "{item:?}");
        }
        if !pk.starts_with("ORG#01900000-0000-7000-8000-") {
            of_no_organisation.insert(pk.split('#').next().unwrap().to_owned());
        }
    }
    assert_eq!(of_no_organisation, ["KEY", "PAYMENT_WEBHOOK", "RATE"].map(str::to_owned).into());
}
