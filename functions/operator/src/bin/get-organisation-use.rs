//! Runs `get-organisation-use` under Lambda. Written by `cargo generate`.

use shared::runtime::lambda;
use shared::runtime::operator::Task;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run_task(Task::of::<operator::GetOrganisationUse>())
}
