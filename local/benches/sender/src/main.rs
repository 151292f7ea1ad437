//! `send-delivery` as it is deployed, except that it may send to this machine, where the benchmark has its receivers.

use std::sync::Arc;
use std::time::Duration;

use shared::network::address::Reach;
use shared::network::{Network, SystemLookup};
use shared::runtime::lambda;
use shared::runtime::stream::Consumer;

/// The time limit of an attempt, as it is deployed.
const ATTEMPT: Duration = Duration::from_secs(15);

fn main() -> Result<(), lambda::Fatal> {
    let network = Network::new(Reach::Loopback, Arc::new(SystemLookup), ATTEMPT);
    lambda::run_consumer_in(network, Consumer::of::<background::SendDelivery>())
}
