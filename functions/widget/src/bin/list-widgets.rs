//! Runs `list-widgets` under Lambda. Written by `cargo generate`.

use shared::prelude::{List, Widget};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<List<Widget>>(&routes::LIST_WIDGETS))
}
