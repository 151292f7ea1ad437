//! Runs `get-agent-list` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<get_agent_list::GetAgentList>())
}
