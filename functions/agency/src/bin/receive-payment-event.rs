//! Runs `receive-payment-event` under Lambda. Written by `cargo generate`.

use shared::request::pipeline::Handler;
use shared::routes;
use shared::runtime::lambda;

fn main() -> Result<(), lambda::Fatal> {
    lambda::run(Handler::signed::<agency::ReceivePaymentEvent>(&routes::RECEIVE_PAYMENT_EVENT))
}
