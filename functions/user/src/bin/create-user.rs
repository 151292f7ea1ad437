//! Runs `create-user` under Lambda. Written by `cargo generate`.

use shared::prelude::{Create, User};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Create<User>>(&routes::CREATE_USER))
}
