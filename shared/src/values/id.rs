//! Identifiers: UUIDs with a type for each kind of record, so that one cannot be used for another.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use ring::hmac;
use ring::rand::SecureRandom as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::input::schema::{Schema, object};
use crate::input::{Input, Issues, Location, Parse, Raw, Source, member};
use crate::values::time::Timestamp;

/// An identifier. It is also the input of a path with its parameter.
pub trait Id:
    Copy + Ord + Display + From<Uuid> + Into<Uuid> + Parse + Schema + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The name of its parameter in a path.
    const PARAMETER: &'static str;
    /// The description of the parameter.
    const DOC: &'static str;
}

impl<T: Id> Input for T {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        source.required(T::PARAMETER, issues)
    }

    fn schema() -> Value {
        object(vec![member::<T>(T::PARAMETER, true, T::DOC)])
    }
}

/// Two identifiers of a path, the outer one first.
impl<A: Id, B: Id> Input for (A, B) {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let (outer, inner) = (A::read(source, issues), B::read(source, issues));
        outer.zip(inner)
    }

    fn schema() -> Value {
        object(vec![member::<A>(A::PARAMETER, true, A::DOC), member::<B>(B::PARAMETER, true, B::DOC)])
    }
}

macro_rules! ids {
    ($($(#[doc = $doc:literal])* $Name:ident $parameter:literal;)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
            #[serde(transparent)]
            pub struct $Name(pub Uuid);

            impl std::fmt::Display for $Name {
                fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    self.0.hyphenated().fmt(formatter)
                }
            }

            impl From<Uuid> for $Name {
                fn from(id: Uuid) -> Self {
                    Self(id)
                }
            }

            impl From<$Name> for Uuid {
                fn from(id: $Name) -> Self {
                    id.0
                }
            }

            impl Parse for $Name {
                fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
                    Uuid::parse(raw, at, issues).map(Self)
                }
            }

            impl Id for $Name {
                const PARAMETER: &'static str = $parameter;
                const DOC: &'static str = concat!($($doc),*);
            }

            impl Schema for $Name {
                fn schema() -> Value {
                    json!({"type": "string", "format": "uuid"})
                }
            }
        )*
    };
}

ids! {
    /// An organisation: the tenant that a key belongs to.
    OrgId "org_id";
    /// An API key, for naming it without showing it.
    ApiKeyId "api_key_id";
    /// An assistant.
    AssistantId "assistant_id";
    /// An agency.
    AgencyId "agency_id";
    /// An entry of the audit list.
    AuditId "audit_id";
    /// A billing plan of an agency.
    BillingPlanId "billing_plan_id";
    /// A campaign.
    CampaignId "campaign_id";
    /// A contact of a campaign.
    CampaignContactId "campaign_contact_id";
    /// What a conversation has filled into a form.
    CapturedFormId "captured_form_id";
    /// An intent that was recognised in a conversation.
    CapturedIntentId "captured_intent_id";
    /// A contact.
    ContactId "contact_id";
    /// A conversation.
    ConversationId "conversation_id";
    /// A conversation flow, which another service keeps.
    ConversationFlowId "conversation_flow_id";
    /// A data source.
    DatasourceId "datasource_id";
    /// A link between a data source and an assistant.
    DatasourceLinkId "datasource_link_id";
    /// A file of a data source.
    DatasourceFileId "datasourcefile_id";
    /// A delivery.
    DeliveryId "delivery_id";
    /// An endpoint of events: a webhook, or a widget's connector.
    EndpointId "endpoint_id";
    /// A form.
    FormId "form_id";
    /// An intent.
    IntentId "intent_id";
    /// A link between an intent and an assistant.
    IntentLinkId "intent_link_id";
    /// A link between a tag and an entity.
    LinkId "link_tag_entity_id";
    /// A message of a conversation.
    MessageId "message_id";
    /// A record of any kind.
    RecordId "record_id";
    /// A role of a user.
    RoleId "role_id";
    /// A tag.
    TagId "tag_id";
    /// A user.
    UserId "user_id";
    /// A webhook.
    WebhookId "webhook_id";
    /// A widget.
    WidgetId "widget_id";
}

impl From<WebhookId> for EndpointId {
    fn from(id: WebhookId) -> Self {
        Self(id.0)
    }
}

impl From<WidgetId> for EndpointId {
    fn from(id: WidgetId) -> Self {
        Self(id.0)
    }
}

/// A UUID of version 7 (RFC 9562) for the time `now`, so that the order of ids is the order of creation.
pub fn uuid_v7(now: Timestamp, random: [u8; 10]) -> Uuid {
    uuid::Builder::from_unix_timestamp_millis(now.unix_millis().unsigned_abs(), &random).into_uuid()
}

