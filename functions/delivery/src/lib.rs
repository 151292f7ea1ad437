//! The operations of the record `delivery`. Written by `cargo generate`.

mod list_deliveries;
mod redeliver;

pub use list_deliveries::ListDeliveries;
pub use redeliver::Redeliver;
