//! Every key of the single table, on one screen.
//!
//! A partition key begins with the caller's organisation, and only a [`Tenant`] can write it; API keys alone are found before the
//! organisation is known. Almost every record has a partition of its own, so that no organisation makes a hot one.

use std::collections::HashMap;
use std::fmt::Display;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::agency::{Agency, BillingPlan, StoredPaymentWebhook};
use crate::model::api_key::KeyHash;
use crate::model::assistant::Assistant;
use crate::model::campaign::{Campaign, CampaignContact, RunMarker};
use crate::model::contact::Contact;
use crate::model::datasource::{Datasource, DatasourceFile, DatasourceLink};
use crate::model::form::Form;
use crate::model::id::{
    AgencyId, ApiKeyId, AssistantId, BillingPlanId, CampaignContactId, CampaignId, ContactId, DatasourceFileId,
    DatasourceId, FormId, IntentId, OrgId, TagId, WebhookId, WidgetId,
};
use crate::model::intent::Intent;
use crate::model::tag::Tag;
use crate::model::webhook::Webhook;
use crate::model::widget::Widget;
use crate::tenant::Tenant;

/// Name of the partition key's attribute.
pub const PK: &str = "pk";
/// Name of the sort key's attribute.
pub const SK: &str = "sk";
/// Name of the attribute that says when DynamoDB removes an item, in seconds since 1970 began.
pub const TTL: &str = "ttl";

/// Contacts of one campaign in one partition: a partition takes a thousand writes a second, and a run wants to write ten thousand.
const CONTACTS_PER_PARTITION: u32 = 1000;

/// A record with a key of its own.
pub trait Entity: Serialize + DeserializeOwned + Send + Sync {
    /// What its key is made of.
    type Id: Copy + Send + Sync;

    /// The key of the record that `id` names.
    fn key(tenant: &Tenant, id: Self::Id) -> Key;
}

macro_rules! entities {
    ($($Record:ty, $Id:ty, |$org:ident, $id:pat_param| $pk:expr, $sk:expr;)*) => {
        $(impl Entity for $Record {
            type Id = $Id;

            fn key(tenant: &Tenant, $id: $Id) -> Key {
                let $org = tenant.org();
                Key::new($pk, $sk)
            }
        })*
    };
}

#[rustfmt::skip]
entities! {
    // record            its id                               partition key                                     sort key
    Assistant,           AssistantId,       |org, id|         format!("ORG#{org}#ASSISTANT#{id}"),              "ASSISTANT";
    Agency,              AgencyId,          |org, id|         format!("ORG#{org}#AGENCY#{id}"),                 "AGENCY";
    StoredPaymentWebhook, AgencyId,         |org, id|         format!("ORG#{org}#AGENCY#{id}"),                 "PAYMENT_WEBHOOK";
    BillingPlan,         (AgencyId, BillingPlanId), |org, (agency, id)| format!("ORG#{org}#BILLING_PLAN#{agency}"), id;
    Campaign,            CampaignId,        |org, id|         format!("ORG#{org}#CAMPAIGN#{id}"),               "CAMPAIGN";
    CampaignContact,     CampaignContactId, |org, id|         format!("ORG#{org}#CAMPAIGN_CONTACT#{}", block(id)), id;
    Contact,             ContactId,         |org, id|         format!("ORG#{org}#CONTACT#{id}"),                "CONTACT";
    Datasource,          DatasourceId,      |org, id|         format!("ORG#{org}#DATASOURCE#{id}"),             "DATASOURCE";
    DatasourceFile,      DatasourceFileId,  |org, id|         format!("ORG#{org}#DATASOURCE_FILE#{id}"),        "DATASOURCE_FILE";
    DatasourceLink,      (DatasourceId, AssistantId), |org, (id, assistant)| format!("ORG#{org}#DATASOURCE_LINK#{id}"), assistant;
    Form,                FormId,            |org, id|         format!("ORG#{org}#FORM#{id}"),                   "FORM";
    Intent,              IntentId,          |org, id|         format!("ORG#{org}#INTENT#{id}"),                 "INTENT";
    Tag,                 TagId,             |org, id|         format!("ORG#{org}#TAG#{id}"),                    "TAG";
    Webhook,             WebhookId,         |org, id|         format!("ORG#{org}#WEBHOOK#{id}"),                "WEBHOOK";
    Widget,              WidgetId,          |org, id|         format!("ORG#{org}#WIDGET#{id}"),                 "WIDGET";
    RunMarker,           Fingerprint,       |org, print|      format!("ORG#{org}#RUN#{}", crate::hex(&print)),  "RUN";
}

/// An API key's record: the one item that is found without an organisation.
pub fn api_key(hash: &KeyHash) -> Key {
    Key::new(format!("KEY#{hash}"), "KEY")
}

/// The key `id` in the listing of its organisation's keys. It is for operators, who name the organisation themselves.
pub fn listed_api_key(org: OrgId, id: ApiKeyId) -> Key {
    Key::new(format!("ORG#{org}#API_KEYS"), id)
}

/// A link of a tag, in the tag's own partition: that is how all links of a tag are found.
pub fn tag_link(tenant: &Tenant, tag: TagId, ordinal: u32) -> Key {
    Key { sk: format!("LINK#{ordinal:010}"), ..Tag::key(tenant, tag) }
}

/// The tag whose key this is, and its organisation.
pub fn tag_of(key: &Key) -> Option<(Tenant, TagId)> {
    let tenant = Tenant::of_partition_key(&key.pk)?;
    let tag = TagId(key.pk.rsplit('#').next()?.parse().ok()?);
    (*key == Tag::key(&tenant, tag)).then_some((tenant, tag))
}

/// A list's head and the counts of its holes, section by section.
pub fn list_head(tenant: &Tenant, list: &str) -> Key {
    Key::new(format!("ORG#{}#LIST#{list}", tenant.org()), "HEAD")
}

/// The holes of a section of a list, in the partition of its head.
pub fn list_section(tenant: &Tenant, list: &str, section: u32) -> Key {
    Key::new(format!("ORG#{}#LIST#{list}", tenant.org()), format!("SECTION#{section:08}"))
}

/// The holes of a block of a list.
pub fn list_block(tenant: &Tenant, list: &str, block: u32) -> Key {
    Key::new(format!("ORG#{}#LIST#{list}#HOLES", tenant.org()), format!("{block:08}"))
}

/// A row of a list.
pub fn list_row(tenant: &Tenant, list: &str, ordinal: u32) -> Key {
    Key::new(format!("ORG#{}#LIST#{list}#ROWS", tenant.org()), format!("{ordinal:010}"))
}

/// SHA-256 of what makes two requests to run a campaign the same.
pub type Fingerprint = [u8; 32];

fn block(id: CampaignContactId) -> String {
    format!("{}#{:02}", id.campaign(), id.place().unwrap_or_default() / CONTACTS_PER_PARTITION)
}

/// The primary key of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Partition key.
    pub pk: String,
    /// Sort key.
    pub sk: String,
}

impl Key {
    fn new(pk: String, sk: impl Display) -> Self {
        Self { pk, sk: sk.to_string() }
    }

    /// The two attributes.
    pub fn attributes(&self) -> HashMap<String, AttributeValue> {
        let text = |value: &String| AttributeValue::S(value.clone());
        HashMap::from([(PK.to_owned(), text(&self.pk)), (SK.to_owned(), text(&self.sk))])
    }
}
