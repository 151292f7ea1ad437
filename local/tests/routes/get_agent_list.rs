//! `GET /api/v1/user/get_agent_list/`: a page of the organisation's users.

use serde_json::json;

use super::List;

const LIST: List = List { path: "/api/v1/user/get_agent_list/", kind: 12, total: 120 };

#[tokio::test]
async fn every_page_has_its_rows_oldest_first_and_its_seven_keys() {
    LIST.has_every_page().await;
}

ROW
#[tokio::test]
async fn next_page_leads_to_every_row_once() {
    LIST.is_walked_from_page_to_page().await;
}

#[tokio::test]
async fn page_and_size_have_defaults_and_many_forms() {
    LIST.reads_page_and_size_in_every_form().await;
}

#[tokio::test]
async fn page_and_size_have_bounds() {
    LIST.refuses_what_is_no_page().await;
}

#[tokio::test]
async fn an_empty_list_has_no_pages() {
    LIST.is_empty_where_nothing_has_been_made().await;
}
