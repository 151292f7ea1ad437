//! The operations of the record `campaign`. Written by `cargo generate`.

mod add_campaign_contacts;
mod call_contacts;
mod cancel_campaign;
mod create_campaign;
mod delete_campaign;
mod list_campaigns;
mod message_contacts;
mod pause_campaign;
mod read_campaign;
mod resume_campaign;
mod retry_campaign;
mod run_campaign;
mod update_campaign;

pub use add_campaign_contacts::AddCampaignContacts;
pub use call_contacts::CallContacts;
pub use cancel_campaign::CancelCampaign;
pub use create_campaign::CreateCampaign;
pub use delete_campaign::DeleteCampaign;
pub use list_campaigns::ListCampaigns;
pub use message_contacts::MessageContacts;
pub use pause_campaign::PauseCampaign;
pub use read_campaign::ReadCampaign;
pub use resume_campaign::ResumeCampaign;
pub use retry_campaign::RetryCampaign;
pub use run_campaign::RunCampaign;
pub use update_campaign::UpdateCampaign;
