//! Campaigns: the progress of each, and buttons to pause, resume, cancel and retry it.

use maud::{Markup, html};
use serde_json::Value;
use shared::routes;

use super::markup::{button, member, moment_of, rows};
use super::{Console, ROWS, Shown};
use crate::api::OrganisationWithKey;

impl Console {
    pub(super) async fn campaigns(&self, organisation: &OrganisationWithKey) -> Shown {
        let campaigns = self.api.newest(organisation, &routes::LIST_CAMPAIGNS, &[], ROWS).await?;
        let listed: Vec<_> = campaigns.iter().map(|campaign| listed(organisation, campaign)).collect();
        let headings = [
            "Begun",
            "Message",
            "Status",
            "Progress",
            "#Queued",
            "#Sent",
            "#Stored",
            "#Failed",
            "#Suppressed",
            "#Cancelled",
            "",
        ];
        Ok(rows("campaigns", &headings, &listed, "None yet."))
    }
}

fn listed(organisation: &OrganisationWithKey, campaign: &Value) -> Markup {
    let counts = ["queued", "sent", "stored", "failed", "suppressed", "cancelled"]
        .map(|name| campaign["counts"][name].as_u64().unwrap_or_default());
    let (total, done) = (counts.iter().sum::<u64>(), counts[1..].iter().sum::<u64>());
    let id = member(campaign, "id");
    html! {
        td { (moment_of(&campaign["created_at"])) }
        td.wide {
            @if !campaign["name"].is_null() { strong { (member(campaign, "name")) } " " }
            (member(campaign, "message"))
            div { code { (id) } }
        }
        td {
            (member(campaign, "status"))
            @if !campaign["next_run_at"].is_null() { div { "next " (moment_of(&campaign["next_run_at"])) } }
        }
        td { progress aria-label={ (done) " of " (total) } value=(done) max=(total.max(1)) {} }
        @for count in counts { td.number { (count) } }
        td.buttons {
            @for (route, label) in [
                (&routes::PAUSE_CAMPAIGN, "Pause"), (&routes::RESUME_CAMPAIGN, "Resume"),
                (&routes::CANCEL_CAMPAIGN, "Cancel"), (&routes::RETRY_CAMPAIGN, "Retry"),
            ] {
                (button(organisation, route, &[("campaign_id", id)], label))
            }
        }
    }
}
