//! Runs `rotate-webhook-secret` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<rotate_webhook_secret::RotateWebhookSecret>())
}
