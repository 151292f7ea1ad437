//! Runs `report-conversation-outcome` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<conversation::ReportConversationOutcome>(&routes::REPORT_CONVERSATION_OUTCOME))
}
