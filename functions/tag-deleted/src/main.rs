//! Runs `tag-deleted` under Lambda.

use shared::stream::Consumer;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run_consumer(Consumer::of::<tag_deleted::TagDeleted>())
}
