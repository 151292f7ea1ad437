//! Runs `update-form` under Lambda. Written by `cargo generate`.

use shared::prelude::{Form, Update};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Update<Form>>(&routes::UPDATE_FORM))
}
