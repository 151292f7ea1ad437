//! Runs `list-campaign-contacts` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<campaign_contact::ListCampaignContacts>(&routes::LIST_CAMPAIGN_CONTACTS))
}
