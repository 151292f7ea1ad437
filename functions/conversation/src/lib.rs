//! The operations of the record `conversation`. Written by `cargo generate`.

mod add_message;
mod close_conversation;
mod delete_conversation;
mod list_contact_conversations;
mod list_conversations;
mod open_conversation;
mod read_conversation;
mod read_conversation_transcript;
mod receive_message;
mod report_conversation_outcome;
mod send_message;
mod start_call;

pub use add_message::AddMessage;
pub use close_conversation::CloseConversation;
pub use delete_conversation::DeleteConversation;
pub use list_contact_conversations::ListContactConversations;
pub use list_conversations::ListConversations;
pub use open_conversation::OpenConversation;
pub use read_conversation::ReadConversation;
pub use read_conversation_transcript::ReadConversationTranscript;
pub use receive_message::ReceiveMessage;
pub use report_conversation_outcome::ReportConversationOutcome;
pub use send_message::SendMessage;
pub use start_call::StartCall;
