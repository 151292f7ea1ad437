//! `DELETE /api/v1/outbound_webhook/{webhook_id}`: removes a webhook; its unfinished deliveries are given up.

use shared::prelude::*;

pub type DeleteWebhook = Delete<Webhook>;
