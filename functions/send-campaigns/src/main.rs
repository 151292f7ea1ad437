//! Runs `send-campaigns` under Lambda.

use shared::schedule::Scheduled;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run_scheduled(Scheduled::of::<send_campaigns::SendCampaigns>())
}
