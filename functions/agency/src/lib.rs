//! The operations of the record `agency`. Written by `UPDATE=1 cargo test`.

mod create_agency;
mod setup_payment_webhook;

pub use create_agency::CreateAgency;
pub use setup_payment_webhook::SetupPaymentWebhook;
