//! `POST /api/v1/campaign/{campaign_id}/pause` and `…/resume`: a paused campaign waits until it is resumed.

use std::collections::{BTreeMap, BTreeSet};

use local::receiver::Behaviour;
use serde_json::json;

use crate::support::crashes::crashes_everywhere;
use crate::support::sender::{Sender, all};
use crate::support::sending::events;
use crate::support::sweep::cases;

const DAY: i64 = 86_400;

/// A campaign of three contacts in this state.
async fn campaign_in(state: &str) -> (Sender, String) {
    let sender = Sender::new(true, 3).await;
    let behaviour = match state {
        "failed" => Behaviour::Answer(410),
        "waiting" => Behaviour::Answer(500),
        _ => Behaviour::Answer(200),
    };
    sender.setup.receiver.behave("/connector", behaviour);
    let id = sender.run(json!({})).await;
    match state {
        "queued" => {}
        "paused" | "cancelled" => {
            let verb = if state == "paused" { "pause" } else { "cancel" };
            assert_eq!(sender.control(&id, verb).await.0, 200);
        }
        _ => sender.minute(&[&id]).await,
    }
    (sender, id)
}

#[tokio::test]
async fn each_state_allows_or_refuses_each_control() {
    let (over, cancelled, under_way) = ("campaign_completed", "campaign_cancelled", "campaign_in_progress");
    let expected = [
        ("queued", [("pause", "paused"), ("resume", "queued"), ("retry", under_way), ("cancel", "cancelled")]),
        ("waiting", [("pause", "paused"), ("resume", "in_progress"), ("retry", under_way), ("cancel", "cancelled")]),
        ("paused", [("pause", "paused"), ("resume", "queued"), ("retry", under_way), ("cancel", "cancelled")]),
        ("completed", [("pause", over), ("resume", over), ("retry", "completed"), ("cancel", over)]),
        ("failed", [("pause", over), ("resume", over), ("retry", "queued"), ("cancel", over)]),
        ("cancelled", [("pause", cancelled), ("resume", cancelled), ("retry", cancelled), ("cancel", cancelled)]),
    ];
    let controls = expected.into_iter().flat_map(|(state, all)| all.map(|(verb, wanted)| (state, verb, wanted)));
    for (state, verb, wanted) in cases(controls) {
        let (sender, id) = campaign_in(state).await;
        let before = sender.campaign(&id).await.0;
        let (status, answer) = sender.control(&id, verb).await;
        let case = format!("{state} {verb}: {answer}");
        if status == 409 {
            assert_eq!(answer, wanted, "{case}");
            assert_eq!(sender.campaign(&id).await.0, before, "{case}");
            continue;
        }
        // The answer is the campaign as it is read. A repeat gets the same answer, or a refusal.
        assert_eq!((status, &answer["status"]), (200, &json!(wanted)), "{case}");
        assert_eq!(sender.campaign(&id).await.0, answer, "{case}");
        sender.setup.pass(1);
        let again = sender.control(&id, verb).await;
        let wanted = match verb {
            "cancel" => (409, json!(cancelled)),
            "retry" if state == "failed" => (409, json!(under_way)),
            _ => (200, answer.clone()),
        };
        assert_eq!(again, wanted, "{case}");
        assert_eq!(sender.campaign(&id).await.0, answer, "{case}");
    }
}

#[tokio::test]
async fn a_resumed_campaign_is_sent_once() {
    // The pause comes before the dispatch, after it, or after a failed attempt.
    for moment in ["queued", "ready", "waiting"] {
        for connected in [true, false] {
            let sender = Sender::new(connected, 5).await;
            sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
            let id = sender.run(json!({})).await;
            if moment != "queued" && connected {
                sender.setup.ticks().await;
            }
            if moment == "waiting" && connected {
                sender.setup.settle().await;
            }
            sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
            let (case, tries) = (format!("{moment}, {connected}"), sender.received().len());
            assert_eq!(sender.control(&id, "pause").await.1["status"], "paused", "{case}");
            for _ in 0..3 {
                sender.minute(&[&id]).await;
                sender.setup.pass(DAY);
            }
            assert_eq!((sender.received().len(), sender.outcome(&id).await), (tries, all("queued", 5)), "{case}");
            assert_eq!(sender.campaign(&id).await.0["status"], "paused", "{case}");
            assert_eq!(sender.setup.due(), BTreeMap::new(), "a paused campaign is due: {case}");
            assert_eq!(sender.control(&id, "resume").await.1["status"], "queued", "{case}");
            sender.until_the_end(&id).await;
            assert_eq!(sender.outcome(&id).await, sender.done(5), "{case}");
            let sent = if connected { 5 } else { 0 };
            assert_eq!((sender.received().len(), events(&sender.received()).len()), (tries + sent, sent), "{case}");
            assert_eq!(sender.conversations().await.len(), 5, "{case}");
            let outbox = sender.setup.outbox(&sender.org, &json!({"id": sender.widget.id})).await;
            let wanted = if moment == "waiting" { 2 } else { 1 };
            let attempts: Vec<_> = outbox.iter().map(|delivery| delivery.attempts).collect();
            assert_eq!(attempts, vec![wanted; sent], "{case}: {outbox:?}");
        }
    }
}

