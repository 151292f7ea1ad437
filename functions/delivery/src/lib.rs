//! The operations of the record `delivery`. Written by `cargo generate`.

mod list_deliveries;
mod read_delivery_stats;
mod redeliver;

pub use list_deliveries::ListDeliveries;
pub use read_delivery_stats::ReadDeliveryStats;
pub use redeliver::Redeliver;
