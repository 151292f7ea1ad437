//! `GET /api/v1/outbound_webhook/{webhook_id}`: a webhook, without its secret.

use shared::prelude::*;

pub type ReadWebhook = Read<Webhook>;
