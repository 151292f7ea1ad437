//! Runs `create-form` under Lambda. Written by `cargo generate`.

use shared::prelude::{Create, Form};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Create<Form>>(&routes::CREATE_FORM))
}
