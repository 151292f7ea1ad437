//! The operations of the record `webhook`. Written by `cargo generate`.

mod create_webhook;
mod recover_webhook;
mod rotate_webhook_secret;
mod send_test_event;
mod update_webhook;

pub use create_webhook::CreateWebhook;
pub use recover_webhook::RecoverWebhook;
pub use rotate_webhook_secret::RotateWebhookSecret;
pub use send_test_event::SendTestEvent;
pub use update_webhook::UpdateWebhook;
