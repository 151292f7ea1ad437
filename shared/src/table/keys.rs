//! Every key of the single table, on one screen.
//!
//! A partition key begins with the caller's organisation, and only a [`Tenant`] can write it; API keys alone are found before the
//! organisation is known. Almost every record has a partition of its own, so that no organisation makes a hot one.

use std::collections::HashMap;
use std::fmt::Display;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::records::agency::{Agency, BillingPlan, StoredPaymentWebhook};
use crate::records::api_key::KeyHash;
use crate::records::assistant::Assistant;
use crate::records::campaign::{Campaign, CampaignContact, RunMarker};
use crate::records::claim::Claim;
use crate::records::contact::Contact;
use crate::records::conversation::{Conversation, Message};
use crate::records::datasource::{Datasource, DatasourceFile, DatasourceLink};
use crate::records::delivery::{EndpointHealth, Lane, StoredDelivery};
use crate::records::form::Form;
use crate::records::intent::Intent;
use crate::records::tag::{Link, Tag};
use crate::records::user::User;
use crate::records::webhook::StoredWebhook;
use crate::records::widget::Widget;
use crate::request::tenant::Tenant;
use crate::values::id::{
    AgencyId, ApiKeyId, AssistantId, BillingPlanId, CampaignContactId, CampaignId, ContactId, ConversationId,
    DatasourceFileId, DatasourceId, DeliveryId, EndpointId, FormId, IntentId, LinkId, OrgId, TagId, UserId, WebhookId,
    WidgetId, ordinal,
};

/// Name of the partition key's attribute.
pub const PK: &str = "pk";
/// Name of the sort key's attribute.
pub const SK: &str = "sk";
/// Name of the attribute that says when DynamoDB removes an item, in seconds since 1970 began.
pub const TTL: &str = "ttl";

/// Sort key of a list's head.
pub const LIST_HEAD: &str = "HEAD";

/// Contacts of one campaign in one partition: a partition takes a thousand writes a second, and a run wants to write ten thousand.
const CONTACTS_PER_PARTITION: u32 = 1000;

/// A record with a key of its own.
pub trait Entity: Serialize + DeserializeOwned + Send + Sync {
    /// What its key is made of.
    type Id: Copy + Send + Sync;

    /// The key of the record that `id` names.
    fn key(tenant: &Tenant, id: Self::Id) -> Key;

    /// Where it stands in the index of what becomes due, while it has a `due_at`.
    fn due_partition(&self, _: Self::Id) -> Option<String> {
        None
    }

    /// The id that the item itself must have to be the record: a listed one is found by its ordinal, which another id may carry too.
    fn proof(_: Self::Id) -> Option<Uuid> {
        None
    }
}

/// A record that stands in a list: its id carries its ordinal.
pub trait Row: Entity {
    /// Whose list it is, where an organisation has more than one of them.
    type Of: Copy + Send + Sync;

    /// The list.
    fn list(of: Self::Of) -> String;

    /// Its identifier.
    fn id(&self) -> Uuid;

    /// A further item that comes and goes with it, and leads to it from elsewhere.
    fn pointer(&self, _: &Tenant) -> Option<Key> {
        None
    }
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
    Widget,              WidgetId,          |org, id|         format!("ORG#{org}#WIDGET#{id}"),                 "WIDGET";
    EndpointHealth,      EndpointId,        |org, id|         format!("ORG#{org}#ENDPOINT_HEALTH#{id}"),       "ENDPOINT_HEALTH";
    RunMarker,           Fingerprint,       |org, print|      format!("ORG#{org}#RUN#{}", crate::hex(&print)),  "RUN";
    Claim,               Fingerprint,       |org, key|        format!("ORG#{org}#IDEMPOTENCY#{}", crate::hex(&key)), "IDEMPOTENCY";
}

