//! Runs `delete-form` under Lambda. Written by `cargo generate`.

use shared::prelude::{Delete, Form};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Form>>(&routes::DELETE_FORM))
}
