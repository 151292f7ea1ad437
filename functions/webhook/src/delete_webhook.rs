//! `DELETE /api/v1/outbound_webhook/{webhook_id}`: removes a webhook; what is still on its way there is given up.

use shared::prelude::*;

pub type DeleteWebhook = Delete<Webhook>;
