//! `GET /api/v1/outbound_webhook/list`: a page of the webhooks, without their secrets.

use super::read_webhook;
use crate::records::list_begins_with;

#[tokio::test]
async fn a_webhook_is_listed_as_it_is_read() {
    list_begins_with("/api/v1/outbound_webhook/list", read_webhook::demo(0)).await;
}
