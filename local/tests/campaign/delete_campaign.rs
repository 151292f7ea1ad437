//! `DELETE /api/v1/campaign/{campaign_id}`: deletes a campaign; the texts that it has sent stay in the conversations.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use local::Settings;
use local::faults::Fault;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::widget::WidgetType;

use crate::support::crashes::{crashes_everywhere, unreliable_stream};
use crate::support::fixture::everything;
use crate::support::sender::{Sender, Transcripts};
use crate::support::sending::{Setup, id_of};
use crate::support::sweep::cases;

impl Sender {
    /// The sizes of the items in the partitions whose keys contain `part`.
    async fn bytes(&self, part: &str) -> Vec<usize> {
        let all = everything(&self.setup.stack).await.into_iter();
        let items = all.filter(|item| item["pk"].as_s().unwrap().contains(part));
        items.map(|item| item.iter().map(|(name, value)| name.len() + bytes(value)).sum()).collect()
    }

    /// The sort keys of the partitions whose keys contain `part`.
    pub async fn stored(&self, part: &str) -> Vec<String> {
        let text = |value: &AttributeValue| value.as_s().unwrap().clone();
        let all = everything(&self.setup.stack).await.into_iter();
        all.filter(|item| text(&item["pk"]).contains(part)).map(|item| text(&item["sk"])).collect()
    }
}

/// At least the bytes that DynamoDB counts for a value.
fn bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::L(list) => 3 + list.iter().map(|one| 1 + bytes(one)).sum::<usize>(),
        AttributeValue::M(map) => 3 + map.iter().map(|(name, one)| 1 + name.len() + bytes(one)).sum::<usize>(),
        AttributeValue::N(number) => 2 + number.len().div_ceil(2),
        _ => 1,
    }
}

/// Asserts that no item of the campaigns is left, and none of the conversations after their delete.
async fn nothing_is_left(sender: &Sender) {
    for part in ["#CAMPAIGN_RUN#", "#CAMPAIGN_CONTACT#", "#REMOVAL#"] {
        assert_eq!(sender.stored(part).await, Vec::<String>::new(), "{part}");
    }
    let naming = everything(&sender.setup.stack).await.into_iter().filter(|item| item.contains_key("text_of"));
    assert_eq!(naming.count(), 0);
    for conversation in sender.conversations().await {
        sender.delete(&format!("conversation/{}", id_of(&conversation))).await;
    }
    sender.setup.settle().await;
    assert_eq!(sender.stored("#MESSAGE#").await, Vec::<String>::new());
}

/// A campaign that has failed, got another text, and was sent again; with its transcripts.
async fn sent_twice(connected: bool, contacts: usize, anew: bool) -> (Sender, String, Transcripts) {
    let change = |settings| Settings { sends_per_second: 1000, ..settings };
    let sender = Sender::of(Setup::with(change).await, WidgetType::Whatsapp, connected, contacts).await;
    let id = sender.run(json!({"message": "First", "start_new_conversation": anew})).await;
    if connected {
        sender.setup.receiver.behave("/connector", Behaviour::Answer(410));
    }
    sender.until_the_end(&id).await;
    let second = sender.update_text(&id, "The second").await;
    assert_eq!(second["message"], "The second");
    if connected {
        sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
        assert_eq!(sender.control(&id, "retry").await.0, 200);
        sender.until_the_end(&id).await;
    }
    let said = sender.transcripts().await;
    (sender, id, said)
}

#[tokio::test]
async fn transcripts_and_events_keep_the_texts() {
    for anew in [false, true] {
        let (sender, id, said) = sent_twice(true, 4, anew).await;
        let (first, second) = (("First".to_owned(), 5), ("The second".to_owned(), 10));
        let one_each = [vec![first.clone()], vec![second.clone()]];
        let mut wanted: Vec<_> =
            if anew { one_each.iter().cycle().take(8).cloned().collect() } else { vec![vec![first, second]; 4] };
        let mut texts: Vec<_> = said.values().cloned().collect();
        texts.sort();
        wanted.sort();
        assert_eq!(texts, wanted, "anew: {anew}");
        for part in ["#CAMPAIGN_CONTACT#", "#LIST#DELIVERY#"] {
            let largest = sender.bytes(part).await.into_iter().max();
            assert!(
                largest.is_some_and(|bytes| (500..=1024).contains(&bytes)),
                "{part} {largest:?} is more than a unit"
            );
        }
        sender.delete(&format!("campaign/{id}")).await;
        assert_eq!(sender.transcripts().await, said, "the campaign is deleted and its contacts are left");
        sender.setup.settle().await;
        assert_eq!(sender.transcripts().await, said);
        assert_eq!(sender.texts_when_closed().await, said);
        nothing_is_left(&sender).await;
    }
}

