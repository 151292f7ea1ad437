//! Runs `note-upload` under Lambda. Written by `cargo generate`.

use shared::runtime::lambda;
use shared::runtime::operator::Task;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run_task(Task::of::<background::NoteUpload>())
}
