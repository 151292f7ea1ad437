//! Runs `read-widget` under Lambda. Written by `cargo generate`.

use shared::prelude::{Read, Widget};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<Widget>>(&routes::READ_WIDGET))
}
