//! What runs without a request. Written by `cargo generate`.

mod note_upload;
mod record_changed;
mod redrive;
mod release_deliveries;
mod remove_payment_webhooks;
mod run_exports;
mod send_campaigns;
mod send_delivery;

pub use note_upload::NoteUpload;
pub use record_changed::RecordChanged;
pub use redrive::Redrive;
pub use release_deliveries::ReleaseDeliveries;
pub use remove_payment_webhooks::RemovePaymentWebhooks;
pub use run_exports::RunExports;
pub use send_campaigns::SendCampaigns;
pub use send_delivery::SendDelivery;
