//! `POST /api/v1/campaign/{campaign_id}/cancel`: cancels every contact of a campaign that is still queued.

use std::collections::BTreeMap;

use local::Stack;
use local::http::Answer;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use shared::records::assistant::ConversationSettings;
use shared::records::campaign;
use shared::records::campaign::{Campaign, CampaignContact, Dispatch, Prepared, Unreached};
use shared::records::conversation::Conversation;
use shared::records::suppression;
use shared::values::id::CampaignId;
use shared::values::time::Timestamp;

use crate::support::demo_set;
use crate::support::fixture::{ACME, NOW, acme, call, data, get, id, json, kind, post, stack};
use crate::support::records::{
    FRESH, TEST_TIME, campaign_to, changes, conflict, detail, items, not_found, nothing, row, stored,
};
use crate::support::sender::counts;
use crate::support::sweep::cases;

async fn cancel(stack: &Stack, id: &str) -> Answer {
    stack.answer(&post(&format!("/api/v1/campaign/{id}/cancel"), ACME, "")).await
}

async fn delete(stack: &Stack, contact: &str) -> Answer {
    stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{contact}"), ACME)).await
}

/// The campaign as it is read.
async fn read(stack: &Stack, id: &str) -> Value {
    get(stack, &format!("/api/v1/campaign/get/{id}")).await
}

/// The listed statuses of the campaign's contacts, by their ids.
async fn statuses(stack: &Stack, id: &str) -> BTreeMap<String, String> {
    let page = get(stack, &format!("/api/v1/campaign/contact/list/{id}?size=100")).await;
    let rows = page["items"].as_array().unwrap();
    assert_eq!(page["total"], rows.len());
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "id"), text(row, "status"))).collect()
}

fn already_cancelled() -> (u16, Value) {
    conflict("campaign_id", "campaign_cancelled", "The campaign is cancelled")
}

fn already_completed() -> (u16, Value) {
    conflict("campaign_id", "campaign_completed", "The campaign has nothing left to send")
}

#[tokio::test]
async fn cancels_every_queued_contact_by_one_item() {
    let stack = stack().await;
    let before = items(&stack).await;
    let campaign = id('a', kind::CAMPAIGN, 0);
    let mut wanted = demo_set::campaign();
    wanted["status"] = "cancelled".into();
    wanted["counts"] = counts([("cancelled", 3)]);
    wanted["updated_at"] = TEST_TIME.into();
    let answer = cancel(&stack, &campaign).await;
    assert_eq!(data(&answer), wanted);
    // Only one item has changed, for any number of contacts.
    let key = row("CAMPAIGN", 0);
    let mut item = stored(&wanted, &["attributes"], &key);
    // The message and the counts stay as they were.
    (item["message"], item["counts"]) = (Value::Null, before[&key]["counts"].clone());
    item["outcomes"] = before[&key]["outcomes"].clone();
    item["changed_by"] = FRESH[0].into();
    (item["next_place"], item["round"], item["version"]) = (0.into(), 0.into(), 1.into());
    item["unscheduled"] = false.into();
    (item["text_version"], item["has_pointers"], item["spreads_contacts"]) = (0.into(), false.into(), false.into());
    item["lists_waiting"] = false.into();
    let (gone, new) = changes(&stack, &before).await;
    assert_eq!((gone.into_keys().collect::<Vec<_>>(), new), (vec![key.clone()], [(key, item)].into()));
    assert_eq!(read(&stack, &campaign).await, wanted);
    assert_eq!(statuses(&stack, &campaign).await.into_values().collect::<Vec<_>>(), ["cancelled"; 3]);
}

#[tokio::test]
async fn a_cancelled_campaign_is_no_longer_due() {
    let stack = stack().await;
    let (campaign, _) = campaign_to(&stack, 3).await;
    let item = async || items(&stack).await.remove(&row("CAMPAIGN", 3)).unwrap();
    assert_eq!(item().await["due_at"], TEST_TIME);
    cancel(&stack, &campaign).await;
    let item = item().await;
    assert!(item.get("due_at").is_none() && item.get("due_pk").is_none(), "{item}");
}

