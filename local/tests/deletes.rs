//! Checks the rules of deletes on every route that deletes one record.

use futures_util::future::join_all;
use shared::request::route::Route;
use shared::routes;

use crate::support::fixture::{ACME, call, data, id, kind, stack, valid_call};
use crate::support::records::deletes;

fn all() -> impl Iterator<Item = &'static Route> {
    routes::ALL.iter().copied().filter(|route| route.method == "DELETE" && route.parameters().next().is_some())
}

#[tokio::test]
async fn a_delete_answers_the_plain_record_and_leaves_a_hole() {
    for (path, kind, ordinal, list, parameter) in [
        // The attributes of a tag are free-form.
        ("tag", kind::TAG, 1, "TAG", "tag_id"),
        ("tag", kind::TAG, 2, "TAG", "tag_id"),
        ("intent", kind::INTENT, 1, "INTENT", "intent_id"),
        ("form", kind::FORM, 1, "FORM", "form_id"),
        ("outbound_webhook", kind::WEBHOOK, 0, "WEBHOOK", "webhook_id"),
        ("outbound_webhook", kind::WEBHOOK, 1, "WEBHOOK", "webhook_id"),
    ] {
        let path = format!("/api/v1/{path}/{}", id('a', kind, ordinal));
        let record = data(&stack().await.answer(&call("GET", &path, ACME)).await);
        deletes(&path, record, list, ordinal, parameter).await;
    }
}

#[tokio::test]
async fn one_of_several_concurrent_deletes_succeeds() {
    for route in all() {
        let (stack, delete) = (stack().await, valid_call(route, 'a', ACME));
        let total = async || {
            let path = format!("{}/list", route.path.rsplit_once('/')?.0);
            let list = routes::ALL.iter().find(|list| list.path == path)?;
            Some(data(&stack.answer(&valid_call(list, 'a', ACME)).await)["total"].as_u64().unwrap())
        };
        let before = total().await;
        let answers = join_all((0..5).map(|_| stack.answer(&delete))).await;
        let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 404, 404, 404, 404], "{}", route.name);
        assert_eq!(total().await, before.map(|before| before - 1), "{}", route.name);
    }
}
