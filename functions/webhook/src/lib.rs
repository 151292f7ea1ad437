//! The operations of the record `webhook`. Written by `cargo generate`.

mod create_webhook;
mod delete_webhook;
mod list_webhooks;
mod read_webhook;
mod rotate_webhook_secret;
mod send_test_event;
mod update_webhook;

pub use create_webhook::CreateWebhook;
pub use delete_webhook::DeleteWebhook;
pub use list_webhooks::ListWebhooks;
pub use read_webhook::ReadWebhook;
pub use rotate_webhook_secret::RotateWebhookSecret;
pub use send_test_event::SendTestEvent;
pub use update_webhook::UpdateWebhook;
