//! Reads the body of each request as JSON and answers a constant: the minimum that a function on `lambda_http` does.

use lambda_http::{Body, Error, Request, Response, run, service_fn};
use serde::de::IgnoredAny;
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    // `Value` refuses at once a value that is nested more than 128 levels deep; skipping values has no such limit.
    #[expect(clippy::disallowed_methods, reason = "this is no function of the service")]
    let skips = std::env::var_os("SKIPS").is_some();
    run(service_fn(async |request: Request| answer(&request, skips))).await
}

fn answer(request: &Request, skips: bool) -> Result<Response<Body>, Error> {
    let body = request.body().as_ref();
    // The body only has to be read; its content makes no difference.
    let read = body.is_empty()
        || if skips {
            serde_json::from_slice::<IgnoredAny>(body).is_ok()
        } else {
            serde_json::from_slice::<Value>(body).is_ok()
        };
    Ok(Response::builder().status(200).body(if read { "{}" } else { "{ }" }.into())?)
}
