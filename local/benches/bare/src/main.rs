//! Makes the SDK calls of a script for each request, and answers a constant: an operation without the service's own
//! code.

mod call;

use aws_config::BehaviorVersion;
use aws_config::retry::RetryConfig;
use aws_sdk_dynamodb::Client;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use futures_util::future::try_join_all;
use lambda_http::{Body, Error, Request, Response, run, service_fn};
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;

use crate::call::{Call, Recorded};

/// The behaviour of an operation.
#[derive(Deserialize)]
struct Script {
    /// Calls one after the other, or several at the same time.
    calls: Vec<Vec<Recorded>>,
    /// The status of its answer.
    status: u16,
    /// The body of its answer.
    body: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    #[expect(clippy::disallowed_methods, reason = "this is no function of the service")]
    let file = std::env::var("SCRIPT")?;
    let script: Script = serde_json::from_slice(&std::fs::read(file)?)?;
    let rounds: Result<Vec<Vec<Call>>, Error> =
        script.calls.iter().map(|round| round.iter().map(Call::read).collect()).collect();
    let (rounds, script) = (&rounds?, &script);
    let http = aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let config = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http)
        .retry_config(RetryConfig::standard())
        .load()
        .await;
    let client = &Client::new(&config);
    let tls = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let http = &reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build()?;
    run(service_fn(async |_: Request| answer(client, http, rounds, script).await)).await
}

async fn answer(
    client: &Client,
    http: &reqwest::Client,
    rounds: &[Vec<Call>],
    script: &Script,
) -> Result<Response<Body>, Error> {
    for round in rounds {
        let sent = match round.as_slice() {
            [call] => call.send(client, http).await,
            several => try_join_all(several.iter().map(|call| call.send(client, http))).await.map(drop),
        };
        if let Err(error) = sent {
            return Ok(Response::builder().status(500).body(format!("{error:?}").into())?);
        }
    }
    let response = Response::builder().status(script.status).header("content-type", "application/json");
    Ok(response.body(script.body.as_str().into())?)
}
