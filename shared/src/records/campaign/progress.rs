//! The states of a campaign's contacts: each change of one is a transaction that also changes the counts of the campaign.

use super::{Campaign, CampaignContact, CampaignStatus, ContactStatus};
use crate::records::conversation::{Conversation, NewMessage};
use crate::records::delivery::{Delivery, NewDelivery};
use crate::table::commit::Transaction;
use crate::table::item::{null, number, text, values};
use crate::table::transaction::{Cancelled, Write};
use crate::table::{ATTEMPTS, Table, TableError};
use crate::values::id::{CampaignContactId, EndpointId, MessageId};
use crate::values::time::Timestamp;

/// What a contact of a campaign gets.
#[derive(Debug)]
pub struct Dispatch {
    /// The open conversation to continue; `None` where a new one begins.
    pub thread: Option<Conversation>,
    /// The new conversation, without its ordinal.
    pub opening: Conversation,
    /// The message in it.
    pub message: Option<(MessageId, NewMessage)>,
    /// The connector that gets the delivery, if the widget has one.
    pub connector: Option<(EndpointId, NewDelivery)>,
}

/// How the dispatch of a contact ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatched {
    /// It has its conversation.
    Done,
    /// It was deleted or cancelled, or was dispatched before.
    Stopped,
    /// The conversation to continue has changed since it was read.
    ThreadMoved,
}

impl Table {
    /// The action that moves a contact, seen as `from`, to another state in the counts of its campaign, or removes it from them.
    pub(super) fn count(&self, campaign: &Campaign, from: ContactStatus, to: Option<ContactStatus>) -> Write {
        let from_name = from.as_str();
        let add = to.map(|to| format!(", counts.#{to} = counts.#{to} + :one", to = to.as_str())).unwrap_or_default();
        Write::Update {
            key: self.key::<Campaign>(campaign.id),
            expression: format!("SET counts.#{from_name} = counts.#{from_name} - :one{add} ADD version :one").into(),
            // The queued contacts of a cancelled campaign are counted as cancelled.
            condition: match from {
                ContactStatus::Queued => Some("#status <> :cancelled"),
                ContactStatus::Cancelled => Some("#status = :cancelled"),
                ContactStatus::Sent | ContactStatus::Failed => None,
            },
            values: match from {
                ContactStatus::Queued | ContactStatus::Cancelled => {
                    values([(":one", number(1)), (":cancelled", text(CampaignStatus::Cancelled.as_str()))])
                }
                ContactStatus::Sent | ContactStatus::Failed => values([(":one", number(1))]),
            },
        }
    }

    /// Dispatches a queued contact: its conversation, its message and its delivery, in one transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn dispatch(
        &self,
        campaign: &Campaign,
        contact: &CampaignContact,
        dispatch: &Dispatch,
        now: Timestamp,
    ) -> Result<Dispatched, TableError> {
        let sent = dispatch.connector.is_none();
        let transaction = |transaction: &mut Transaction<'_>| {
            let (conversation, before, opening) = if let Some(thread) = &dispatch.thread {
                (thread.id, thread.chat_count, None)
            } else {
                let opening = dispatch.opening.at(transaction.next::<Conversation>(()));
                (opening.id, 0, Some(opening))
            };
            let status = if sent { ContactStatus::Sent } else { ContactStatus::Queued };
            transaction.write(Write::Update {
                key: self.key::<CampaignContact>(contact.id),
                expression: "SET conversation_id = :conversation, #status = :status, updated_at = :now".into(),
                condition: Some("#status = :queued AND conversation_id = :none"),
                values: values([
                    (":conversation", text(conversation)),
                    (":status", text(status.as_str())),
                    (":queued", text(ContactStatus::Queued.as_str())),
                    (":none", null()),
                    (":now", text(now)),
                ]),
            });
            transaction.write(if sent {
                self.count(campaign, ContactStatus::Queued, Some(ContactStatus::Sent))
            } else {
                Write::Check {
                    key: self.key::<Campaign>(campaign.id),
                    condition: "#status <> :cancelled",
                    values: values([(":cancelled", text(CampaignStatus::Cancelled.as_str()))]),
                }
            });
            let message = dispatch
                .message
                .as_ref()
                .map(|(id, new)| new.message(*id, conversation, u32::try_from(before).unwrap_or(u32::MAX), now));
            match (&opening, &message) {
                (Some(opening), message) => transaction.begin(opening, message.as_ref())?,
                (None, Some(message)) => drop(transaction.say(conversation, before, message)?),
                (None, None) => {}
            }
            if let Some((endpoint, new)) = dispatch.connector {
                let message_id = message.map(|message| message.id);
                transaction.deliver(
                    endpoint,
                    NewDelivery { conversation_id: Some(conversation), message_id, ..new },
                    now,
                )?;
            }
            Ok(())
        };
        match self.commit(transaction).await {
            Ok(()) => Ok(Dispatched::Done),
            Err(Cancelled::Condition(0 | 1, _)) => Ok(Dispatched::Stopped),
            Err(Cancelled::Condition(..)) => Ok(Dispatched::ThreadMoved),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Sets the final status of a queued contact that has no delivery.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn fail_contact(
        &self,
        campaign: &Campaign,
        contact: CampaignContactId,
        error: &str,
        now: Timestamp,
    ) -> Result<(), TableError> {
        let writes = [
            self.outcome(contact, ContactStatus::Failed, Some(error), now),
            self.count(campaign, ContactStatus::Queued, Some(ContactStatus::Failed)),
        ];
        match self.store.transact(&writes).await {
            // Deleted or cancelled since it was read.
            Ok(()) | Err(Cancelled::Condition(..)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    fn outcome(&self, id: CampaignContactId, to: ContactStatus, error: Option<&str>, now: Timestamp) -> Write {
        Write::Update {
            key: self.key::<CampaignContact>(id),
            expression: "SET #status = :status, #error = :error, updated_at = :now".into(),
            condition: Some("#status = :queued"),
            values: values([
                (":status", text(to.as_str())),
                (":queued", text(ContactStatus::Queued.as_str())),
                (":error", error.map_or_else(null, text)),
                (":now", text(now)),
            ]),
        }
    }

    /// Replaces a campaign's delivery, unless it has changed since it was read, and sets the status of its contact and the counts of its
    /// campaign. Returns whether it was replaced.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn settle_delivery(
        &self,
        endpoint: EndpointId,
        was: &Delivery,
        is: &Delivery,
        contact: CampaignContactId,
        to: ContactStatus,
        now: Timestamp,
    ) -> Result<bool, TableError> {
        for _ in 0..ATTEMPTS {
            let Some(campaign) = self.campaign_of(was).await? else {
                return self.replace_delivery(endpoint, was, is).await;
            };
            let cancelled = campaign.status == CampaignStatus::Cancelled;
            let from = if cancelled { ContactStatus::Cancelled } else { ContactStatus::Queued };
            let writes = [
                self.replacing_delivery(endpoint, was, is)?,
                self.outcome(contact, to, is.failure().as_deref(), now),
                self.count(&campaign, from, Some(to)),
            ];
            match self.store.transact(&writes).await {
                Ok(()) => return Ok(true),
                Err(Cancelled::Condition(0, _)) => return Ok(false),
                // The contact is deleted, or has its final status already.
                Err(Cancelled::Condition(1, _)) => return self.replace_delivery(endpoint, was, is).await,
                // Cancelled since it was read: a message that was sent counts as sent.
                Err(Cancelled::Condition(..)) => {}
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
        Err(TableError::Unavailable("others kept changing the campaign".into()))
    }
}
