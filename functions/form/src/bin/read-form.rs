//! Runs `read-form` under Lambda. Written by `cargo generate`.

use shared::prelude::{Form, Read};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<Form>>(&routes::READ_FORM))
}
