//! Runs `send-delivery` under Lambda.

use shared::stream::Consumer;

fn main() -> Result<(), shared::lambda::Fatal> {
    shared::lambda::run_consumer(Consumer::of::<send_delivery::SendDelivery>())
}
