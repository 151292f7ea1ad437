//! Runs `update-captured-form` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<captured_form::UpdateCapturedForm>(&routes::UPDATE_CAPTURED_FORM))
}
