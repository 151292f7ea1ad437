//! The captured data of a fault run: forms that are filled in and intents that are recognised while conversations end.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use serde::Deserialize;
use serde_json::json;
use shared::routes;
use shared::values::id::{CapturedFormId, CapturedIntentId, ConversationId, FormId, IntentId};
use uuid::Uuid;

use crate::Trouble;
use crate::api::ApiRequest;
use crate::fault_run::check::Check;
use crate::fault_run::world::{World, member};

/// The most conversations whose own lists are read.
const READ: usize = 50;

/// The form and the intent of an organisation.
#[derive(Debug, Clone, Copy)]
pub struct Capturable {
    form: FormId,
    intent: IntentId,
}

/// What was captured in a conversation.
#[derive(Debug, Clone, Copy)]
pub struct Capture {
    /// The organisation.
    pub organisation: usize,
    /// The conversation.
    pub conversation: ConversationId,
    /// The form that was filled in.
    pub form: CapturedFormId,
    /// The intent that was recognised.
    pub intent: CapturedIntentId,
}

impl Capturable {
    /// A new form and a new intent.
    ///
    /// # Errors
    /// [`Trouble`] where they are refused.
    pub async fn made(world: &World, organisation: usize) -> Result<Self, Trouble> {
        let form = json!({"name": "Order", "form_type": "simple", "fields": [{"name": "number", "type": "integer", "required": true}]});
        let form = world.make(organisation, ApiRequest::of(&routes::CREATE_FORM).body(&form)).await?;
        let intent = ApiRequest::of(&routes::CREATE_INTENT).body(&json!({"name": "To order"}));
        let intent = world.make(organisation, intent).await?;
        Ok(Self { form: member(&form, "id")?, intent: member(&intent, "id")? })
    }
}

/// Captures a form and an intent in a conversation.
///
/// # Errors
/// [`Trouble`] where one is refused.
pub async fn capture(world: &World, number: usize) -> Result<(), Trouble> {
    let organisation = world.plan.webhooks[world.plan.conversations[number].webhook].organisation;
    let (Capturable { form, intent }, conversation) = (world.capturable[organisation], world.conversations[number]);
    let made = async |route, body| {
        let request = ApiRequest::of(route).parameter("conversation_id", conversation).body(&body);
        world.ask(organisation, request).await?.data()
    };
    let filled = json!({"form_id": form, "field_values": {"number": number}});
    let form = made(&routes::CREATE_CAPTURED_FORM, filled).await?;
    let found = json!({"intent_id": intent, "confidence": 0.5});
    let intent = made(&routes::CREATE_CAPTURED_INTENT, found).await?;
    let captured = Capture { organisation, conversation, form: member(&form, "id")?, intent: member(&intent, "id")? };
    world.captures.lock().unwrap_or_else(PoisonError::into_inner).push(captured);
    Ok(())
}

/// What was captured of an organisation so far.
pub fn of_organisation(world: &World, organisation: usize) -> Vec<Capture> {
    let all = world.captures.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().filter(|capture| capture.organisation == organisation).copied().collect()
}

/// Checks that each capture is in each of its lists once, and nothing else.
///
/// # Errors
/// [`Trouble`] where a list cannot be read.
pub async fn lists(world: &World) -> Result<Check, Trouble> {
    let mut exact = Check::that("what was captured is once in the lists of its form, its intent and its conversation");
    for organisation in 0..world.organisations.len() {
        let (Capturable { form, intent }, all) = (world.capturable[organisation], of_organisation(world, organisation));
        let captured_forms = all.iter().map(|capture| capture.form.0).collect();
        let of_form = ApiRequest::of(&routes::LIST_CAPTURED_FORMS).parameter("form_id", form);
        see(world, organisation, of_form, captured_forms, &mut exact).await?;
        let of_intent = |route| ApiRequest::of(route).query(format!("intent_id={intent}"));
        let captured_intents = all.iter().map(|capture| capture.intent.0).collect();
        let list = of_intent(&routes::LIST_CAPTURED_INTENTS);
        see(world, organisation, list, captured_intents, &mut exact).await?;
        let conversations = all.iter().map(|capture| capture.conversation.0).collect();
        see(world, organisation, of_intent(&routes::LIST_CONVERSATIONS), conversations, &mut exact).await?;
        for Capture { conversation, form, .. } in all.iter().take(READ) {
            let list = ApiRequest::of(&routes::LIST_CONVERSATION_CAPTURED_FORMS);
            let list = list.parameter("conversation_id", conversation);
            see(world, organisation, list, [form.0].into(), &mut exact).await?;
        }
    }
    Ok(exact)
}

async fn see(
    world: &World,
    organisation: usize,
    list: ApiRequest,
    wanted: BTreeSet<Uuid>,
    exact: &mut Check,
) -> Result<(), Trouble> {
    #[derive(Deserialize)]
    struct ListedId {
        id: Uuid,
    }
    let rows: Vec<ListedId> = world.list(organisation, list.clone()).await?;
    let found: BTreeSet<Uuid> = rows.iter().map(|row| row.id).collect();
    exact.see(rows.len() == found.len() && found == wanted, || {
        format!("{list}: {} rows, {} ids, not {}", rows.len(), found.len(), wanted.len())
    });
    Ok(())
}