/// The first ordinal of the rows of a list that are spread over several partitions. The ordinals of other rows are
/// below 2³¹.
pub const SPREAD: u64 = 1 << 42;

/// The last bits of an id: an ordinal, or the last bits of a spread ordinal.
const LOW: u128 = (1 << LOW_BITS) - 1;
const LOW_BITS: u32 = 31;
/// The bit before them, which is set if the ordinal is spread.
const IS_SPREAD: u128 = 1 << LOW_BITS;
/// The bits before that one, which contain the rest of a spread ordinal.
const HIGH: u128 = ((1 << 11) - 1) << (LOW_BITS + 1);

/// `id` with its last 32 bits replaced by `ordinal`, or its last 43 if `ordinal` is spread. RFC 9562 allows a counter
/// there; 42 or 31 random bits remain.
pub fn with_ordinal(id: Uuid, ordinal: u64) -> Uuid {
    let (bits, is_spread, ordinal) = (id.as_u128() & !(LOW | IS_SPREAD), ordinal >= SPREAD, u128::from(ordinal));
    let low = bits | ordinal & LOW;
    Uuid::from_u128(if is_spread { low & !HIGH | IS_SPREAD | ordinal << 1 & HIGH } else { low })
}

/// The ordinal that [`with_ordinal`] wrote.
pub const fn ordinal(id: Uuid) -> u64 {
    let low = low_ordinal(id);
    if has_flag(id) { SPREAD | last_64((id.as_u128() & HIGH) >> 1) | low } else { low }
}

/// `id` with the flag of a spread ordinal set, and with all other bits unchanged.
pub const fn with_flag(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128() | IS_SPREAD)
}

/// Whether an id has the flag of a spread ordinal.
pub const fn has_flag(id: Uuid) -> bool {
    id.as_u128() & IS_SPREAD != 0
}

/// The last 31 bits of an id: its ordinal, with or without the flag.
pub const fn low_ordinal(id: Uuid) -> u64 {
    last_64(id.as_u128() & LOW)
}

#[expect(clippy::cast_possible_truncation, reason = "the last 64 bits are what is wanted")]
const fn last_64(bits: u128) -> u64 {
    bits as u64
}

/// `id` with two ordinals: its own in the last 32 bits, and the one of its parent's row before it, neither of them
/// spread. Ten random bits remain, which is enough: no two rows of an organisation have the same two ordinals.
pub fn with_ordinals(id: Uuid, parent: u64, own: u64) -> Uuid {
    let parent = u128::from(parent) & ((1 << PARENT_BITS) - 1);
    let (low, high) = (parent & PARENT_LOW, parent >> PARENT_LOW_BITS);
    let cleared = with_ordinal(id, own).as_u128() & !(PARENT_LOW << 32) & !(0b11 << 64);
    Uuid::from_u128(cleared | low << 32 | high << 64)
}

/// The parent's ordinal that [`with_ordinals`] wrote.
pub const fn parent_ordinal(id: Uuid) -> u64 {
    let (low, high) = (id.as_u128() >> 32 & PARENT_LOW, id.as_u128() >> 64 & 0b11);
    last_64(high << PARENT_LOW_BITS | low)
}

/// The bits of the parent's ordinal: most of them are between the variant and the row's own ordinal, and two before the
/// variant.
const PARENT_BITS: u32 = PARENT_LOW_BITS + 2;
const PARENT_LOW_BITS: u32 = 30;
const PARENT_LOW: u128 = (1 << PARENT_LOW_BITS) - 1;

/// The machine has no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("no random bytes")]
pub struct NoRandomBytes;

/// The source of the random part of ids.
#[derive(Debug, Clone)]
pub enum Ids {
    /// The machine.
    Random,
    /// A counter, so that a test knows the next id.
    Counted(Arc<AtomicU64>),
    /// A secret: the same secret gives the same ids.
    Seeded(Seed),
    /// A given id, for code that creates a record with a known id.
    Given(Arc<Mutex<Uuid>>),
}

/// A secret, and the number of ids derived from it. `Debug` does not show the secret.
#[derive(Debug, Clone)]
pub struct Seed {
    key: hmac::Key,
    next: Arc<AtomicU64>,
}

impl Seed {
    /// The seed of `secret`.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret), next: Arc::default() }
    }

    /// The bytes that are derived from the secret for one `purpose` and `input`.
    pub(crate) fn derive(&self, purpose: &str, input: &[u8]) -> [u8; 32] {
        let mut derived = [0; 32];
        derived.copy_from_slice(hmac::sign(&self.key, &[purpose.as_bytes(), &[0], input].concat()).as_ref());
        derived
    }

    /// Different bytes at each call.
    fn next(&self, purpose: &str) -> [u8; 32] {
        self.derive(purpose, &self.next.fetch_add(1, Ordering::SeqCst).to_be_bytes())
    }
}

