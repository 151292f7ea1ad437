//! Runs `update-user` under Lambda. Written by `cargo generate`.

use shared::prelude::{Update, User};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Update<User>>(&routes::UPDATE_USER))
}
