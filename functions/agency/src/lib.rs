//! The operations of the record `agency`. Written by `cargo generate`.

mod check_payment_webhook;
mod create_agency;
mod delete_agency;
mod list_agencies;
mod read_agency;
mod receive_payment_event;
mod setup_payment_webhook;
mod update_agency;

pub use check_payment_webhook::CheckPaymentWebhook;
pub use create_agency::CreateAgency;
pub use delete_agency::DeleteAgency;
pub use list_agencies::ListAgencies;
pub use read_agency::ReadAgency;
pub use receive_payment_event::ReceivePaymentEvent;
pub use setup_payment_webhook::SetupPaymentWebhook;
pub use update_agency::UpdateAgency;
