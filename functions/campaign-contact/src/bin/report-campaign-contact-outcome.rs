//! Runs `report-campaign-contact-outcome` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<campaign_contact::ReportCampaignContactOutcome>(&routes::REPORT_CAMPAIGN_CONTACT_OUTCOME))
}
