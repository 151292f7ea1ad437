//! Campaigns: the progress of each, its statuses over time as a chart, its contacts, and buttons to pause, resume, cancel
//! and retry it.

use maud::{Markup, html};
use serde_json::Value;
use shared::routes;
use shared::values::time::Timestamp;

use super::cells::{address, short};
use super::described;
use super::fields::words;
use super::markup::{Tone, button, card, facts, member, moment_of, progress, rows, shares, state, time_of};
use super::samples::{CampaignSample, STATUSES};
use super::{Asked, Console, ROWS, Shown};
use crate::api::{ApiRequest, OrganisationWithKey};
use crate::names::{KnownNames, name_of};

/// The size of the chart, in its own units.
const WIDTH: u64 = 720;
const HEIGHT: u64 = 160;
/// The contacts that a campaign's page shows.
const CONTACTS: &str = "size=25";

impl Console {
    pub(super) async fn campaigns(&self, organisation: &OrganisationWithKey, asked: &Asked) -> Shown {
        if let Some(id) = &asked.campaign {
            return self.campaign(organisation, id).await;
        }
        let campaigns = self.api.newest(organisation, &routes::LIST_CAMPAIGNS, ROWS).await?;
        let listed: Vec<_> = campaigns.iter().map(|campaign| listed(organisation, campaign)).collect();
        let headings = ["Campaign", "Status", "Progress", "Contacts", "Begun", ""];
        let new = described::record("campaign").map(|record| address(organisation, record, None, &[]));
        let empty = html! {
            p { "There is no campaign yet. One sends the same message to many contacts." }
            @if let Some(new) = new { a.button.main href=(new) { "Make a campaign" } }
        };
        Ok(rows("campaigns", &headings, &listed, empty))
    }

    async fn campaign(&self, organisation: &OrganisationWithKey, id: &str) -> Shown {
        let of_it = |route| ApiRequest::of(route).parameter("campaign_id", id);
        let campaign = self.api.ask(organisation, of_it(&routes::READ_CAMPAIGN)).await?;
        let contacts = self.api.ask(organisation, of_it(&routes::LIST_CAMPAIGN_CONTACTS).query(CONTACTS)).await?;
        let contacts = contacts["items"].as_array().cloned().unwrap_or_default();
        let names = self.names(organisation, contacts.iter().chain([&campaign])).await;
        let now = self.clock.now();
        self.samples.note(&campaign, now);
        let mut samples = self.samples.of(id);
        if samples.is_empty() {
            samples.push(CampaignSample::of(&campaign, now));
        }
        let listed: Vec<_> = contacts.iter().map(|contact| contact_row(organisation, contact, names)).collect();
        let outcomes = campaign["outcomes"].as_object().into_iter().flatten();
        let outcomes: Vec<_> = outcomes
            .filter_map(|(name, count)| Some((words(name), count.as_u64().filter(|count| *count > 0)?)))
            .collect();
        Ok(html! {
            section.card {
                div.live #campaign { (head(organisation, &campaign, names)) }
                (controls(organisation, id))
            }
            (card("Statuses over time", &html! {
                div.live #over-time { (chart(&samples)) }
                (legend())
                details #samples-details { summary { "The numbers" } (numbers(&samples)) }
            }))
            div.live #outcomes {
                @if !outcomes.is_empty() {
                    section.card { h2 { "Outcomes" } dl.facts { @for (name, count) in &outcomes { div { dt { (name) } dd { (count) } } } } }
                }
            }
            h2 { "Contacts" }
            (rows("contacts", &["Contact", "Status", "#Attempts", "Next attempt", "Outcome", "Conversation", "Error"], &listed, "It has no contacts yet."))
        })
    }
}

/// The counts of a campaign as parts of a bar.
fn parts(campaign: &Value) -> Vec<(&'static str, Tone, u64)> {
    let tones = STATUSES.into_iter().zip([Tone::Good, Tone::Good, Tone::Bad, Tone::Warn, Tone::Quiet, Tone::Quiet]);
    tones.map(|(name, tone)| (name, tone, campaign["counts"][name].as_u64().unwrap_or_default())).collect()
}

/// A campaign in the list.
fn listed(organisation: &OrganisationWithKey, campaign: &Value) -> Markup {
    let id = member(campaign, "id");
    let counts = STATUSES.map(|name| campaign["counts"][name].as_u64().unwrap_or_default());
    let total = counts.iter().sum::<u64>();
    let done = total - counts[STATUSES.len() - 1];
    let said = STATUSES.into_iter().zip(counts).filter(|(_, count)| *count > 0);
    let said: Vec<_> = said.map(|(name, count)| format!("{count} {name}")).collect();
    html! {
        td.wide {
            a href=(page(organisation, id)) { strong { (name_of(campaign).unwrap_or_else(|| short(id))) } }
            @if !campaign["name"].is_null() { div.quiet { (member(campaign, "message")) } }
        }
        td {
            (state(member(campaign, "status")))
            @if !campaign["next_run_at"].is_null() { div.quiet { "next " (moment_of(&campaign["next_run_at"])) } }
        }
        td { (progress(done, total)) }
        td.quiet { @if said.is_empty() { "none" } @else { (said.join(", ")) } }
        td { (moment_of(&campaign["created_at"])) }
        td.buttons { (controls(organisation, id)) }
    }
}

/// The address of a campaign's page.
fn page(organisation: &OrganisationWithKey, id: &str) -> String {
    format!("/console/campaigns?org={}&campaign={id}", organisation.name)
}

