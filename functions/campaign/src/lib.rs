//! The operations of the record `campaign`. Written by `UPDATE=1 cargo test`.

mod cancel_campaign;
mod read_campaign;
mod run_campaign;

pub use cancel_campaign::CancelCampaign;
pub use read_campaign::ReadCampaign;
pub use run_campaign::RunCampaign;
