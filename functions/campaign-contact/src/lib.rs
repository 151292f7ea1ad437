//! The operations of the record `campaign-contact`. Written by `cargo generate`.

mod delete_campaign_contact;
mod list_campaign_contacts;
mod report_campaign_contact_outcome;

pub use delete_campaign_contact::DeleteCampaignContact;
pub use list_campaign_contacts::ListCampaignContacts;
pub use report_campaign_contact_outcome::ReportCampaignContactOutcome;
