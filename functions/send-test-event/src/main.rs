//! Runs `send-test-event` under Lambda.

use shared::operation::Endpoint;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run(Endpoint::of::<send_test_event::SendTestEvent>())
}
