//! Draws the diagrams of `docs/STATES.md` with the functions that decide the states of campaigns and deliveries.

use std::collections::BTreeSet;

use shared::records::campaign::{Campaign, CampaignCommand, CampaignPhase, CampaignStep, ContactTotals, Counts};
use shared::records::delivery::{Attempt, Delivery, DeliveryOutcome, DeliveryStage, NewDelivery, SentBy};
use shared::records::event::EventId;
use shared::values::id::{CampaignId, DeliveryId};
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::fixture::{NOW, acme, id, kind, stack};
use crate::support::generated::generated;

/// The name of a state: the word before its data.
fn name(state: &impl std::fmt::Debug) -> String {
    let text = format!("{state:?}");
    text.split([' ', '(']).next().unwrap().to_owned()
}

/// Every transition between the states that can be reached from `first`.
fn transitions<S: Clone>(first: Vec<S>, name: fn(&S) -> String, next: impl Fn(&S) -> Vec<(String, S)>) -> Vec<String> {
    let (mut seen, mut lines, mut left) = (BTreeSet::new(), BTreeSet::new(), first);
    while let Some(state) = left.pop() {
        for (event, after) in next(&state) {
            let (from, to) = (name(&state), name(&after));
            if from != to {
                lines.insert(format!("  {from} --> {to}: {event}"));
            }
            if seen.insert((from, to)) {
                left.push(after);
            }
        }
    }
    lines.into_iter().collect()
}

fn of_deliveries() -> Vec<String> {
    let now = Timestamp::from_unix_millis(NOW);
    let attempted = |status| DeliveryOutcome::Attempted {
        attempt: Attempt { at: now, status: Some(status), milliseconds: 1, error: None, answer: None },
        retry_after: None,
        retried_by: SentBy::Stream,
        jitter: 0.0,
    };
    let cut_short = || DeliveryOutcome::CutShort {
        attempt: Attempt { at: now, status: None, milliseconds: 1, error: None, answer: None },
    };
    let outcomes = || {
        vec![
            ("asked again", DeliveryOutcome::AskedAgain { by: Uuid::nil() }),
            ("recovered", DeliveryOutcome::Recovered { by: Uuid::nil() }),
            ("resumed", DeliveryOutcome::Resumed),
            ("released", DeliveryOutcome::Released),
            ("attempted, 2xx", attempted(204)),
            ("attempted, failed", attempted(500)),
            ("attempted, 410", attempted(410)),
            ("attempted, cut short", cut_short()),
            ("deferred", DeliveryOutcome::Deferred),
            ("window closed", DeliveryOutcome::WindowClosed { opens: now }),
            ("campaign paused", DeliveryOutcome::Paused),
            ("given up", DeliveryOutcome::GivenUp { reason: String::new() }),
        ]
    };
    // A delivery that has ended, or is parked with its campaign, changes only on request.
    let possible = |stage: DeliveryStage, outcome: &DeliveryOutcome| match stage {
        DeliveryStage::Delivered => matches!(outcome, DeliveryOutcome::AskedAgain { .. }),
        DeliveryStage::Dead => {
            matches!(outcome, DeliveryOutcome::AskedAgain { .. } | DeliveryOutcome::Recovered { .. })
        }
        DeliveryStage::Parked => {
            matches!(outcome, DeliveryOutcome::AskedAgain { .. } | DeliveryOutcome::Resumed)
        }
        DeliveryStage::Ready { .. } | DeliveryStage::Waiting { .. } => {
            !matches!(outcome, DeliveryOutcome::Resumed | DeliveryOutcome::Recovered { .. })
        }
    };
    let next = |delivery: &Delivery| {
        let outcomes = outcomes().into_iter().filter(|(_, outcome)| possible(delivery.stage(), outcome));
        outcomes.map(|(event, outcome)| (event.to_owned(), delivery.clone().decide(outcome, now))).collect()
    };
    let new = Delivery::new(DeliveryId(Uuid::nil()), NewDelivery::test(EventId(Uuid::nil()), now), now);
    transitions(vec![new], |delivery| name(&delivery.stage()), next)
}