#[tokio::test]
async fn a_paused_campaign_does_not_delay_others_of_its_connector() {
    let sender = Sender::new(true, 30).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
    let paused = sender.run(json!({"message": "Paused"})).await;
    sender.minute(&[&paused]).await;
    sender.control(&paused, "pause").await;
    let other = sender.run(json!({"message": "Other"})).await;
    sender.minute(&[&other]).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    sender.setup.pass(DAY);
    for _ in 0..10 {
        sender.minute(&[&paused, &other]).await;
    }
    assert_eq!((sender.outcome(&paused).await, sender.outcome(&other).await), (all("queued", 30), sender.done(30)));
    assert_eq!(sender.control(&paused, "cancel").await.1["status"], "cancelled");
    assert_eq!(sender.outcome(&paused).await, all("cancelled", 30));
}

#[tokio::test]
async fn a_pause_during_sending_stops_the_campaign() {
    for connected in [false, true] {
        let sender = Sender::new(connected, 40).await;
        let (setup, id) = (&sender.setup, sender.run(json!({})).await);
        let paused = sender.while_it_is_sent(&id, async || sender.control(&id, "pause").await).await;
        assert_eq!(paused.0, 200);
        let (received, outcome) = (sender.received().len(), sender.outcome(&id).await);
        assert!(outcome["queued"] > 0, "{outcome:?}");
        setup.pass(DAY);
        setup.minutes(3).await;
        assert_eq!((sender.received().len(), sender.outcome(&id).await), (received, outcome));
        sender.control(&id, "resume").await;
        sender.until_the_end(&id).await;
        assert_eq!((sender.outcome(&id).await, sender.conversations().await.len()), (sender.done(40), 40));
        assert_eq!(events(&sender.received()).len(), if connected { 40 } else { 0 });
    }
}

#[tokio::test]
async fn a_paused_campaign_is_sent_once_despite_a_crash() {
    // The connector fails first, so that something waits when the campaign is paused.
    let waiting = async || {
        let (sender, id) = campaign_in("waiting").await;
        sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
        sender.setup.receiver.forget();
        (sender, id)
    };
    let minutes = async |sender: &Sender| {
        for _ in 0..2 {
            sender.setup.pass(600);
            sender.setup.minute().await;
        }
    };
    let pause = async |(sender, id): &(Sender, String)| {
        sender.control(id, "pause").await;
        minutes(sender).await;
    };
    let resume = async |(sender, id): &(Sender, String)| {
        sender.control(id, "resume").await;
        minutes(sender).await;
    };
    let once = async |(sender, id): &(Sender, String), case: String| {
        sender.setup.settle().await;
        // A finished campaign refuses this.
        sender.control(id, "resume").await;
        sender.until_the_end(id).await;
        assert_eq!(sender.outcome(id).await, sender.done(3), "{case}");
        assert_eq!(events(&sender.received()).len(), 3, "{case}");
        let conversations = sender.conversations().await;
        let with: BTreeSet<_> = conversations.iter().map(|one| one["contact_id"].as_str().unwrap()).collect();
        assert_eq!((with.len(), conversations.len()), (3, 3), "{case}");
    };
    crashes_everywhere(&waiting, |(sender, _)| &sender.setup, pause, once).await;
    let paused = async || {
        let campaign = waiting().await;
        pause(&campaign).await;
        assert_eq!(campaign.0.received(), []);
        campaign
    };
    crashes_everywhere(paused, |(sender, _)| &sender.setup, resume, once).await;
}
