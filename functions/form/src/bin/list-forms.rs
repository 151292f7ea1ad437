//! Runs `list-forms` under Lambda. Written by `cargo generate`.

use shared::prelude::{Form, List};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Form>>(&routes::LIST_FORMS))
}
