//! The operations of the record `assistant`. Written by `cargo generate`.

mod create_assistant;
mod delete_assistant;
mod link_assistant_datasource;
mod link_assistant_intent;
mod list_assistant_datasources;
mod list_assistant_intents;
mod list_llm_models;
mod unlink_assistant_intent;

pub use create_assistant::CreateAssistant;
pub use delete_assistant::DeleteAssistant;
pub use link_assistant_datasource::LinkAssistantDatasource;
pub use link_assistant_intent::LinkAssistantIntent;
pub use list_assistant_datasources::ListAssistantDatasources;
pub use list_assistant_intents::ListAssistantIntents;
pub use list_llm_models::ListLlmModels;
pub use unlink_assistant_intent::UnlinkAssistantIntent;
