//! Runs `redrive` under Lambda. Written by `UPDATE=1 cargo test`.

use shared::runtime::lambda;
use shared::runtime::operator::Task;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run_task(Task::of::<background::Redrive>())
}
