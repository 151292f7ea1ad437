//! `POST /api/v1/assistant/{assistant_id}/data_source/{datasource_id}`: links a data source to an assistant once.

use futures_util::future::join_all;
use local::Stack;
use local::http::Answer;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, data, get, id, kind, post, stack};
use crate::support::records::{NOBODYS, changes, detail, items, not_found, nothing};

fn at(assistant: &str, datasource: &str) -> String {
    format!("/api/v1/assistant/{assistant}/data_source/{datasource}")
}

async fn link(stack: &Stack, assistant: &str, datasource: &str) -> Answer {
    stack.answer(&post(&at(assistant, datasource), ACME, "")).await
}

/// The ids on a page of an assistant's data sources, and the total.
async fn linked(stack: &Stack, assistant: &str, query: &str) -> (Vec<Value>, Value) {
    let page = get(stack, &format!("/api/v1/assistant/{assistant}/data_source?{query}")).await;
    (page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect(), page["total"].clone())
}

#[tokio::test]
async fn a_repeated_link_gets_the_same_answer_and_changes_nothing() {
    let stack = stack().await;
    let (assistant, datasource) = (id('a', kind::ASSISTANT, 0), id('a', kind::DATASOURCE, 1));
    let first = link(&stack, &assistant, &datasource).await;
    let before = items(&stack).await;
    let again = link(&stack, &assistant.to_uppercase(), &datasource.replace('-', "")).await;
    assert_eq!((again.status, again.body), (201, first.body));
    assert_eq!(changes(&stack, &before).await, nothing());
    assert_eq!(linked(&stack, &assistant, "").await, (vec![json!(datasource)], json!(1)));
}

#[tokio::test]
async fn concurrent_requests_make_one_link() {
    let stack = stack().await;
    let (assistant, datasource) = (id('a', kind::ASSISTANT, 0), id('a', kind::DATASOURCE, 0));
    let answers = join_all((0..8).map(|_| link(&stack, &assistant, &datasource))).await;
    assert!(answers.iter().all(|answer| (answer.status, &answer.body) == (201, &answers[0].body)), "{answers:?}");
    assert_eq!(linked(&stack, &assistant, "").await, (vec![json!(datasource)], json!(1)));
    // The other assistant keeps its link.
    assert_eq!(linked(&stack, &id('a', kind::ASSISTANT, 1), "").await.1, 1);
}

#[tokio::test]
async fn an_unknown_assistant_gives_404_for_any_data_source() {
    let stack = stack().await;
    for datasource in [NOBODYS, &id('a', kind::DATASOURCE, 0)] {
        assert_eq!(detail(&link(&stack, NOBODYS, datasource).await), not_found("assistant_id"), "{datasource}");
    }
}

#[tokio::test]
async fn pages_follow_the_order_of_linking_and_omit_removed_links() {
    let stack = stack().await;
    let assistant = id('a', kind::ASSISTANT, 0);
    let mut made = Vec::new();
    for number in 0..5 {
        let body = json!({"name": format!("Source {number}"), "ds_type": "pdf"});
        made.push(data(&stack.answer(&post("/api/v1/datasource", ACME, body.to_string())).await)["id"].clone());
    }
    // The order of linking differs from the order of creation.
    let order: Vec<Value> = [3, 0, 4, 1, 2].iter().map(|number: &usize| made[*number].clone()).collect();
    for datasource in &order {
        assert_eq!(link(&stack, &assistant, datasource.as_str().unwrap()).await.status, 201);
    }
    for (page, wanted) in [(1, &order[..2]), (2, &order[2..4]), (3, &order[4..]), (4, &[])] {
        assert_eq!(linked(&stack, &assistant, &format!("&size=2&page={page}")).await, (wanted.to_vec(), json!(5)));
    }
    // One link is removed, and the data source of another link is deleted.
    let removed =
        call("DELETE", &format!("/api/v1/datasource/{}/assistant/{assistant}", order[0].as_str().unwrap()), ACME);
    assert_eq!(stack.answer(&removed).await.status, 200);
    assert_eq!(detail(&stack.answer(&removed).await), not_found("assistant_id"));
    let gone = call("DELETE", &format!("/api/v1/datasource/{}", order[1].as_str().unwrap()), ACME);
    assert_eq!(stack.answer(&gone).await.status, 200);
    assert_eq!(linked(&stack, &assistant, "").await, (order[2..].to_vec(), json!(4)));
    // A removed data source can be linked again, behind the others.
    assert_eq!(link(&stack, &assistant, order[0].as_str().unwrap()).await.status, 201);
    assert_eq!(linked(&stack, &assistant, "&size=100").await.0.last(), Some(&order[0]));
}
