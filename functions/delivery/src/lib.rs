//! The operations of the record `delivery`. Written by `UPDATE=1 cargo test`.

mod list_deliveries;
mod redeliver;

pub use list_deliveries::ListDeliveries;
pub use redeliver::Redeliver;
