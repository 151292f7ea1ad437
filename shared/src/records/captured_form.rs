//! Captured forms: the values that were filled into forms in conversations.

mod storage;
mod webhooks;

pub use storage::{CapturedFormQuery, capture_form, change_form, forms_of_conversation, forms_of_form};
pub use webhooks::FormWebhooks;

use uuid::Uuid;

use crate::records::conversation::Conversation;
use crate::records::form::Form;
use crate::records::form::mapping::ContactIssue;
use crate::table::cascade::Links;
use crate::table::keys::Key;
use crate::values::id::{AssistantId, CapturedFormId, ConversationId, FormId, WidgetId};
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::text::Name;
use crate::values::time::Timestamp;

crate::record! {
    /// What was filled into a form in a conversation.
    pub struct CapturedForm(CapturedFormId): listed("CAPTURED_FORM" spread, pointers CapturedForm::of_owners) {
        /// The same as `id`, under the name that receivers of events know.
        derived captured_form_id: CapturedFormId = CapturedForm::own_id,
        /// The form.
        fixed(filter) form_id: FormId,
        /// Name of the form when the values were sent.
        own form_name: Name = Name::default(),
        /// The conversation.
        fixed(sparse filter) conversation_id: ConversationId,
        /// Widget of the conversation; null for none.
        own widget_id: Option<WidgetId> = None,
        /// Assistant of the conversation.
        fixed assistant_id: AssistantId,
        /// The kind of device of the conversation.
        own device_type: Option<String> = None,
        /// The values, each under the name of its field in the form.
        input field_values: JsonObject,
        /// Any JSON object of your own. The service stores it and does not read it.
        input attributes: JsonObject = JsonObject::default(),
        /// The values that the form's `contact_mapping` could not write to the contact, each with its reason.
        own contact_issues: Vec<ContactIssue> = Vec::new(),
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}

crate::input! {
    /// The body of create-captured-form.
    pub struct NewCapturedForm {
        /// The form.
        pub form_id: FormId,
        /// The values, each under the name of its field in the form.
        pub field_values: JsonObject,
        /// Any JSON object of your own. The service stores it and does not read it.
        pub attributes: JsonObject = JsonObject::default(),
    }
}

impl CapturedForm {
    const fn own_id(&self) -> CapturedFormId {
        self.id
    }

    /// The pointers by which it is found when its form or its conversation is removed.
    fn of_owners(&self, tenant: &Tenant) -> Vec<Key> {
        let (form, conversation) = (self.form_id.0, self.conversation_id.0);
        let partitions =
            [<Self as Links<Form>>::partition(form), <Self as Links<Conversation>>::partition(conversation)];
        partitions.map(|partition| Key::of(tenant, partition, self.id)).into()
    }
}

impl Links<Form> for CapturedForm {
    fn partition(form: Uuid) -> String {
        format!("FORM_CAPTURED#{form}")
    }
}

impl Links<Conversation> for CapturedForm {
    fn partition(conversation: Uuid) -> String {
        format!("CONVERSATION_FORMS#{conversation}")
    }
}