macro_rules! rows {
    ($($Record:ty, $Id:ty, $list:literal $(, $pointer:ident)?;)*) => {
        $(impl Entity for $Record {
            type Id = $Id;

            fn key(tenant: &Tenant, id: $Id) -> Key {
                list_row(tenant, $list, ordinal(id.0))
            }

            fn proof(id: $Id) -> Option<Uuid> {
                Some(id.0)
            }
        }

        impl Row for $Record {
            type Of = ();

            fn list((): ()) -> String {
                $list.to_owned()
            }

            fn id(&self) -> Uuid {
                self.id.0
            }

            $(fn pointer(&self, tenant: &Tenant) -> Option<Key> {
                Some($pointer(tenant, self.tag_id, ordinal(self.id.0)))
            })?
        })*
    };
}

#[rustfmt::skip]
rows! {
    // record            its id             list            what leads to it
    Conversation,        ConversationId,    "CONVERSATION";
    Link,                LinkId,            "LINK",         tag_link;
    User,                UserId,            "USER";
    StoredWebhook,       WebhookId,         "WEBHOOK";
}

/// Deliveries stand in a list of each endpoint.
impl Entity for StoredDelivery {
    type Id = (EndpointId, DeliveryId);

    fn key(tenant: &Tenant, (endpoint, id): Self::Id) -> Key {
        list_row(tenant, &Self::list(endpoint), ordinal(id.0))
    }

    fn proof((_, id): Self::Id) -> Option<Uuid> {
        Some(id.0)
    }

    fn due_partition(&self, (endpoint, id): Self::Id) -> Option<String> {
        self.due_at?;
        Some(match self.lane {
            Lane::Open => Due::Delivery.partition(id.0),
            Lane::Held => held_partition(endpoint),
        })
    }
}

impl Row for StoredDelivery {
    type Of = EndpointId;

    fn list(of: EndpointId) -> String {
        format!("DELIVERY#{of}")
    }

    fn id(&self) -> Uuid {
        self.delivery.id.0
    }
}

/// Messages stand in a partition of each conversation, in their order.
impl Entity for Message {
    type Id = (ConversationId, u32);

    fn key(tenant: &Tenant, (conversation, ordinal): Self::Id) -> Key {
        Key::new(format!("ORG#{}#MESSAGE#{conversation}", tenant.org()), format!("{ordinal:010}"))
    }
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

/// Leads from a contact and a widget to a conversation of theirs that is open.
pub fn thread(tenant: &Tenant, widget: WidgetId, contact: ContactId, conversation: ConversationId) -> Key {
    Key::new(format!("ORG#{}#THREAD#{widget}#{contact}", tenant.org()), conversation)
}

/// Says what `origin` has made: an event its delivery, a keyed request its record. It keeps either from making a second one.
pub fn made_by(tenant: &Tenant, origin: Uuid) -> Key {
    Key::new(format!("ORG#{}#MADE_BY#{origin}", tenant.org()), "MADE_BY")
}

/// When a widget may do next what is limited to a rate, in the partition of the widget.
pub fn slot(tenant: &Tenant, widget: WidgetId, what: Paced) -> Key {
    Key { sk: format!("SLOT#{what:?}"), ..Widget::key(tenant, widget) }
}

/// What a widget does at a limited rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paced {
    /// Turning contacts of campaigns into conversations.
    Dispatch,
    /// Handing them over to its connector.
    Send,
}

/// The places that were deleted from a block of a campaign's contacts, in the partition of the campaign, behind it.
pub fn deleted_contacts(tenant: &Tenant, id: CampaignContactId) -> Key {
    let place = id.place().unwrap_or_default() / CONTACTS_PER_PARTITION;
    Key { sk: format!("DELETED#{place:02}"), ..Campaign::key(tenant, id.campaign()) }
}

/// How many ordinals of each block are in a set, section by section.
pub fn set_section(tenant: &Tenant, set: &str, section: u32) -> Key {
    Key::new(format!("ORG#{}#SET#{set}", tenant.org()), format!("SECTION#{section:08}"))
}

