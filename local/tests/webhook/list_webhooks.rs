//! `GET /api/v1/outbound_webhook/list`: a page of the webhooks, without their secrets.

use super::read_webhook;
use crate::fixture::kind;
use crate::records::{List, is_a_list};

const LIST: List = List { path: "/api/v1/outbound_webhook/list", at: "/data", kind: kind::WEBHOOK, first: 0, total: 2 };

is_a_list!(LIST);

#[tokio::test]
async fn a_webhook_is_listed_as_it_is_read() {
    LIST.begins_with(read_webhook::demo(0)).await;
}

#[tokio::test]
async fn an_empty_list_has_no_pages() {
    LIST.is_empty_where_nothing_has_been_made().await;
}
