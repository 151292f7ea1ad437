//! Identifiers: UUIDs, a type for each kind of record, so that one cannot be given for another.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::{Issues, Location};
use crate::model::time::Timestamp;
use crate::schema::Schema;
use crate::validation::{Parse, Raw};

macro_rules! ids {
    ($($(#[doc = $doc:literal])* $Name:ident;)*) => {
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
    OrgId;
    /// An API key, for naming it without showing it.
    ApiKeyId;
    /// An assistant.
    AssistantId;
    /// An agency.
    AgencyId;
    /// A billing plan of an agency.
    BillingPlanId;
    /// A campaign.
    CampaignId;
    /// A contact of a campaign.
    CampaignContactId;
    /// A contact.
    ContactId;
    /// A conversation.
    ConversationId;
    /// A conversation flow; flows are kept elsewhere.
    ConversationFlowId;
    /// A data source.
    DatasourceId;
    /// A file of a data source.
    DatasourceFileId;
    /// A delivery.
    DeliveryId;
    /// What events are delivered to: a webhook, or a widget's connector.
    EndpointId;
    /// A form.
    FormId;
    /// An intent.
    IntentId;
    /// A link between a tag and an entity.
    LinkId;
    /// A message of a conversation.
    MessageId;
    /// A plan that a user is billed by.
    UserBillingPlanId;
    /// A role of a user.
    RoleId;
    /// A tag.
    TagId;
    /// A user.
    UserId;
    /// A webhook.
    WebhookId;
    /// A widget.
    WidgetId;
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

/// A UUID of version 7 (RFC 9562) for something that happened at `now`, so that the order of ids is the order of creation.
pub fn uuid_v7(now: Timestamp, random: [u8; 10]) -> Uuid {
    uuid::Builder::from_unix_timestamp_millis(now.unix_millis().unsigned_abs(), &random).into_uuid()
}

/// `id` with its last 32 bits replaced by `ordinal`, its place in a list. RFC 9562 lets a counter stand there; 42 random bits stay.
pub fn with_ordinal(id: Uuid, ordinal: u32) -> Uuid {
    Uuid::from_u128(id.as_u128() & !u128::from(u32::MAX) | u128::from(ordinal))
}

/// The place that [`with_ordinal`] wrote.
pub const fn ordinal(id: Uuid) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the last 32 bits are what is wanted")]
    let ordinal = id.as_u128() as u32;
    ordinal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_carries_its_ordinal_and_keeps_version_and_order() {
        let id = uuid_v7(Timestamp::from_unix_millis(1_700_000_000_000), [0xFF; 10]);
        for place in [0, 1, 4095, u32::MAX] {
            let with = with_ordinal(id, place);
            assert_eq!(ordinal(with), place);
            assert_eq!(with.get_version_num(), 7);
            assert_eq!(with.get_variant(), uuid::Variant::RFC4122);
        }
        assert!(with_ordinal(id, 1) < with_ordinal(id, 2));
    }
}
