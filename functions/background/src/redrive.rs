//! Every five minutes, or invoked by an operator: handles once more what the functions on the table's stream gave up.

use shared::prelude::operator::*;
use shared::redrive::{Redriven, redrive};

pub struct Redrive;

input! {
    pub struct WantedObjects {
        /// Whether those are tried too that were given up more than twelve hours ago.
        pub all: bool = false,
    }
}

impl OperatorTask for Redrive {
    const NAME: &'static str = "redrive";
    type Input = WantedObjects;
    type Output = Redriven;

    async fn run(cx: &OperatorContext<'_>, input: WantedObjects) -> Result<Redriven> {
        redrive(cx.service, input.all).await
    }
}
