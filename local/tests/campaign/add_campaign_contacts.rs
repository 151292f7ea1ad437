//! `POST /api/v1/campaign/{campaign_id}/contact`: adds contacts to a campaign with a schedule, each once.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use local::database::TABLE_NAME;
use serde_json::{Value, json};
use shared::records::campaign::NEIGHBOURS;
use shared::values::id::ContactId;

use crate::support::crashes::crashes_everywhere;
use crate::support::fixture::everything;
use crate::support::records::NOBODYS;
use crate::support::sender::{Sender, created, empty, texts};
use crate::support::sending::{events, id_of};
use crate::support::sweep::cases;

const HOUR: i64 = 3600;

#[tokio::test]
async fn each_contact_is_added_once_in_any_batch_size() {
    let (sender, id) = empty(60, json!({"interval": 60})).await;
    let contacts = sender.contacts();
    for (from, to) in [(0, 3), (0, 3), (2, 5), (0, 60), (0, 60)] {
        let (status, answer) = sender.add(&id, &contacts[from..to]).await;
        let next = sender.campaign(&id).await.0["next_run_at"].clone();
        let wanted = json!({
            "campaign_id": id, "status": "to_be_run", "contacts": to - from, "next_run_at": next,
        });
        assert_eq!((status, &answer["data"]), (200, &wanted));
        let members = sender.members(&id).await;
        assert_eq!(members, texts(&contacts[..to.max(members.len())]));
    }
    // A removed contact can be added again.
    let (_, rows) = sender.campaign(&id).await;
    sender.delete(&format!("campaign_contact/{}", id_of(&rows[7]))).await;
    assert_eq!(sender.add(&id, &contacts).await.0, 200);
    assert_eq!(sender.members(&id).await.last(), Some(&contacts[7].to_string()));
    sender.setup.pass(HOUR);
    sender.setup.minutes(2).await;
    assert_eq!((events(&sender.received()).len(), sender.outcome(&id).await), (60, sender.done(60)));
}

#[tokio::test]
async fn adding_a_contact_costs_the_same_in_every_campaign_size() {
    let (sender, id) = empty(160, json!({"interval": 60})).await;
    let contacts = sender.contacts();
    let path = format!("/api/v1/campaign/{id}/contact");
    let cost = async |contact: ContactId| {
        let answer = sender.setup.ask(&sender.org, "POST", &path, &json!({"contact_ids": [contact]})).await;
        (answer.status, answer.cost)
    };
    let first = cost(contacts[0]).await;
    assert_eq!(first.0, 200);
    sender.add(&id, &contacts[1..159]).await;
    assert_eq!(cost(contacts[159]).await, first);
    assert_eq!(sender.members(&id).await.len(), 160);
}

/// Removes an attribute that older campaigns do not have.
async fn forget(sender: &Sender, attribute: &str) {
    for item in everything(&sender.setup.stack).await {
        if item.contains_key(attribute) {
            let update = sender.setup.stack.client.update_item().table_name(TABLE_NAME);
            let update = update.update_expression(format!("REMOVE {attribute}"));
            update.key("pk", item["pk"].clone()).key("sk", item["sk"].clone()).send().await.unwrap();
        }
    }
}

#[tokio::test]
async fn contacts_of_a_new_campaign_are_spread_over_partitions() {
    const CONTACTS: usize = NEIGHBOURS as usize + 12;
    for (is_older, wanted) in [(false, 2), (true, 1)] {
        let (sender, id) = empty(CONTACTS, json!({"interval": 60})).await;
        if is_older {
            forget(&sender, "spreads_contacts").await;
        }
        let (contacts, partitions) = (sender.contacts(), async || {
            let items =
                everything(&sender.setup.stack).await.into_iter().map(|item| item["pk"].as_s().unwrap().clone());
            items.filter(|key| key.contains("#CAMPAIGN_CONTACT#")).collect::<BTreeSet<_>>().len()
        });
        // The first are staged, the next are added by one transaction, and the last are in the second partition.
        for count in [CONTACTS - 20, CONTACTS - 4, CONTACTS] {
            assert_eq!(sender.add(&id, &contacts[..count]).await.0, 200);
        }
        assert_eq!((sender.members(&id).await, partitions().await), (texts(&contacts), wanted));
        let (_, rows) = sender.campaign(&id).await;
        for place in [3, CONTACTS - 3] {
            sender.delete(&format!("campaign_contact/{}", id_of(&rows[place]))).await;
        }
        assert_eq!(sender.members(&id).await.len(), CONTACTS - 2);
        sender.setup.pass(HOUR);
        sender.setup.minutes(2).await;
        assert_eq!(sender.outcome(&id).await, sender.done(CONTACTS - 2));
        sender.delete(&format!("campaign/{id}")).await;
        sender.setup.stack.settle().await.unwrap();
        assert_eq!(partitions().await, 0);
    }
}

