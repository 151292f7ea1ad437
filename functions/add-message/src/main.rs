//! Runs `add-message` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<add_message::AddMessage>())
}
