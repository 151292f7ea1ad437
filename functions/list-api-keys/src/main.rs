//! Runs `list-api-keys` under Lambda.

use shared::operator::Task;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run_task(Task::of::<list_api_keys::ListApiKeys>())
}