#[tokio::test]
async fn a_campaign_stored_without_pointers_adds_each_contact_once() {
    let (sender, id) = empty(40, json!({"interval": 60})).await;
    let contacts = sender.contacts();
    sender.add(&id, &contacts[..30]).await;
    forget(&sender, "has_pointers").await;
    for item in everything(&sender.setup.stack).await {
        if item["pk"].as_s().unwrap().contains("#CAMPAIGN_POINTERS#") {
            let delete = sender.setup.stack.client.delete_item().table_name(TABLE_NAME);
            delete.key("pk", item["pk"].clone()).key("sk", item["sk"].clone()).send().await.unwrap();
        }
    }
    assert_eq!(sender.add(&id, &contacts).await.0, 200);
    assert_eq!(sender.members(&id).await, texts(&contacts));
    sender.delete(&format!("campaign_contact/{}", id_of(&sender.campaign(&id).await.1[7]))).await;
    assert_eq!(sender.members(&id).await.len(), 39);
}

#[tokio::test]
async fn refuses_contacts_for_a_finished_or_unscheduled_campaign() {
    let (sender, once) = empty(3, json!({})).await;
    let contacts = sender.contacts();
    sender.add(&once, &contacts[..1]).await;
    let run = sender.run(json!({})).await;
    let kind = |(status, answer): (u16, Value)| (status, answer["detail"][0]["type"].clone());
    assert_eq!(kind(sender.add(&run, &contacts).await), (409, json!("campaign_without_schedule")));
    sender.setup.pass(HOUR);
    sender.minute(&[&once]).await;
    assert_eq!(kind(sender.add(&once, &contacts).await), (409, json!("campaign_completed")));
    let cancelled = created(&sender, json!({"contact_ids": null})).await;
    let cancelled = cancelled["id"].as_str().unwrap();
    sender.control(cancelled, "cancel").await;
    assert_eq!(kind(sender.add(cancelled, &contacts).await), (409, json!("campaign_cancelled")));
    let unknown = [contacts[0], NOBODYS.parse::<uuid::Uuid>().unwrap().into()];
    let waiting = created(&sender, json!({"contact_ids": null})).await;
    let (status, answer) = sender.add(waiting["id"].as_str().unwrap(), &unknown).await;
    assert_eq!((status, &answer["detail"][0]["loc"]), (422, &json!(["body", "contact_ids", 1])));
}

#[tokio::test]
async fn concurrent_requests_add_each_contact_once() {
    let (sender, id) = empty(50, json!({"interval": 60})).await;
    let contacts = sender.contacts();
    // Small parts take one transaction, large ones are staged; most contacts are in several parts.
    let parts =
        [&contacts[..50], &contacts[..10], &contacts[20..50], &contacts[5..15], &contacts[..30], &contacts[40..50]];
    let answers = join_all(parts.iter().map(|part| sender.add(&id, part))).await;
    assert!(answers.iter().all(|(status, _)| *status == 200), "{answers:?}");
    let members = sender.members(&id).await;
    assert_eq!((members.len(), members.into_iter().collect::<BTreeSet<_>>().len()), (50, 50));
}

/// Matches one request of a tick, counted from the request that takes the lease of a campaign.
fn after_the_lease(wanted: usize) -> impl FnMut(&str, usize) -> bool + Send + 'static {
    let mut lease = None;
    move |action, number| {
        // Before the lease, the tick only queries the due campaigns.
        lease = lease.or((action == "PutItem").then_some(number));
        lease.is_some_and(|lease| number == lease + wanted)
    }
}

/// A campaign that is due for its first contact. The other contacts are too many to add in one transaction.
async fn about_to_be_sent(interval: Option<u32>) -> (Sender, String) {
    let sender = Sender::new(false, 1 + STAGED).await;
    let made = created(&sender, json!({"contact_ids": sender.contacts()[..1], "interval": interval})).await;
    sender.setup.pass(HOUR);
    let id = made["id"].as_str().unwrap().to_owned();
    (sender, id)
}

/// The number of contacts that are staged and then committed.
const STAGED: usize = 17;

/// The number of requests of a tick, from the one that takes the lease to the one that ends it.
async fn requests_of_a_tick(interval: Option<u32>) -> usize {
    let (sender, _) = about_to_be_sent(interval).await;
    sender.setup.faults.watch();
    sender.setup.stack.tick("send-campaigns").await.unwrap();
    let requests = sender.setup.faults.requests();
    let mut updates = requests.iter().enumerate().filter(|(_, action)| *action == "PutItem").map(|(at, _)| at);
    let (lease, end) = (updates.next().unwrap(), updates.next_back().unwrap());
    end - lease
}

