//! The operations of the record `campaign`. Written by `UPDATE=1 cargo test`.

mod cancel_campaign;
mod delete_campaign;
mod list_campaigns;
mod read_campaign;
mod run_campaign;

pub use cancel_campaign::CancelCampaign;
pub use delete_campaign::DeleteCampaign;
pub use list_campaigns::ListCampaigns;
pub use read_campaign::ReadCampaign;
pub use run_campaign::RunCampaign;
