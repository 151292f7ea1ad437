//! What runs without a request. Written by `UPDATE=1 cargo test`.

mod conversation_closed;
mod release_deliveries;
mod send_campaigns;
mod send_delivery;
mod tag_deleted;

pub use conversation_closed::ConversationClosed;
pub use release_deliveries::ReleaseDeliveries;
pub use send_campaigns::SendCampaigns;
pub use send_delivery::SendDelivery;
pub use tag_deleted::TagDeleted;
