//! Runs `delete-user` under Lambda. Written by `cargo generate`.

use shared::prelude::{Delete, User};
use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<Delete<User>>(&routes::DELETE_USER))
}
