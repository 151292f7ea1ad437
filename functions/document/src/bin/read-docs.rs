//! Runs `read-docs` under Lambda. Written by `cargo generate`.

use shared::routes;
use shared::runtime::document::Published;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run_document(Published::of::<document::ReadDocs>(&routes::READ_DOCS))
}
