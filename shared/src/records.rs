//! The records: their fields, their rules, their stored form, and their changes of state.
//!
//! [`record!`](crate::record) declares a record once ([`declaration`](crate::table::declaration) says how).

pub mod agency;
pub mod assistant;
pub mod campaign;
pub mod contact;
pub mod contact_point;
pub mod conversation;
pub mod datasource;
pub mod delivery;
pub mod due;
pub mod form;
pub mod intent;
pub mod tag;
pub mod user;
pub mod webhook;
pub mod widget;

/// What an operation needs of the records.
pub mod prelude {
    pub use super::agency::*;
    pub use super::assistant::*;
    pub use super::campaign::{
        self, AddedContacts, Campaign, CampaignChanges, CampaignCommand, CampaignContact, CampaignRun, MoreContacts,
        NewCampaign, NewScheduledCampaign, RunMarker,
    };
    pub use super::contact::{self, Contact, ContactFields, ContactQuery, ImportedContacts, NewContacts, Upsert};
    pub use super::conversation::{
        self, CallToNumber, Changed, Conversation, Message, MessageToNumber, NewMessage, Requested, Transcribed,
    };
    pub use super::datasource::files::*;
    pub use super::datasource::*;
    pub use super::delivery::{self, Delivery, EndpointHealth, EventId, NewDelivery, Observed};
    pub use super::form::*;
    pub use super::intent::*;
    pub use super::tag::*;
    pub use super::user::*;
    pub use super::webhook::*;
    pub use super::widget::*;
}
