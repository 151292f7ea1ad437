//! Runs `delete-widget` under Lambda. Written by `cargo generate`.

use shared::prelude::{Delete, Widget};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<Widget>>(&routes::DELETE_WIDGET))
}