impl Ids {
    /// Ids whose random part counts 0, 1, 2 and so on in its upper half. The lower half stays free for ordinals.
    pub fn counted() -> Self {
        Self::Counted(Arc::default())
    }

    /// The secret of a new key.
    ///
    /// # Errors
    /// [`NoRandomBytes`].
    pub fn secret(&self) -> Result<[u8; 32], NoRandomBytes> {
        let mut secret = [0; 32];
        match self {
            Self::Random | Self::Given(_) => {
                ring::rand::SystemRandom::new().fill(&mut secret).map_err(|_| NoRandomBytes)?;
            }
            Self::Counted(next) => secret[..8].copy_from_slice(&next.fetch_add(1, Ordering::SeqCst).to_be_bytes()),
            Self::Seeded(seed) => secret = seed.next("secret"),
        }
        Ok(secret)
    }

    /// A UUID of version 7 for `now`.
    pub fn fresh(&self, now: Timestamp) -> Uuid {
        let mut tail = [0; 10];
        match self {
            Self::Random => tail.copy_from_slice(&Uuid::now_v7().as_bytes()[6..]),
            Self::Counted(next) => {
                tail[2..6].copy_from_slice(&next.fetch_add(1, Ordering::SeqCst).to_be_bytes()[4..]);
            }
            Self::Seeded(seed) => tail.copy_from_slice(&seed.next("id")[..10]),
            Self::Given(id) => return *id.lock().unwrap_or_else(PoisonError::into_inner),
        }
        uuid_v7(now, tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_carries_its_ordinal_and_keeps_version_and_order() {
        let id = uuid_v7(Timestamp::from_unix_millis(1_700_000_000_000), [0xFF; 10]);
        let low = 1 << LOW_BITS;
        for place in [0, 1, 4095, low - 1, SPREAD, SPREAD + 1, SPREAD + low, 2 * SPREAD - 1] {
            let with = with_ordinal(id, place);
            assert_eq!(ordinal(with), place);
            assert_eq!(with.get_version_num(), 7);
            assert_eq!(with.get_variant(), uuid::Variant::RFC4122);
            assert_eq!(ordinal(with_ordinal(with, 7)), 7, "the new ordinal replaces the old one");
        }
        assert!(with_ordinal(id, 1) < with_ordinal(id, 2));
        assert!(with_ordinal(id, SPREAD + low - 1) < with_ordinal(id, SPREAD + low));
    }

    #[test]
    fn an_id_carries_two_ordinals_and_keeps_version_time_and_order() {
        let id = uuid_v7(Timestamp::from_unix_millis(1_700_000_000_000), [0xA5; 10]);
        for parent in [0, 1, 4095, (1 << PARENT_LOW_BITS) - 1, 1 << PARENT_LOW_BITS, u64::from(u32::MAX)] {
            for own in [0, 7, (1 << LOW_BITS) - 1] {
                let with = with_ordinals(id, parent, own);
                assert_eq!((parent_ordinal(with), ordinal(with)), (parent, own));
                assert_eq!((with.get_version_num(), with.get_variant()), (7, uuid::Variant::RFC4122));
                assert_eq!(with.as_u128() >> 80, id.as_u128() >> 80, "the time stays");
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_distinct_ids_and_secrets() {
        let now = Timestamp::from_unix_millis(1_700_000_000_000);
        let made = |secret: [u8; 32]| {
            let ids = Ids::Seeded(Seed::new(&secret));
            let uuids: Vec<_> = (0..100).map(|_| ids.fresh(now)).collect();
            (uuids, ids.secret().unwrap(), ids.secret().unwrap())
        };
        let (uuids, first, second) = made([1; 32]);
        assert_eq!(made([1; 32]), (uuids.clone(), first, second));
        assert_ne!(first, second);
        // The last 32 bits belong to an ordinal, so ids must differ before them.
        let mut distinct: Vec<_> = uuids.iter().map(|id| with_ordinal(*id, 0)).collect();
        assert!(distinct.iter().all(|id| id.get_version_num() == 7));
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 100);
        let (others, other, _) = made([2; 32]);
        assert!(other != first && others.iter().all(|id| !uuids.contains(id)));
    }

    #[test]
    fn debug_does_not_show_a_seed() {
        assert!(!format!("{:?}", Seed::new(&[171; 32])).contains("171"));
    }
}
