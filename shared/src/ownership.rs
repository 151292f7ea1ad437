//! Ownership of records: when a record is removed, its belongings are removed too.
//!
//! An [`Owner`] lists the steps that remove its belongings, and [`reactions`](crate::reactions) runs the steps. A
//! record that may be created while its owner is removed is [`Owned`]: it is removed as soon as the stream shows it.

use crate::records::agency::{Agency, BillingPlan};
use crate::records::assistant::Assistant;
use crate::records::campaign::{Campaign, remove_contacts, remove_deliveries};
use crate::records::captured_form::CapturedForm;
use crate::records::captured_intent::CapturedIntent;
use crate::records::contact::Contact;
use crate::records::conversation::Conversation;
use crate::records::datasource::{Datasource, DatasourceFile, DatasourceLink};
use crate::records::delivery::Delivery;
use crate::records::form::Form;
use crate::records::intent::{Intent, IntentLink};
use crate::records::tag::{Link, Tag};
use crate::records::webhook::Webhook;
use crate::records::widget::Widget;
use crate::table::cascade::{Owned, Owner, Step, items, links, rows};
use crate::table::declaration::{Declared as _, Reference};
use crate::table::stored::{Listed as _, reference};
use crate::values::tenant::Tenant;

impl Owner for Agency {
    const STEPS: &'static [Step] = &[rows::<BillingPlan>];
}

impl Owner for Assistant {
    const STEPS: &'static [Step] = &[rows::<DatasourceLink>, rows::<IntentLink>, links::<Link, Self>];
}

impl Owner for Campaign {
    const STEPS: &'static [Step] = &[remove_contacts, items::<Self>, links::<Link, Self>];
}

impl Owner for Contact {
    const STEPS: &'static [Step] = &[links::<Link, Self>];
}

impl Owner for Conversation {
    const STEPS: &'static [Step] =
        &[items::<Self>, links::<CapturedForm, Self>, links::<CapturedIntent, Self>, links::<Link, Self>];
}

impl Owner for Datasource {
    const STEPS: &'static [Step] = &[rows::<DatasourceFile>, links::<DatasourceLink, Self>, links::<Link, Self>];
}

impl Owner for Form {
    const STEPS: &'static [Step] = &[links::<CapturedForm, Self>, links::<Link, Self>];
}

impl Owner for Intent {
    const STEPS: &'static [Step] = &[links::<IntentLink, Self>, links::<CapturedIntent, Self>, links::<Link, Self>];
}

impl Owner for Tag {
    const STEPS: &'static [Step] = &[links::<Link, Self>];
}

impl Owner for Webhook {
    const STEPS: &'static [Step] = &[rows::<Delivery>];
}

impl Owner for Widget {
    const STEPS: &'static [Step] = &[remove_deliveries, items::<Self>, links::<Link, Self>];
}

impl Owned for BillingPlan {
    fn owners(&self, tenant: &Tenant) -> Vec<Reference> {
        Self::parent(tenant, self.agency_id).into_iter().collect()
    }
}

impl Owned for CapturedForm {
    fn owners(&self, tenant: &Tenant) -> Vec<Reference> {
        let form = reference::<Form, _>(tenant, "form_id", &self.form_id);
        let conversation = reference::<Conversation, _>(tenant, "conversation_id", &self.conversation_id);
        form.into_iter().chain(conversation).collect()
    }
}

impl Owned for CapturedIntent {
    fn owners(&self, tenant: &Tenant) -> Vec<Reference> {
        let intent = reference::<Intent, _>(tenant, "intent_id", &self.intent_id);
        let conversation = reference::<Conversation, _>(tenant, "conversation_id", &self.conversation_id);
        intent.into_iter().chain(conversation).collect()
    }
}

impl Owned for DatasourceFile {
    fn owners(&self, tenant: &Tenant) -> Vec<Reference> {
        Self::parent(tenant, self.datasource_id).into_iter().collect()
    }
}

impl Owned for DatasourceLink {
    fn owners(&self, tenant: &Tenant) -> Vec<Reference> {
        self.references(tenant).into_iter().chain(Self::parent(tenant, self.assistant_id)).collect()
    }
}

impl Owned for IntentLink {
    fn owners(&self, tenant: &Tenant) -> Vec<Reference> {
        self.references(tenant).into_iter().chain(Self::parent(tenant, self.assistant_id)).collect()
    }
}

impl Owned for Link {
    fn owners(&self, tenant: &Tenant) -> Vec<Reference> {
        // An entity whose name is no UUID never existed.
        let entity = if self.entity_id.uuid().is_some() { self.entity(tenant) } else { Vec::new() };
        self.references(tenant).into_iter().chain(entity).collect()
    }
}
