//! Requests to customers' servers: checks the URL of an endpoint and looks its host up, at registration and before each
//! attempt. It links no HTTP client, so every function may use it.
//!
//! - [`address`] is the table of networks to which nothing is ever sent. [`own`] knows the service's own addresses.
//! - [`client`] is the interface to the HTTP client. [`tls`] has the trusted certificate authorities.
//! - [`lanes`] remembers whose slow endpoints have made the stream wait.

pub mod address;
pub mod client;
pub mod lanes;
pub mod own;
pub mod tls;

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use url::{Host, Url};

use crate::network::address::Reach;
use crate::network::client::Client;
use crate::network::own::OwnAddresses;

/// The longest URL, in characters: one that browsers, proxies and logs accept.
pub const LONGEST_URL: usize = 2048;
/// The time limit of a look-up.
const LOOKUP: Duration = Duration::from_secs(3);
/// The time limit of an attempt of the tick: enough for a slow receiver. The stream has a part of it.
const ATTEMPT: Duration = Duration::from_secs(15);

/// Finds the addresses of a host.
pub trait Lookup: Send + Sync + Debug {
    /// The addresses of the name `host`.
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The machine's own resolver.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host((host, 0))).await??;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The network through which events are sent. Its clones share the HTTP client, which is created at its first use.
#[derive(Debug, Clone)]
pub struct Network {
    /// The addresses to which events may be sent.
    pub reach: Reach,
    /// How names are resolved.
    pub lookup: Arc<dyn Lookup>,
    /// The time limit of an attempt of the tick.
    pub attempt: Duration,
    /// The certificates of private authorities for receivers, in addition to the public authorities.
    pub authorities: Option<PathBuf>,
    /// The addresses of this API in the configuration.
    pub own: OwnAddresses,
    /// The HTTP client, behind a trait: only a function that makes a [`Sender`](crate::delivery::sender::Sender) links
    /// one.
    pub(super) client: Arc<OnceLock<Arc<dyn Client>>>,
}

/// Why the URL of an endpoint is refused. No variant contains the addresses of a name: a caller could explore private
/// networks with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is too long.
    #[error("URL should have at most {LONGEST_URL} characters")]
    TooLong,
    /// It has a character that different parsers read in different ways.
    #[error("Input should be a valid URL, without white space, control characters and backslashes")]
    Character,
    /// It is no URL.
    #[error("Input should be a valid URL, {0}")]
    Malformed(url::ParseError),
    /// Its scheme is not allowed.
    #[error("URL scheme should be 'https'")]
    Scheme,
    /// It contains credentials, which would be stored and shown.
    #[error("URL should have no user name and no password")]
    UserInfo,
    /// Its host cannot be resolved.
    #[error("URL should have a host that can be resolved")]
    Unresolved,
    /// This process had no descriptors left for the look-up of its host.
    #[error("URL could not be checked now")]
    OutOfResources,
    /// Its host, or one of the addresses of its host, is not on the public internet.
    #[error("URL should lead to a public address")]
    NotPublic,
    /// It leads to the service itself.
    #[error("URL should lead to a server of yours, and not to this API")]
    Own,
}

impl Refused {
    /// The code for programs.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::TooLong => "url_too_long",
            Self::Character | Self::Malformed(_) => "url_parsing",
            Self::Scheme => "url_scheme",
            Self::UserInfo | Self::Unresolved | Self::OutOfResources | Self::NotPublic | Self::Own => "value_error",
        }
    }
}

impl Network {
    /// The public internet.
    pub fn public() -> Self {
        Self::new(Reach::Public, Arc::new(SystemLookup), ATTEMPT)
    }

    /// A network with the addresses of `reach`, names resolved by `lookup`, and the time limit `attempt`.
    pub fn new(reach: Reach, lookup: Arc<dyn Lookup>, attempt: Duration) -> Self {
        let own = OwnAddresses::default();
        Self { reach, lookup, attempt, authorities: None, own, client: Arc::default() }
    }

    /// This network, with the private authorities of `file`.
    #[must_use]
    pub fn trusting(self, file: Option<PathBuf>) -> Self {
        Self { authorities: file, ..self }
    }

    /// This network of the service with the address `api_base_url`, if that is known.
    #[must_use]
    pub fn of_service(self, api_base_url: Option<&str>) -> Self {
        let base_urls = api_base_url.map(str::to_owned).into_iter().collect();
        Self { own: OwnAddresses { base_urls, api_id: None }, ..self }
    }

