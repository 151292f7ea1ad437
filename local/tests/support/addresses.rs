//! The addresses of endpoints, which webhooks and connectors have: who resolves their names, and which of them are refused.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use local::{Settings, Stack};
use shared::network::address::Reach;
use shared::network::{Lookup, Network};

use crate::support::fixture::settings;

/// Knows three names.
#[derive(Debug)]
struct Names;

impl Lookup for Names {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let addresses: &[&str] = match host {
            "public.example" => &["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
            "private.example" => &["10.0.0.1"],
            "mixed.example" => &["93.184.215.14", "127.0.0.1"],
            _ => return Box::pin(ready(Err(io::Error::other("no such name")))),
        };
        Box::pin(ready(Ok(addresses.iter().map(|address| address.parse().unwrap()).collect())))
    }
}

/// A stack from which events go as far as `reach` says.
pub async fn reaching(reach: Reach) -> Stack {
    let network = Network::new(reach, Arc::new(Names), Duration::from_secs(1));
    Stack::start(Settings { network, ..settings() }).await.unwrap()
}

/// Addresses that are refused wherever events go as they do when deployed, and the words for it.
pub fn refused() -> Vec<(String, &'static str, &'static str)> {
    const TEXT: &str = "Input should be a valid URL, without white space, control characters and backslashes";
    const RELATIVE: &str = "Input should be a valid URL, relative URL without a base";
    const SCHEME: (&str, &str) = ("url_scheme", "URL scheme should be 'https'");
    const USER: (&str, &str) = ("value_error", "URL should have no user name and no password");
    const NAME: (&str, &str) = ("value_error", "URL should have a host that can be resolved");
    const PRIVATE: (&str, &str) = ("value_error", "URL should lead to a public address");
    let long = format!("https://93.184.215.14/{}", "x".repeat(2048));
    [
        (long.as_str(), ("url_too_long", "URL should have at most 2048 characters")),
        ("https://93.184.215.14/a b", ("url_parsing", TEXT)),
        ("https:\\\\93.184.215.14", ("url_parsing", TEXT)),
        ("", ("url_parsing", RELATIVE)),
        ("/hooks", ("url_parsing", RELATIVE)),
        ("http://93.184.215.14/hooks", SCHEME),
        ("http://127.0.0.1/hooks", SCHEME),
        ("ftp://93.184.215.14/hooks", SCHEME),
        ("https://me@93.184.215.14/", USER),
        ("https://:secret@public.example/", USER),
        ("https://127.0.0.1/", PRIVATE),
        ("https://2130706433/", PRIVATE),
        ("https://[::1]/", PRIVATE),
        ("https://10.0.0.1/", PRIVATE),
        ("https://169.254.169.254/latest", PRIVATE),
        ("https://[::ffff:93.184.215.14]/", PRIVATE),
        ("https://private.example/", PRIVATE),
        ("https://mixed.example/", PRIVATE),
        ("https://unknown.example/", NAME),
    ]
    .map(|(address, (kind, msg))| (address.to_owned(), kind, msg))
    .into()
}