async fn of_campaigns() -> Vec<String> {
    let now = Timestamp::from_unix_millis(NOW);
    let campaign = CampaignId(id('a', kind::CAMPAIGN, 0).parse().unwrap());
    let table = acme(&stack().await);
    let run: Campaign = table.get(campaign).await.unwrap();
    let scheduled =
        Campaign { start_time: Some(serde_json::from_value(serde_json::json!(now)).unwrap()), ..run.clone() };
    let lease = |campaign: &Campaign| match campaign.phase() {
        CampaignPhase::Sending { lease } => lease,
        _ => now,
    };
    let counts = Counts { queued: 1, failed: 1, ..Counts::default() };
    let next = |campaign: &Campaign| {
        let totals = ContactTotals { counts, dispatched: 0 };
        let over = ContactTotals { counts: Counts { failed: 1, ..Counts::default() }, dispatched: 0 };
        let commands = [
            ("cancel", CampaignCommand::Cancel, totals),
            ("pause", CampaignCommand::Pause, totals),
            ("resume", CampaignCommand::Resume, totals),
            ("retry", CampaignCommand::Retry, over),
        ];
        let later = now.plus_seconds(3600);
        let steps = [
            ("lease", CampaignStep::Lease { until: later }),
            ("window closes", CampaignStep::Interrupt { lease: lease(campaign), opens: now }),
            ("sends of the day reached", CampaignStep::Defer { lease: lease(campaign), at: now }),
            ("all dispatched", CampaignStep::Finish { lease: lease(campaign), again: None }),
            ("another attempt", CampaignStep::Again { at: later }),
            ("nothing queued", CampaignStep::Complete { round: campaign.round }),
        ];
        let commanded = commands.into_iter().filter_map(|(event, command, totals)| {
            Some((event.to_owned(), campaign.clone().on(command, totals, now).ok()?))
        });
        let stepped =
            steps.into_iter().filter_map(|(event, step)| Some((event.to_owned(), campaign.clone().after(step, now)?)));
        commanded.chain(stepped).collect::<Vec<_>>()
    };
    transitions(vec![run, scheduled], |campaign| name(&campaign.phase()), next)
}

#[tokio::test]
async fn the_diagrams_show_every_transition() {
    let diagram = |lines: Vec<String>| format!("```mermaid\nstateDiagram-v2\n{}\n```\n", lines.join("\n"));
    let (campaigns, deliveries) = (of_campaigns().await, of_deliveries());
    assert!(campaigns.iter().any(|line| line.contains("Paused --> Queued: resume")), "{campaigns:?}");
    assert!(deliveries.iter().any(|line| line.contains("Dead --> Ready: asked again")), "{deliveries:?}");
    let page = format!(
        "<!-- Written by `cargo generate`. -->\n# States\n\nThis page shows the states of a campaign and of a delivery. Look here if a campaign or a delivery is not where you expect it.\n\nRead an arrow like this: `Paused` → `Queued` with the word *resume* means that a paused campaign becomes queued when a caller resumes it. `cargo generate` draws the diagrams\nfrom the functions that decide.\n\n\
         ## A campaign\n\nThe arrows are commands of callers (*cancel*, *pause*, *resume*, *retry*), and steps of the function that sends the campaign \
         ([`state.rs`](../shared/src/records/campaign/state.rs)). A schedule and its time window decide between `Queued` and `Waiting`.\n\n{}\n\
         ## A delivery\n\nThe arrows are events in the life of the delivery ([`state.rs`](../shared/src/records/delivery/state.rs)).\n\n{}",
        diagram(campaigns),
        diagram(deliveries)
    );
    generated("docs/STATES.md", &page);
}
