//! The records: their fields, their rules, their stored form, and their changes of state.
//!
//! [`record!`](crate::record) declares a record once ([`declaration`](crate::table::declaration) says how).

pub mod agency;
pub mod analytics;
pub mod assistant;
pub mod audit;
pub mod campaign;
pub mod captured_form;
pub mod captured_intent;
pub mod contact;
pub mod contact_custom_field;
pub mod contact_point;
pub mod conversation;
pub mod datasource;
pub mod delivery;
pub mod due;
pub mod event;
pub mod export;
pub mod form;
pub mod intent;
pub mod outcome;
pub mod suppression;
pub mod tag;
pub mod usage;
pub mod user;
pub mod webhook;
pub mod widget;

/// What an operation needs of the records.
pub mod prelude {
    pub use crate::records::agency::*;
    pub use crate::records::analytics::{self, Analytics, AnalyticsQuery};
    pub use crate::records::assistant::*;
    pub use crate::records::audit::{self, Audit, AuditAction, AuditPage, AuditQuery};
    pub use crate::records::campaign::{
        self, AddedContacts, Campaign, CampaignChanges, CampaignCommand, CampaignContact, CampaignRun, MoreContacts,
        NewCampaign, NewScheduledCampaign, RunMarker,
    };
    pub use crate::records::captured_form::*;
    pub use crate::records::captured_intent::*;
    pub use crate::records::contact::{
        self, Contact, ContactFields, ContactListQuery, ContactQuery, NewContacts, Upsert,
    };
    pub use crate::records::contact_custom_field::*;
    pub use crate::records::conversation::{
        self, CallToNumber, Changed, Closing, Conversation, ConversationQuery, Message, MessageFromNumber,
        MessageToNumber, NewMessage, ReceivedMessage, Requested, Transcribed,
    };
    pub use crate::records::datasource::files::*;
    pub use crate::records::datasource::*;
    pub use crate::records::delivery::{
        self, Delivery, DeliveryPage, DeliveryQuery, DeliveryStats, EndpointHealth, NewDelivery, Observed, StatsQuery,
    };
    pub use crate::records::event::{self, Event, EventId, EventKind, EventPage, EventQuery, EventTypes};
    pub use crate::records::export::{Export, ExportToDownload};
    pub use crate::records::form::*;
    pub use crate::records::intent::*;
    pub use crate::records::outcome::{NewOutcome, OutcomeReport};
    pub use crate::records::suppression::{self, NewSuppression, NewSuppressions, Suppression};
    pub use crate::records::tag::*;
    pub use crate::records::usage::{self, NewUsageReport, Usage, UsageQuery, UsageReport};
    pub use crate::records::user::*;
    pub use crate::records::webhook::recovery::{self, RecoveredEvents, Recovery};
    pub use crate::records::webhook::*;
    pub use crate::records::widget::*;
}
