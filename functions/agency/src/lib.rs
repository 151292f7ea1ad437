//! The operations of the record `agency`. Written by `cargo generate`.

mod check_payment_webhook;
mod receive_payment_event;
mod setup_payment_webhook;

pub use check_payment_webhook::CheckPaymentWebhook;
pub use receive_payment_event::ReceivePaymentEvent;
pub use setup_payment_webhook::SetupPaymentWebhook;
