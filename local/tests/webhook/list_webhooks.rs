//! `GET /api/v1/outbound_webhook/list`: a page of the webhooks, without their secrets.

use crate::support::demo_set::webhook;
use crate::support::records::list_begins_with;

#[tokio::test]
async fn a_webhook_is_listed_as_it_is_read() {
    list_begins_with("/api/v1/outbound_webhook/list", webhook(0)).await;
}