#[tokio::test]
async fn contacts_without_message_ids_keep_their_texts() {
    let (sender, id, said) = sent_twice(false, 3, false).await;
    // Another campaign sends in the same conversations.
    let other = sender.run(json!({"message": "Another"})).await;
    sender.until_the_end(&other).await;
    let with_other = sender.transcripts().await;
    assert!(with_other.values().all(|texts| texts.len() == 2) && with_other.len() == said.len(), "{with_other:?}");
    for campaign in [&id, &other] {
        for contact in sender.campaign(campaign).await.1 {
            sender.forget_messages(&contact).await;
        }
    }
    for campaign in [&id, &other] {
        sender.delete(&format!("campaign/{campaign}")).await;
        sender.setup.settle().await;
        assert_eq!(sender.transcripts().await, with_other);
    }
    sender.texts_when_closed().await;
    nothing_is_left(&sender).await;
}

#[tokio::test]
async fn a_retry_keeps_the_text_of_a_contact_without_message_ids() {
    for is_gone in [false, true] {
        let sender = Sender::new(true, 2).await;
        sender.setup.receiver.behave("/connector", Behaviour::Answer(410));
        let id = sender.run(json!({"message": "First", "start_new_conversation": true})).await;
        sender.until_the_end(&id).await;
        for contact in sender.campaign(&id).await.1 {
            sender.forget_messages(&contact).await;
        }
        sender.control(&id, "retry").await;
        if is_gone {
            sender.delete(&format!("widget/{}", sender.widget.id)).await;
        }
        sender.until_the_end(&id).await;
        let said = sender.transcripts().await;
        assert_eq!(said.len(), if is_gone { 2 } else { 4 });
        sender.delete(&format!("campaign/{id}")).await;
        sender.setup.settle().await;
        assert_eq!((sender.transcripts().await, said.values().all(|texts| texts[0].0 == "First")), (said, true));
    }
}

#[tokio::test]
async fn a_deleted_message_does_not_come_back() {
    let (sender, id, mut said) = sent_twice(false, 3, false).await;
    let conversations = sender.conversations().await;
    sender.setup.close(&sender.org, &conversations[1]).await;
    sender.delete(&format!("conversation/{}", id_of(&conversations[1]))).await;
    sender.setup.settle().await;
    said.remove(id_of(&conversations[1]));
    sender.delete(&format!("campaign/{id}")).await;
    sender.setup.settle().await;
    assert_eq!(sender.transcripts().await, said);
    assert_eq!(sender.stored(&format!("#MESSAGE#{}", id_of(&conversations[1]))).await, Vec::<String>::new());
}

/// More contacts than one step deletes.
const MANY: usize = 270;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transcripts_keep_the_texts_despite_faults() {
    for (seed, connected, contacts) in cases([(0, false, MANY), (1, true, 6)]) {
        let (sender, id, said) = sent_twice(connected, contacts, false).await;
        sender.delete(&format!("campaign/{id}")).await;
        sender.setup.stack.stream.set_faults(&unreliable_stream(seed as u64, 0.3, 0.2));
        sender.setup.faults.plan(move |_, number| match (number + seed) % 40 {
            0 => Fault::Throttle,
            1 => Fault::Conflict,
            3 => Fault::Unprocessed,
            4 => Fault::ServerError,
            _ => Fault::None,
        });
        sender.setup.settle().await;
        sender.setup.faults.end();
        assert_eq!(sender.setup.stack.stream.given_up(), Vec::<Value>::new());
        assert_eq!(sender.transcripts().await, said);
        for part in ["#CAMPAIGN_RUN#", "#CAMPAIGN_CONTACT#", "#REMOVAL#"] {
            assert_eq!(sender.stored(part).await, Vec::<String>::new(), "{part}");
        }
    }
}

#[tokio::test]
async fn a_read_during_the_delete_shows_the_texts() {
    let (sender, id, said) = sent_twice(true, 5, false).await;
    sender.setup.faults.set_latency(Duration::from_millis(3));
    sender.delete(&format!("campaign/{id}")).await;
    let goes = async {
        sender.setup.settle().await;
        sender.setup.settle().await;
    };
    let reads = async {
        while !sender.stored("#CAMPAIGN_RUN#").await.is_empty() {
            assert_eq!(sender.transcripts().await, said);
        }
    };
    tokio::join!(goes, reads);
    assert_eq!(sender.transcripts().await, said);
}

#[tokio::test]
async fn transcripts_survive_a_crashed_delete_of_a_contact() {
    let prepare = async || sent_twice(true, 1, false).await;
    let delete = async |(sender, id, _): &(Sender, String, Transcripts)| {
        let contact = id_of(&sender.campaign(id).await.1[0]).to_owned();
        sender.setup.ask(&sender.org, "DELETE", &format!("/api/v1/campaign_contact/{contact}"), &Value::Null).await;
    };
    let look = async |setup: &(Sender, String, Transcripts), case: String| {
        let (sender, id, said) = setup;
        assert_eq!(&sender.transcripts().await, said, "{case}");
        if !sender.campaign(id).await.1.is_empty() {
            delete(setup).await;
        }
        sender.delete(&format!("campaign/{id}")).await;
        sender.setup.settle().await;
        assert_eq!(&sender.transcripts().await, said, "{case}");
    };
    crashes_everywhere(prepare, |(sender, ..)| &sender.setup, delete, look).await;
}
