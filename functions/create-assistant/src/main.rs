//! Runs `create-assistant` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<create_assistant::CreateAssistant>())
}
