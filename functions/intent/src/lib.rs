//! The operations of the record `intent`. Written by `cargo generate`.

mod create_intent;
mod delete_intent;
mod list_intents;
mod read_intent;
mod update_intent;

pub use create_intent::CreateIntent;
pub use delete_intent::DeleteIntent;
pub use list_intents::ListIntents;
pub use read_intent::ReadIntent;
pub use update_intent::UpdateIntent;
