//! Runs `list-contact-conversations` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::of::<conversation::ListContactConversations>(&routes::LIST_CONTACT_CONVERSATIONS))
}