/// Which ordinals of a block are in a set.
pub fn set_block(tenant: &Tenant, set: &str, block: u32) -> Key {
    Key::new(format!("ORG#{}#SET#{set}#BLOCKS", tenant.org()), format!("{block:08}"))
}

/// The endpoint whose health's key this is, and its organisation.
pub fn endpoint_of(key: &Key) -> Option<(Tenant, EndpointId)> {
    let tenant = Tenant::of_partition_key(&key.pk)?;
    let endpoint = EndpointId(key.pk.rsplit('#').next()?.parse().ok()?);
    (*key == EndpointHealth::key(&tenant, endpoint)).then_some((tenant, endpoint))
}

/// The delivery whose key this is: its organisation, its endpoint, and its place in the endpoint's list.
pub fn delivery_of(key: &Key) -> Option<(Tenant, EndpointId, u32)> {
    let tenant = Tenant::of_partition_key(&key.pk)?;
    let list = key.pk.strip_suffix("#ROWS")?.split_once("#LIST#DELIVERY#")?.1;
    let endpoint = EndpointId(list.parse().ok()?);
    let place = key.sk.parse().ok()?;
    (*key == list_row(&tenant, &StoredDelivery::list(endpoint), place)).then_some((tenant, endpoint, place))
}

/// The organisation of the conversation whose key this is.
pub fn conversation_of(key: &Key) -> Option<Tenant> {
    let tenant = Tenant::of_partition_key(&key.pk)?;
    let place = key.sk.parse().ok()?;
    (*key == list_row(&tenant, &Conversation::list(()), place)).then_some(tenant)
}

/// The campaign whose key this is, and its organisation.
pub fn campaign_of(key: &Key) -> Option<(Tenant, CampaignId)> {
    let tenant = Tenant::of_partition_key(&key.pk)?;
    let campaign = CampaignId(key.pk.rsplit('#').next()?.parse().ok()?);
    (*key == Campaign::key(&tenant, campaign)).then_some((tenant, campaign))
}

/// The index of what becomes due, over all organisations: its items have the attributes `due_pk` and `due_at`, and no others do.
pub const DUE_INDEX: &str = "Due";
/// Partitions of what becomes due, so that no single one takes all writes.
pub const DUE_SHARDS: u32 = 4;

/// Where in the index the deliveries stand that are held back from `endpoint`: by themselves, so that however many there are, those
/// of others are not behind them.
pub fn held_partition(endpoint: EndpointId) -> String {
    format!("HELD#{endpoint}")
}

/// What becomes due, each kind with partitions of its own in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Due {
    /// Deliveries that are tried again, and those that nobody has sent.
    Delivery,
    /// Endpoints that do not fare well, or from which something is held back.
    Endpoint,
    /// Campaigns that are being sent.
    Campaign,
}

impl Due {
    /// The partition of the index that `item` belongs in.
    pub fn partition(self, item: Uuid) -> String {
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of four fits")]
        let shard = ((item.as_u128() >> 32) % u128::from(DUE_SHARDS)) as u32;
        self.shard(shard)
    }

    /// All partitions of this kind.
    pub fn partitions(self) -> impl Iterator<Item = String> {
        (0..DUE_SHARDS).map(move |shard| self.shard(shard))
    }

    fn shard(self, shard: u32) -> String {
        let kind = match self {
            Self::Delivery => "DELIVERY",
            Self::Endpoint => "ENDPOINT",
            Self::Campaign => "CAMPAIGN",
        };
        format!("{kind}#{shard}")
    }
}

/// A list's head and the counts of its holes, section by section.
pub fn list_head(tenant: &Tenant, list: &str) -> Key {
    Key::new(format!("ORG#{}#LIST#{list}", tenant.org()), LIST_HEAD)
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

/// SHA-256 of what makes two requests the same: to run a campaign, or under an idempotency key.
pub type Fingerprint = [u8; 32];

fn block(id: CampaignContactId) -> String {
    format!("{}#{:02}", id.campaign(), id.place().unwrap_or_default() / CONTACTS_PER_PARTITION)
}

/// The primary key of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
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
