//! Runs `create-captured-form` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<captured_form::CreateCapturedForm>(&routes::CREATE_CAPTURED_FORM))
}
