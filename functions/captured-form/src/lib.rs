//! The operations of the record `captured-form`. Written by `cargo generate`.

mod create_captured_form;
mod list_captured_forms;
mod list_conversation_captured_forms;
mod update_captured_form;

pub use create_captured_form::CreateCapturedForm;
pub use list_captured_forms::ListCapturedForms;
pub use list_conversation_captured_forms::ListConversationCapturedForms;
pub use update_captured_form::UpdateCapturedForm;