    /// Checks the URL of an endpoint, and returns it: its host resolves to allowed addresses, and it leads to no address of
    /// this API, neither to one in the configuration nor to one in `own`.
    ///
    /// # Errors
    /// [`Refused`] has the reason why events may not be sent there.
    pub async fn check(&self, text: &str, own: &OwnAddresses) -> Result<Url, Refused> {
        let url = endpoint(self.reach, &self.own, text)?;
        if own.include(self.reach, &url) {
            return Err(Refused::Own);
        }
        if let Some(Host::Domain(name)) = url.host() {
            resolve(self.reach, self.lookup.as_ref(), name).await?;
        }
        Ok(url)
    }
}

/// The URL of an endpoint, checked without a look-up of its host.
pub(super) fn endpoint(reach: Reach, own: &OwnAddresses, text: &str) -> Result<Url, Refused> {
    if text.chars().count() > LONGEST_URL {
        return Err(Refused::TooLong);
    }
    if text.contains(|character: char| character.is_whitespace() || character.is_control() || character == '\\') {
        return Err(Refused::Character);
    }
    let url = Url::parse(text).map_err(Refused::Malformed)?;
    if !reach.allows_scheme(url.scheme()) {
        return Err(Refused::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::UserInfo);
    }
    // The parser has normalised the host: `0x7f.1` is an address here, and for the client that connects as well.
    let address = match url.host() {
        Some(Host::Domain(_)) => None,
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        None => return Err(Refused::Malformed(url::ParseError::EmptyHost)),
    };
    if address.is_some_and(|address| !reach.allows(address)) {
        return Err(Refused::NotPublic);
    }
    if own.include(reach, &url) { Err(Refused::Own) } else { Ok(url) }
}

/// Whether the machine lacks a resource of its own: `ENFILE`, `EMFILE`, `ENOMEM`, `EADDRNOTAVAIL`, `ENOBUFS` of Linux.
pub(super) fn is_out_of_resources(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| [23, 24, 12, 99, 105].contains(&code))
}

