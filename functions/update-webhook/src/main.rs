//! Runs `update-webhook` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<update_webhook::UpdateWebhook>())
}
