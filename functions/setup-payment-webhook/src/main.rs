//! Runs `setup-payment-webhook` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<setup_payment_webhook::SetupPaymentWebhook>())
}
