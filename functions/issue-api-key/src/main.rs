//! Runs `issue-api-key` under Lambda.

use shared::operator::Task;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run_task(Task::of::<issue_api_key::IssueApiKey>())
}
