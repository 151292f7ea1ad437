//! Runs `create-widget` under Lambda. Written by `cargo generate`.

use shared::prelude::{Create, Widget};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Create<Widget>>(&routes::CREATE_WIDGET))
}
