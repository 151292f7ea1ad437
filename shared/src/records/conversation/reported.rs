//! What a connector reports of a conversation: how its call or its message ended.

use super::Conversation;
use crate::input::Location;
use crate::records::outcome::NewOutcome;
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::declaration::Declared as _;
use crate::table::error::NotChanged;
use crate::values::id::ConversationId;

/// Why a report changes nothing.
enum ReportRefused {
    /// A later report is stored, or this one.
    Known(Box<Conversation>),
    /// The conversation has no widget.
    NoWidget,
}

/// Stores how a call or a message ended, unless a later report is stored. Returns the conversation with the report that
/// counts.
///
/// # Errors
/// [`Error::NotFound`] where there is no such conversation, [`Error::Conflict`] where it takes place through no widget,
/// [`Error::Invalid`] at a time in the future.
pub async fn report(cx: &Context<'_>, id: ConversationId, new: NewOutcome) -> Result<Conversation> {
    let now = cx.now();
    let report = new.report(now)?;
    let store = |conversation: &mut Conversation| {
        if conversation.widget_id.is_none() {
            return Err(ReportRefused::NoWidget);
        }
        if !report.replaces(conversation.result.as_ref()) {
            return Err(ReportRefused::Known(Box::new(conversation.clone())));
        }
        conversation.result = Some(report.clone());
        conversation.touch(now);
        Ok(())
    };
    match cx.table.try_change(id, cx.new_id(), store).await {
        Ok(conversation) => Ok(conversation),
        Err(NotChanged::Refused(ReportRefused::Known(conversation))) => Ok(*conversation),
        Err(NotChanged::Refused(ReportRefused::NoWidget)) => Err(Error::Conflict {
            at: Location::path().name("conversation_id"),
            kind: "not_sent",
            message: "The conversation takes place through no widget, so nothing was sent in it",
        }),
        Err(NotChanged::Failed(error)) => Err(error).on_missing("conversation_id"),
    }
}