#[tokio::test]
async fn contacts_added_during_a_tick_are_each_sent_once() {
    let mut moments = Vec::new();
    for interval in [None, Some(60)] {
        let requests = requests_of_a_tick(interval).await;
        assert!(requests > 5, "{requests}");
        // When the tick takes its lease, after that, and when it ends the lease.
        for staged in [0, 1, requests] {
            for committed in staged..=requests {
                moments.extend([false, true].map(|dies| (interval, staged, committed, dies)));
            }
        }
    }
    for (interval, staged, committed, dies) in cases(moments) {
        let case =
            format!("interval {interval:?}, staged at {staged}, committed at {committed}, the tick crashes: {dies}");
        println!("{case}");
        let (sender, id) = about_to_be_sent(interval).await;
        add_beside_a_tick(&sender, &id, staged, committed, dies).await;
        if dies {
            // Its lease expires after 90 seconds.
            sender.setup.pass(60);
        }
        for _ in 0..2 {
            sender.minute(&[&id]).await;
        }
        if interval.is_some() {
            sender.setup.pass(HOUR);
            sender.minute(&[&id]).await;
        }
        let all_sent = sender.done(1 + STAGED);
        assert_eq!((sender.outcome(&id).await, sender.conversations().await.len()), (all_sent, 1 + STAGED), "{case}");
        let wanted = if interval.is_some() { "to_be_run" } else { "completed" };
        assert_eq!(sender.campaign(&id).await.0["status"], wanted, "{case}");
    }
}

/// Stages contacts while a tick waits at its request `staged`, and commits them while it waits at its request
/// `committed`. Then the tick ends, or crashes.
async fn add_beside_a_tick(sender: &Sender, id: &str, staged: usize, committed: usize, dies: bool) {
    let (setup, contacts) = (&sender.setup, sender.contacts());
    let staging = setup.faults.pause_at(after_the_lease(staged));
    let mut tick = Box::pin(setup.stack.tick("send-campaigns"));
    tokio::select! {
        () = staging.reached() => {}
        _ = &mut tick => panic!("it ended before"),
    }
    let mut transactions = 0;
    let committing = setup.faults.pause_at(move |action, _| {
        transactions += usize::from(action == "TransactWriteItems");
        transactions == 2
    });
    let mut adding = Box::pin(sender.add(id, &contacts[1..]));
    tokio::select! {
        () = committing.reached() => {}
        (status, answer) = &mut adding => panic!("{status} {answer}"),
    }
    let later = committed - staged;
    let goes_on = setup.faults.pause_at(move |_, number| number + 1 == later);
    let mut ended = false;
    if later > 0 {
        staging.end();
        tokio::select! {
            () = goes_on.reached() => {}
            result = &mut tick => {
                result.unwrap();
                ended = true;
            }
        }
    }
    setup.faults.end();
    committing.end();
    let (status, answer) = adding.await;
    assert_eq!(status, 200, "{answer}");
    // The tick takes so long that a marker expires. Its own lease is still valid.
    setup.pass(36);
    if later == 0 {
        staging.end();
    } else {
        goes_on.end();
    }
    if !dies && !ended {
        tick.await.unwrap();
    }
}

#[tokio::test]
async fn contacts_added_during_the_last_execution_are_sent() {
    for added in [1..4, 1..1 + STAGED] {
        let (sender, id) = about_to_be_sent(None).await;
        let contacts = sender.contacts();
        let begun = sender.setup.faults.pause_at(after_the_lease(1));
        let mut tick = Box::pin(sender.setup.stack.tick("send-campaigns"));
        tokio::select! {
            () = begun.reached() => {}
            _ = &mut tick => panic!("it ended before"),
        }
        sender.setup.faults.end();
        let (status, answer) = sender.add(&id, &contacts[added.clone()]).await;
        assert_eq!(status, 200, "{answer}");
        begun.end();
        tick.await.unwrap();
        for _ in 0..2 {
            sender.minute(&[&id]).await;
        }
        assert_eq!(sender.outcome(&id).await, sender.done(added.end));
        assert_eq!(sender.campaign(&id).await.0["status"], "completed");
    }
}

#[tokio::test]
async fn a_repeat_completes_an_addition_that_crashed() {
    for contacts in [3, 20] {
        let prepare = async || empty(contacts, json!({"interval": 60})).await;
        let work = async |(sender, id): &(Sender, String)| {
            sender.add(id, &sender.contacts()[..1]).await;
            sender.add(id, &sender.contacts()).await;
        };
        let look = async |(sender, id): &(Sender, String), case: String| {
            // Contacts without a commit are invisible.
            let members = sender.members(id).await.len();
            assert!([0, 1, contacts].contains(&members), "{members} {case}");
            // The marker of the crashed request expires.
            sender.setup.pass(40);
            assert_eq!(sender.add(id, &sender.contacts()).await.0, 200, "{case}");
            assert_eq!(sender.members(id).await, texts(&sender.contacts()), "{case}");
            sender.setup.pass(HOUR);
            for _ in 0..2 {
                sender.minute(&[id]).await;
            }
            assert_eq!(sender.outcome(id).await, BTreeMap::from([("sent".to_owned(), contacts)]), "{case}");
            assert_eq!(
                (events(&sender.received()).len(), sender.conversations().await.len()),
                (contacts, contacts),
                "{case}"
            );
        };
        crashes_everywhere(prepare, |(sender, _)| &sender.setup, work, look).await;
    }
}
