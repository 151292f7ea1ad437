//! Runs `read-user` under Lambda. Written by `cargo generate`.

use shared::prelude::{Read, User};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Read<User>>(&routes::READ_USER))
}
