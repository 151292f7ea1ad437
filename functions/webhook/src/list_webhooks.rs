//! `GET /api/v1/outbound_webhook/list`: a page of the organisation's webhooks.

use shared::prelude::*;

pub type ListWebhooks = List<Webhook>;
