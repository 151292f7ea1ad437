//! Runs `issue-api-key` under Lambda. Written by `cargo generate`.

use shared::runtime::lambda;
use shared::runtime::operator::Task;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run_task(Task::of::<operator::IssueApiKey>())
}
