//! The operations of the record `assistant`. Written by `UPDATE=1 cargo test`.

mod create_assistant;

pub use create_assistant::CreateAssistant;
