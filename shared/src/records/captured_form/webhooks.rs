//! The webhooks that forms name: they get what is filled into these forms, whatever they subscribe to.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::records::event::{Event, EventKind};
use crate::records::form::Form;
use crate::table::{Table, TableError};
use crate::values::id::{FormId, WebhookId};

/// The webhooks of forms.
#[derive(Debug, Default)]
pub struct FormWebhooks(BTreeMap<FormId, WebhookId>);

/// What an event of a captured form says of its form.
#[derive(Deserialize)]
struct OfForm {
    form_id: FormId,
}

impl FormWebhooks {
    /// Whether the webhook of a form gets such events.
    pub fn get(kind: EventKind) -> bool {
        [EventKind::CAPTURED_FORM_CREATED, EventKind::CAPTURED_FORM_UPDATED].contains(&kind)
    }

    /// The webhooks of the forms that `events` are about.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn of<'a>(table: &Table, events: impl IntoIterator<Item = &'a Event> + Send) -> Result<Self, TableError> {
        let forms: BTreeSet<FormId> = events.into_iter().filter_map(form_of).collect();
        let forms = table.get_each::<Form>(&forms).await?;
        Ok(Self(forms.into_iter().filter_map(|form| Some((form.id, form.webhook_id?))).collect()))
    }

    /// The webhook that the form of `event` names.
    pub fn named(&self, event: &Event) -> Option<WebhookId> {
        self.0.get(&form_of(event)?).copied()
    }
}

fn form_of(event: &Event) -> Option<FormId> {
    let about: Option<OfForm> = FormWebhooks::get(event.event).then(|| event.data.read()).flatten();
    about.map(|about| about.form_id)
}
