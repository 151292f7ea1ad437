//! Runs `read-captured-form` under Lambda. Written by `cargo generate`.

use shared::prelude::{CapturedForm, Read};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<CapturedForm>>(&routes::READ_CAPTURED_FORM))
}
