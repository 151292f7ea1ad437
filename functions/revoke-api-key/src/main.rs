//! Runs `revoke-api-key` under Lambda.

use shared::operator::Task;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run_task(Task::of::<revoke_api_key::RevokeApiKey>())
}