/// The addresses of the host `name`, if all of them are allowed. One forbidden address means an attack or a wrong
/// configuration.
pub(super) async fn resolve(reach: Reach, lookup: &dyn Lookup, name: &str) -> Result<Vec<IpAddr>, Refused> {
    let refused = |error| if is_out_of_resources(&error) { Refused::OutOfResources } else { Refused::Unresolved };
    let found = lookup.lookup(name).await.map_err(refused)?;
    if found.is_empty() {
        return Err(Refused::Unresolved);
    }
    if found.iter().all(|address| reach.allows(*address)) { Ok(found) } else { Err(Refused::NotPublic) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look-up with fixed addresses for the names in these tests.
    #[derive(Debug)]
    struct Names;

    impl Lookup for Names {
        fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let found = match host.trim_end_matches('.') {
                "example.com" | "xn--bcher-kva.example" | "api.example.com" => "93.184.215.14 2606:2800:21f:cb07::1",
                "localhost" | "sub.localhost" | "localtest.me" => "127.0.0.1 ::1",
                "private.example.com" => "10.1.2.3",
                "metadata.example.com" | "metadata.google.internal" => "169.254.169.254",
                "first.example.com" => "192.168.0.1 93.184.215.14",
                "last.example.com" => "93.184.215.14 2606:2800:21f:cb07::1 fd00::1",
                "mapped.example.com" => "::ffff:93.184.215.14",
                "nat64.example.com" => "64:ff9b::7f00:1",
                "zero.example.com" => "0.0.0.0",
                "empty.example.com" => "",
                _ => return Box::pin(async { Err(io::ErrorKind::NotFound.into()) }),
            };
            let found = found.split_whitespace().map(|address| address.parse().unwrap()).collect();
            Box::pin(async { Ok(found) })
        }
    }

    fn network(reach: Reach) -> Network {
        Network::new(reach, Arc::new(Names), ATTEMPT)
    }

    async fn refused(url: &str) -> Option<Refused> {
        network(Reach::Public).check(url, &OwnAddresses::default()).await.err()
    }

    #[tokio::test]
    async fn every_address_outside_the_public_internet_is_refused() {
        for host in NOT_PUBLIC {
            assert_eq!(refused(&format!("https://{host}/hook")).await, Some(Refused::NotPublic), "{host}");
        }
    }

    /// Addresses outside the public internet, in every form.
    const NOT_PUBLIC: &[&str] = &[
        // As it is written.
        "127.0.0.1",
        "127.0.0.1:9001",
        "127.255.255.254",
        "127.0.0.1.",
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "169.254.169.254",
        "169.254.170.2",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        // As the C library reads it: short, decimal, octal, hexadecimal.
        "127.1",
        "127.0.1",
        "0",
        "0.",
        "2130706433",
        "2852039166",
        "0x7f000001",
        "0X7F000001",
        "0x7f.1",
        "0x7f.0x0.0x0.0x1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "0177.0.0.01",
        "00000177.1",
        "017700000001",
        "0xa9fea9fe",
        "0xa9.0xfe.0xa9.0xfe",
        "0251.0376.0251.0376",
        "0300.0250.1",
        "3232235521",
        // As Unicode and percent signs disguise it.
        "%31%32%37.0.0.1",
        "127%2e0%2E0%2e1",
        "%30x7f.1",
        "１２７.０.０.１",
        "127。0。0。1",
        "①②⑦.⓪.⓪.①",
        "127．0．0．1",
        "１６９.254.169.254",
        "0\u{ad}.0.0.0",
        // IPv6.
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[0000:0000:0000:0000:0000:0000:0000:0001]",
        "[::1]:443",
        "[::127.0.0.1]",
        "[::7f00:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::FFFF:7F00:0001]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[::ffff:169.254.169.254]",
        "[::ffff:1.1.1.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::10.0.0.1]",
        "[100::1]",
        "[100:0:0:1::1]",
        "[2001::1]",
        "[2001:0:7f00:1::]",
        "[2001:1::1]",
        "[2001:10::1]",
        "[2001:20::1]",
        "[2001:db8::1]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::1]",
        "[2002:101:101::1]",
        "[3fff::1]",
        "[3fff:fff:ffff::1]",
        "[4000::1]",
        "[5f00::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fdff:ffff::1]",
        "[fe80::1]",
        "[fe80::a9fe:a9fe]",
        "[fec0::1]",
        "[ff02::1]",
        "[ff0e::1]",
    ];

    #[tokio::test]
    async fn every_name_outside_the_public_internet_is_refused() {
        for (host, wanted) in [
            ("localhost", Refused::NotPublic),
            ("LOCALHOST", Refused::NotPublic),
            ("localhost.", Refused::NotPublic),
            ("localhost:443", Refused::NotPublic),
            ("sub.localhost", Refused::NotPublic),
            ("ｌｏｃａｌｈｏｓｔ", Refused::NotPublic),
            ("loc%61lhost", Refused::NotPublic),
            ("localtest.me", Refused::NotPublic),
            ("private.example.com", Refused::NotPublic),
            ("metadata.example.com", Refused::NotPublic),
            ("metadata.google.internal", Refused::NotPublic),
            ("metadata.google.internal.", Refused::NotPublic),
            ("first.example.com", Refused::NotPublic),
            ("last.example.com", Refused::NotPublic),
            ("mapped.example.com", Refused::NotPublic),
            ("nat64.example.com", Refused::NotPublic),
            ("zero.example.com", Refused::NotPublic),
            ("empty.example.com", Refused::Unresolved),
            ("nobody.example.com", Refused::Unresolved),
        ] {
            assert_eq!(refused(&format!("https://{host}/")).await, Some(wanted), "{host}");
        }
    }

    #[tokio::test]
    async fn disguised_forms_of_an_address_are_refused() {
        let long = format!("https://example.com/{}", "x".repeat(LONGEST_URL));
        for (url, wanted) in [
            ("http://example.com/", Refused::Scheme),
            ("HTTP://example.com/", Refused::Scheme),
            ("http://127.0.0.1/", Refused::Scheme),
            ("ftp://example.com/", Refused::Scheme),
            ("file:///etc/passwd", Refused::Scheme),
            ("file://example.com/etc/passwd", Refused::Scheme),
            ("unix:/run/docker.sock", Refused::Scheme),
            ("http+unix://%2Frun%2Fdocker.sock/", Refused::Scheme),
            ("gopher://example.com:70/_", Refused::Scheme),
            ("wss://example.com/", Refused::Scheme),
            ("data:text/plain,x", Refused::Scheme),
            ("javascript:alert(1)", Refused::Scheme),
            ("jar:https://example.com!/", Refused::Scheme),
            ("httpsx://example.com/", Refused::Scheme),
            ("example.com:443/", Refused::Scheme),
            ("https://user@example.com/", Refused::UserInfo),
            ("https://user:password@example.com/", Refused::UserInfo),
            ("https://:password@example.com/", Refused::UserInfo),
            ("https://1.1.1.1@127.0.0.1/", Refused::UserInfo),
            ("https://example.com@127.0.0.1/", Refused::UserInfo),
            ("https://example.com:443@localhost/", Refused::UserInfo),
            ("https://example.com%40@127.0.0.1/", Refused::UserInfo),
            ("https://a@b@example.com/", Refused::UserInfo),
            ("https:user@example.com", Refused::UserInfo),
            ("https://@127.0.0.1/", Refused::NotPublic),
            ("https:127.0.0.1", Refused::NotPublic),
            ("https:///127.0.0.1/", Refused::NotPublic),
            ("https://127.0.0.1#@example.com/", Refused::NotPublic),
            ("https://127.0.0.1?@example.com/", Refused::NotPublic),
            ("https://127.0.0.1:443?x=https://example.com", Refused::NotPublic),
            ("https://example.com\\@127.0.0.1/", Refused::Character),
            ("https:\\\\example.com\\", Refused::Character),
            (" https://example.com/", Refused::Character),
            ("https://example.com/\n", Refused::Character),
            ("https://exam\tple.com/", Refused::Character),
            ("https://127.0.\n0.1/", Refused::Character),
            ("ht\ntps://example.com/", Refused::Character),
            ("https://example.com/\r\nhost: localhost", Refused::Character),
            ("https://example.com/\0", Refused::Character),
            ("https://example.com/a b", Refused::Character),
            ("https://example.com/\u{a0}", Refused::Character),
            (&long, Refused::TooLong),
        ] {
            assert_eq!(refused(url).await, Some(wanted), "{url}");
        }
    }

    #[tokio::test]
    async fn an_invalid_url_is_refused() {
        for url in [
            "",
            "/hook",
            "//example.com/",
            "example.com",
            "https://",
            "https://:443/",
            "https://user@/",
            "https://example.com:99999/",
            "https://example.com:80:443/",
            "https://[::1/",
            "https://[fe80::1%25eth0]/",
            "https://[fe80::1%eth0]/",
            "https://[::ffff:0x7f.1]/",
            "https://::1/",
            "https://256.0.0.1/",
            "https://127.0.0.0.1/",
            "https://4294967296/",
            "https://127.0.0.08/",
            "https://example.com%00.localhost/",
            "https://example.com%2f@127.0.0.1%2f/",
            "https://exa<mple.com/",
        ] {
            assert!(matches!(refused(url).await, Some(Refused::Malformed(_))), "{url}");
        }
    }

    #[tokio::test]
    async fn the_public_internet_is_allowed() {
        let longest = format!("https://example.com/{}", "x".repeat(LONGEST_URL - 20));
        for (url, wanted) in [
            ("https://example.com", "https://example.com/"),
            ("HTTPS://EXAMPLE.com/Hook", "https://example.com/Hook"),
            ("https://example.com./hook", "https://example.com./hook"),
            ("https://api.example.com:8443/hook?a=1&b=%20#c", "https://api.example.com:8443/hook?a=1&b=%20#c"),
            ("https://example.com/@user:x/{id}", "https://example.com/@user:x/%7Bid%7D"),
            ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
            ("https://1.1.1.1/hook", "https://1.1.1.1/hook"),
            ("https://0x1.1.1.1/", "https://1.1.1.1/"),
            ("https://[2606:4700:4700::1111]:443/", "https://[2606:4700:4700::1111]/"),
            (longest.as_str(), longest.as_str()),
        ] {
            assert_eq!(
                network(Reach::Public).check(url, &OwnAddresses::default()).await.as_ref().map(Url::as_str),
                Ok(wanted)
            );
        }
    }

    #[tokio::test]
    async fn the_local_stack_may_reach_this_machine_without_tls() {
        for (url, wanted) in [
            ("http://127.0.0.1:9001/", None),
            ("http://[::1]:9001/", None),
            ("http://localhost:9001/", None),
            ("https://localhost/", None),
            ("https://example.com/", None),
            ("http://10.0.0.1/", Some(Refused::NotPublic)),
            ("http://[::ffff:127.0.0.1]/", Some(Refused::NotPublic)),
            ("http://metadata.example.com/", Some(Refused::NotPublic)),
            ("http://user@localhost/", Some(Refused::UserInfo)),
            ("http://nobody.example.com/", Some(Refused::Unresolved)),
            ("ftp://localhost/", Some(Refused::Scheme)),
        ] {
            assert_eq!(network(Reach::Loopback).check(url, &OwnAddresses::default()).await.err(), wanted, "{url}");
        }
    }

    #[tokio::test]
    async fn the_resolver_finds_this_machine() {
        let found = SystemLookup.lookup("localhost").await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
        assert_eq!(
            Network::public().check("https://localhost/", &OwnAddresses::default()).await,
            Err(Refused::NotPublic)
        );
    }

    #[test]
    fn each_refusal_has_a_code_and_a_message() {
        for (refused, kind, sentence) in [
            (Refused::TooLong, "url_too_long", "URL should have at most 2048 characters"),
            (Refused::Malformed(url::ParseError::EmptyHost), "url_parsing", "Input should be a valid URL, empty host"),
            (Refused::Scheme, "url_scheme", "URL scheme should be 'https'"),
            (Refused::Unresolved, "value_error", "URL should have a host that can be resolved"),
            (Refused::NotPublic, "value_error", "URL should lead to a public address"),
        ] {
            assert_eq!((refused.kind(), refused.to_string().as_str()), (kind, sentence));
        }
    }
}
