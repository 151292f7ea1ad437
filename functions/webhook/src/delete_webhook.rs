//! `DELETE /api/v1/outbound_webhook/{webhook_id}`: deletes a webhook with its deliveries. What is not delivered yet is never sent.

use shared::prelude::*;

pub type DeleteWebhook = Delete<Webhook>;