#[tokio::test]
async fn refuses_a_cancelled_or_completed_campaign_with_409() {
    let stack = stack().await;
    let campaign = id('a', kind::CAMPAIGN, 0);
    cancel(&stack, &campaign).await;
    let before = items(&stack).await;
    assert_eq!(detail(&cancel(&stack, &campaign).await), already_cancelled());
    assert_eq!(changes(&stack, &before).await, nothing());
    let (empty, contacts) = campaign_to(&stack, 2).await;
    for contact in &contacts {
        delete(&stack, contact).await;
    }
    let before = items(&stack).await;
    assert_eq!(detail(&cancel(&stack, &empty).await), already_completed());
    assert_eq!(changes(&stack, &before).await, nothing());
    assert_eq!(read(&stack, &empty).await["status"], "completed");
}

#[tokio::test]
async fn one_of_several_concurrent_requests_cancels() {
    let stack = stack().await;
    let campaign = id('a', kind::CAMPAIGN, 0);
    let answers = futures_util::future::join_all((0..8).map(|_| cancel(&stack, &campaign))).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((won.len(), lost.len()), (1, 7));
    assert!(lost.iter().all(|answer| detail(answer) == already_cancelled()));
}

#[derive(Debug, Clone)]
enum Step {
    /// Deletes the contact of this number.
    Delete(usize),
    /// Marks the contact as failed. The process has read it just now (`true`) or at the beginning.
    Fail(usize, bool),
    /// Sends the contact by giving it a conversation. The process has read it just now (`true`) or at the beginning.
    Send(usize, bool),
    Pause,
    Resume,
    Retry,
    Cancel,
}

fn steps(contacts: usize) -> impl Strategy<Value = Vec<Step>> {
    let read = || (0..contacts, prop::bool::weighted(0.8));
    let step = prop_oneof![
        6 => (0..contacts).prop_map(Step::Delete),
        16 => read().prop_map(|(contact, now)| Step::Fail(contact, now)),
        8 => read().prop_map(|(contact, now)| Step::Send(contact, now)),
        2 => Just(Step::Pause),
        4 => Just(Step::Resume),
        6 => Just(Step::Retry),
    ];
    // Only refused steps can follow a cancellation, so there are few.
    let ends = prop_oneof![Just(vec![]), Just(vec![Step::Cancel])];
    (prop::collection::vec(step, 1..60), ends, prop::collection::vec(Just(Step::Retry), 0..2))
        .prop_map(|(steps, ends, more)| [steps, ends, more].concat())
}

/// Asserts that the listed statuses are `wanted` and that the counts agree with them.
async fn assert_counts(stack: &Stack, campaign: &str, wanted: &BTreeMap<String, String>) {
    let (read, listed) = (read(stack, campaign).await, statuses(stack, campaign).await);
    assert_eq!(&listed, wanted);
    let count = |status: &str| listed.values().filter(|listed| *listed == status).count();
    assert_eq!(
        read["counts"],
        counts(["queued", "stored", "failed", "cancelled"].map(|status| (status, count(status))))
    );
}

/// A plain model of a campaign, with the statuses of its contacts by their ids.
struct Plain {
    statuses: BTreeMap<String, String>,
    paused: bool,
    cancelled: bool,
    retried: bool,
}

impl Plain {
    fn count(&self, status: &str) -> usize {
        self.statuses.values().filter(|is| *is == status).count()
    }

    /// The type of the refusal of `step`, if it is refused.
    fn refusal(&self, step: &Step) -> Option<&'static str> {
        let queued = self.count("queued") > 0;
        match step {
            _ if self.cancelled => Some("campaign_cancelled"),
            Step::Retry => (self.paused || queued).then_some("campaign_in_progress"),
            Step::Cancel => (!queued).then_some("campaign_completed"),
            _ => (!queued && !self.paused).then_some("campaign_completed"),
        }
    }

    /// Applies a `step` of a caller.
    fn control(&mut self, step: &Step) {
        match step {
            Step::Pause => self.paused = true,
            Step::Resume => self.paused = false,
            Step::Retry => {
                self.retried |= self.count("failed") > 0;
                self.turn("failed", "queued");
            }
            _ => {
                (self.cancelled, self.paused) = (true, false);
                self.turn("queued", "cancelled");
            }
        }
    }

    fn turn(&mut self, was: &str, is: &str) {
        self.statuses.values_mut().filter(|status| *status == was).for_each(|status| *status = is.into());
    }

    /// Marks a contact as stored or failed, unless the process that does it has an outdated copy.
    fn end(&mut self, id: &str, just_now: bool, is: &str) {
        let stale = self.retried && !just_now;
        let status = self.statuses.get_mut(id).filter(|status| *status == "queued" && !self.paused && !stale);
        if let Some(status) = status {
            is.clone_into(status);
        }
    }
}

