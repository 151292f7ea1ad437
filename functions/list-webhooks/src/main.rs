//! Runs `list-webhooks` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<list_webhooks::ListWebhooks>())
}
