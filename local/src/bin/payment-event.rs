//! `cargo payment-event`: makes the payment provider of a running `cargo local` send an event.

use std::process::ExitCode;

use clap::Parser;
use local::Trouble;
use local::payment_provider::event::NewPaymentEvent;
use local::payment_provider::{SEND, SentPaymentEvent};
use shared::network::tls::client_config;
use shared::values::cause::chain;

/// Has the stand-in for the payment provider in a running `cargo local` send an event, signed, to the webhook that was set up.
#[derive(Debug, Parser)]
#[command(name = "cargo payment-event", bin_name = "cargo payment-event")]
struct Arguments {
    #[command(flatten)]
    event: NewPaymentEvent,
    /// Where the stand-in listens
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:3001")]
    provider: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    match send(&Arguments::parse()).await {
        Ok(SentPaymentEvent { url, event, status, answer }) => {
            println!("{event:#}\n\nsent to {url}\nanswered {status}: {answer}");
            if status == 200 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(trouble) => {
            eprintln!("cargo payment-event: {trouble}");
            ExitCode::from(2)
        }
    }
}

async fn send(Arguments { event, provider }: &Arguments) -> Result<SentPaymentEvent, Trouble> {
    let trouble = |error: reqwest::Error| Trouble(chain(&error));
    let tls = client_config(None).map_err(|error| Trouble(chain(&error)))?;
    let client = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().map_err(trouble)?;
    let response = client.post(format!("{provider}{SEND}")).json(event).send().await.map_err(trouble)?;
    if response.status() == 200 {
        return response.json().await.map_err(trouble);
    }
    let refusal: serde_json::Value = response.json().await.map_err(trouble)?;
    Err(Trouble(refusal["error"].as_str().unwrap_or("refused").to_owned()))
}