fn controls(organisation: &OrganisationWithKey, id: &str) -> Markup {
    html! {
        div.actions {
            @for (route, label) in [
                (&routes::PAUSE_CAMPAIGN, "Pause"), (&routes::RESUME_CAMPAIGN, "Resume"),
                (&routes::CANCEL_CAMPAIGN, "Cancel"), (&routes::RETRY_CAMPAIGN, "Retry"),
            ] {
                (button(organisation, route, &[("campaign_id", id)], label))
            }
        }
    }
}

/// What a campaign is, and how far.
fn head(organisation: &OrganisationWithKey, campaign: &Value, names: &KnownNames) -> Markup {
    let id = member(campaign, "id");
    let link = |name: &str| {
        let (id, record) = (campaign[name].as_str()?, described::referred(name)?);
        let shown = names.find(record.name, id).unwrap_or_else(|| short(id));
        Some(html! { a href=(address(organisation, record, Some(id), &[])) { (shown) } })
    };
    let own = described::record("campaign").map(|record| address(organisation, record, Some(id), &[]));
    let mut shown = vec![("Status", state(member(campaign, "status")))];
    for (name, member) in [("Widget", "widget_id"), ("Assistant", "assistant_id")] {
        shown.extend(link(member).map(|link| (name, link)));
    }
    for (name, member) in [("Begun", "created_at"), ("Last run", "last_run_at"), ("Next run", "next_run_at")] {
        if !campaign[member].is_null() {
            shown.push((name, moment_of(&campaign[member])));
        }
    }
    shown.extend(own.map(|own| ("Record", html! { a href=(own) { "All members" } })));
    html! {
        h2 { (name_of(campaign).unwrap_or_else(|| short(id))) }
        @if !campaign["name"].is_null() { p.quiet { (member(campaign, "message")) } }
        (shares(&parts(campaign)))
        (facts(&shown))
    }
}

/// The samples as areas on top of each other. Between two samples the counts of the first one hold.
fn chart(samples: &[CampaignSample]) -> Markup {
    let most = samples.iter().map(|sample| sample.counts.iter().sum::<u64>()).max().unwrap_or_default().max(1);
    let millis = |at: Timestamp| at.unix_millis();
    let (from, to) = match samples {
        [first, .., last] => (millis(first.at), millis(last.at)),
        _ => (0, 0),
    };
    let length = u64::try_from(to - from).unwrap_or_default().max(1);
    let x = |at: Timestamp| u64::try_from(millis(at) - from).unwrap_or_default() * WIDTH / length;
    let ends = samples.iter().skip(1).map(|sample| x(sample.at)).chain([WIDTH]);
    let places: Vec<(u64, u64, &CampaignSample)> = samples
        .iter()
        .zip(ends)
        .map(|(sample, end)| (if samples.len() == 1 { 0 } else { x(sample.at) }, end, sample))
        .collect();
    // The last counts have no time after them: they get a little room.
    let room = WIDTH / 40;
    let area = |status: usize| {
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for (start, end, sample) in &places {
            let lower: u64 = sample.counts[..status].iter().sum();
            let height = |count: u64| HEIGHT - count * HEIGHT / most;
            let end = if *end == WIDTH { WIDTH + room } else { *end };
            for (line, count) in [(&mut above, lower + sample.counts[status]), (&mut below, lower)] {
                line.extend([format!("{start},{}", height(count)), format!("{end},{}", height(count))]);
            }
        }
        below.reverse();
        above.extend(below);
        above.join(" ")
    };
    html! {
        svg.over-time role="img" aria-label="Contacts by status over time; the table below has the numbers"
            viewBox=(format!("0 0 {} {HEIGHT}", WIDTH + room)) preserveAspectRatio="none"
        {
            @for (place, status) in STATUSES.into_iter().enumerate() {
                @if samples.iter().any(|sample| sample.counts[place] > 0) {
                    polygon.(status) points=(area(place)) { title { (words(status)) } }
                }
            }
        }
        @if let [first, .., last] = samples {
            p.axis { (time_of(first.at)) (time_of(last.at)) }
        } @else {
            p.quiet { "Nothing has changed since " code { "cargo local" } " was started. The chart grows while contacts change." }
        }
    }
}

fn legend() -> Markup {
    html! { ul.legend { @for status in STATUSES { li { span.key.(status) {} (words(status)) } } } }
}

/// The numbers of the chart, the newest first.
fn numbers(samples: &[CampaignSample]) -> Markup {
    let listed: Vec<_> = samples
        .iter()
        .rev()
        .map(|sample| html! { td { (time_of(sample.at)) } @for count in sample.counts { td.number { (count) } } })
        .collect();
    let headings: Vec<String> = STATUSES.iter().map(|status| format!("#{}", words(status))).collect();
    let headings: Vec<&str> = ["Time"].into_iter().chain(headings.iter().map(String::as_str)).collect();
    rows("samples", &headings, &listed, "None.")
}

/// A contact of the campaign.
fn contact_row(organisation: &OrganisationWithKey, contact: &Value, names: &KnownNames) -> Markup {
    let link = |name: &str| {
        let (id, record) = (contact[name].as_str()?, described::referred(name)?);
        let shown = names.find(record.name, id).unwrap_or_else(|| short(id));
        Some(html! { a href=(address(organisation, record, Some(id), &[])) title=(id) { (shown) } })
    };
    let chat = contact["conversation_id"]
        .as_str()
        .map(|id| format!("/console/conversations?org={}&conversation={id}", organisation.name));
    html! {
        td { @if let Some(link) = link("contact_id") { (link) } }
        td { (state(member(contact, "status"))) }
        td.number { (contact["attempts"]) }
        td { (moment_of(&contact["next_attempt_at"])) }
        td { (state(member(&contact["result"], "outcome"))) }
        td { @if let Some(chat) = chat { a href=(chat) { "Open" } } }
        td.wide { span.bad { (member(contact, "error")) } }
    }
}