/// Sends a contact by giving it a conversation.
async fn send(stack: &Stack, campaign: &Campaign, contact: &CampaignContact, now: Timestamp) {
    let (widget, assistant) =
        (campaign.widget_id.unwrap(), (campaign.assistant_id.unwrap(), ConversationSettings::default()));
    let (table, fresh) = (acme(stack), stack.gateway.service.ids.fresh(now));
    let dispatch = vec![Dispatch {
        contact: contact.clone(),
        thread: None,
        opening: Conversation::through(widget, assistant, contact.contact_id, fresh, now),
        message: None,
        connector: None,
    }];
    let guard = suppression::read_guard(&table, campaign.id.0).await.unwrap();
    let prepared = Prepared::new(&table, dispatch, guard).await.unwrap();
    campaign::dispatch_together(&table, campaign, prepared, now).await.unwrap();
}

#[tokio::test]
async fn counts_equal_the_listed_statuses_after_random_steps() {
    const CONTACTS: u32 = 6;
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    for _ in cases(0..12) {
        let steps = steps(CONTACTS as usize).new_tree(&mut runner).unwrap().current();
        println!("{steps:?}");
        let stack = stack().await;
        let (campaign, contacts) = campaign_to(&stack, CONTACTS).await;
        let (table, now) = (acme(&stack), Timestamp::from_unix_millis(NOW));
        let statuses = contacts.iter().map(|id| (id.clone(), "queued".into())).collect();
        let mut plain = Plain { statuses, paused: false, cancelled: false, retried: false };
        let id = CampaignId(campaign.parse().unwrap());
        let as_it_is = async || {
            let seen: Campaign = table.get(id).await.unwrap();
            let contacts = campaign::contacts_at(&table, &seen, 0..CONTACTS).await.unwrap();
            (seen, contacts)
        };
        // A sender may have read the campaign and its contacts long ago.
        let at_the_beginning = as_it_is().await;
        for step in steps {
            match step {
                Step::Delete(contact) => {
                    let answer = delete(&stack, &contacts[contact]).await;
                    match plain.statuses.remove(&contacts[contact]) {
                        Some(status) => assert_eq!(data(&answer)["status"], *status),
                        None => assert_eq!(detail(&answer), not_found("campaign_contact_id")),
                    }
                }
                Step::Fail(contact, just_now) | Step::Send(contact, just_now) => {
                    let id = &contacts[contact];
                    let (seen, all_seen) = if just_now { as_it_is().await } else { at_the_beginning.clone() };
                    let Some(was) = all_seen.iter().find(|seen| seen.id.0.to_string() == *id) else { continue };
                    // A sender with a current copy only sends queued contacts.
                    if just_now && !was.is_waiting_in(&seen) {
                        continue;
                    }
                    if matches!(step, Step::Send(..)) {
                        send(&stack, &seen, was, now).await;
                        plain.end(id, just_now, "stored");
                    } else {
                        campaign::end_contact(&table, &seen, was, Unreached::Failed("it is a test"), now)
                            .await
                            .unwrap();
                        plain.end(id, just_now, "failed");
                    }
                }
                Step::Pause | Step::Resume | Step::Retry | Step::Cancel => {
                    let verb = format!("{step:?}").to_lowercase();
                    let answer = stack.answer(&post(&format!("/api/v1/campaign/{campaign}/{verb}"), ACME, "")).await;
                    if let Some(refused) = plain.refusal(&step) {
                        assert_eq!((answer.status, &json(&answer)["detail"][0]["type"]), (409, &json!(refused)));
                    } else {
                        assert_eq!(answer.status, 200, "{}", answer.body);
                        plain.control(&step);
                    }
                }
            }
            assert_counts(&stack, &campaign, &plain.statuses).await;
        }
    }
}

#[tokio::test]
async fn counts_add_up_after_concurrent_deletes_and_a_cancellation() {
    let stack = stack().await;
    let (campaign, contacts) = campaign_to(&stack, 12).await;
    let deletes = futures_util::future::join_all(contacts[..8].iter().map(|contact| delete(&stack, contact)));
    let (gone, stopped) = tokio::join!(deletes, cancel(&stack, &campaign));
    assert!(gone.iter().chain([&stopped]).all(|answer| answer.status == 200));
    let left = contacts[8..].iter().map(|contact| (contact.clone(), "cancelled".to_owned()));
    assert_counts(&stack, &campaign, &left.collect()).await;
}
