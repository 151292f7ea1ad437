//! Makes one attempt to send an event to a customer's server. It is the only file of `delivery` that has an HTTP
//! client.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};

use crate::network::address::Reach;
use crate::network::client::{AttemptOutcome, Client};
use crate::network::own::OwnAddresses;
use crate::network::tls::client_config;
use crate::network::{Lookup, Network, Refused, endpoint, is_out_of_resources, resolve};
use crate::request::error::{Error, Result};
use crate::values::cause::chain;
use crate::values::time::Timestamp;

/// The time limit of connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// The bytes of an answer that are kept. Reading stops after the chunk that contains the last of them.
const ANSWER: usize = 1024;
/// The longest wait that a receiver may ask for, in seconds: the last step of the schedule.
const LONGEST_WAIT: u64 = 24 * 60 * 60;

/// Sends events.
#[derive(Debug, Clone)]
pub struct Sender(Arc<dyn Client>);

impl Sender {
    /// The sender of `network`; all clones share it.
    ///
    /// # Errors
    /// [`Error::Internal`] where TLS has no cryptography. This binary links it, so this cannot happen.
    pub fn of(network: &Network) -> Result<Self> {
        if network.client.get().is_none() {
            let client = Arc::new(Http::of(network).map_err(Error::Internal)?);
            // If another thread was faster, its client is used.
            let _ = network.client.set(client);
        }
        network.client.get().cloned().map(Self).ok_or_else(|| Error::Internal("no HTTP client".into()))
    }

    /// Sends the JSON text `body` with `headers` to `url`, once, within the time `limit`. A date in the answer's
    /// `Retry-After` is compared with `now`.
    pub async fn post(
        &self,
        url: &str,
        headers: Vec<(&'static str, String)>,
        body: String,
        now: Timestamp,
        limit: Duration,
    ) -> AttemptOutcome {
        self.0.post(url, headers, body, now, limit).await
    }
}

#[derive(Debug)]
struct Http {
    reach: Reach,
    own: OwnAddresses,
    client: reqwest::Client,
}

impl Http {
    fn of(network: &Network) -> Result<Self, String> {
        let resolver = Guard { reach: network.reach, lookup: Arc::clone(&network.lookup) };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(client_config(network.authorities.as_deref()).map_err(|error| chain(&error))?)
            .dns_resolver(resolver)
            .connect_timeout(network.attempt.min(CONNECT))
            // An idle connection may be dead after Lambda has frozen the process, and its address was not checked for
            // this attempt.
            .pool_max_idle_per_host(0)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .user_agent("assistants-webhooks/1")
            .build()
            .map_err(|error| chain(&error))?;
        Ok(Self { reach: network.reach, own: network.own.clone(), client })
    }

    /// Sends the request and fills `attempt` from the answer, up to the point where it fails.
    async fn exchange(
        &self,
        url: &str,
        headers: Vec<(&'static str, String)>,
        body: String,
        (now, limit): (Timestamp, Duration),
        attempt: &mut AttemptOutcome,
    ) -> Result<(), &'static str> {
        // A host that is an address is not passed to the resolver, so it is checked here. The endpoint may be older than
        // the rule that refuses the service's own addresses.
        let url = endpoint(self.reach, &self.own, url).map_err(word_of_refusal)?;
        let mut request = self.client.post(url).timeout(limit).header(CONTENT_TYPE, "application/json").body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let mut response = request.send().await.map_err(|error| word(&error))?;
        let status = response.status().as_u16();
        attempt.status = Some(status);
        if matches!(status, 429 | 502 | 503 | 504) {
            attempt.retry_after = retry_after(response.headers(), now);
        }
        let mut answer = Vec::with_capacity(ANSWER);
        let mut end = Ok(());
        while answer.len() < ANSWER {
            match response.chunk().await {
                Ok(Some(chunk)) => answer.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => {
                    end = Err(word(&error));
                    break;
                }
            }
        }
        attempt.answer = text(&answer);
        end
    }
}

impl Client for Http {
    fn post<'a>(
        &'a self,
        url: &'a str,
        headers: Vec<(&'static str, String)>,
        body: String,
        now: Timestamp,
        limit: Duration,
    ) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(async move {
            let started = Instant::now();
            let mut attempt = AttemptOutcome::default();
            attempt.error = self.exchange(url, headers, body, (now, limit), &mut attempt).await.err();
            attempt.milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            attempt
        })
    }
}

/// Resolves the name for a connection. The client connects only to the addresses that were checked here.
#[derive(Debug)]
struct Guard {
    reach: Reach,
    lookup: Arc<dyn Lookup>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, lookup) = (self.reach, Arc::clone(&self.lookup));
        Box::pin(async move {
            let found = resolve(reach, lookup.as_ref(), name.as_str()).await?;
            // Port 0 means the port of the URL.
            let found: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(found)
        })
    }
}

/// The word for an attempt that took longer than its limit.
pub const TIMEOUT: &str = "timeout";

/// The word for an attempt that failed because this process had no more descriptors, ports or memory. It is no sign of
/// a bad endpoint.
pub const OUT_OF_RESOURCES: &str = "out of resources";

/// Why an attempt failed, as one of a few fixed texts: the owner reads it, so it must not contain anything of the URL
/// or the network.
fn word(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        return TIMEOUT;
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return word_of_refusal(*refused);
        }
        if error.is::<rustls::Error>() {
            return "tls";
        }
        cause = match error.downcast_ref::<io::Error>() {
            Some(error) if is_out_of_resources(error) => return OUT_OF_RESOURCES,
            Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => return "connection refused",
            // `io::Error::source` skips the error that it wraps.
            Some(error) => error.get_ref().map(|inner| inner as _),
            None => error.source(),
        };
    }
    if error.is_connect() {
        "connection failed"
    } else if error.is_builder() {
        "request not valid"
    } else {
        "connection broken"
    }
}

const fn word_of_refusal(refused: Refused) -> &'static str {
    match refused {
        Refused::NotPublic | Refused::Own => "address not allowed",
        Refused::Unresolved => "name not resolved",
        Refused::OutOfResources => OUT_OF_RESOURCES,
        Refused::TooLong | Refused::Character | Refused::Malformed(_) | Refused::Scheme | Refused::UserInfo => {
            "url not allowed"
        }
    }
}

/// How long `Retry-After` asks to wait, in seconds or as a date. A date in the past means no wait.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too large for the type means a long wait.
        value.parse().unwrap_or(LONGEST_WAIT)
    } else {
        let date = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
        date.as_secs().saturating_sub(u64::try_from(now.unix_seconds()).ok()?)
    };
    Some(Duration::from_secs(seconds.min(LONGEST_WAIT)))
}

/// The text of `bytes`, which are the beginning of a body, without a character that was cut at the end.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text[..text.floor_char_boundary(ANSWER)].trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::io::{Read as _, Write as _};
    use std::net::{IpAddr, TcpListener, TcpStream};
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{self, JoinHandle};

    const BODY: &str = r#"{"type":"conversation.closed"}"#;
    const PUBLIC: &str = "93.184.215.14";
    const PLENTY: Duration = Duration::from_secs(10);
    const LITTLE: Duration = Duration::from_secs(1);

    /// Answers each look-up with the next answer, and every later one with the last.
    #[derive(Debug)]
    struct Scripted {
        answers: &'static [&'static [&'static str]],
        asked: AtomicUsize,
    }

    impl Lookup for Scripted {
        fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let number = self.asked.fetch_add(1, Ordering::SeqCst).min(self.answers.len() - 1);
            let found = self.answers[number].iter().map(|address| address.parse().unwrap()).collect();
            Box::pin(async { Ok(found) })
        }
    }

    fn scripted(answers: &'static [&'static [&'static str]]) -> Arc<Scripted> {
        Arc::new(Scripted { answers, asked: AtomicUsize::new(0) })
    }

    fn now() -> Timestamp {
        Timestamp::from_unix_millis(784_111_777_500)
    }

    async fn post(network: &Network, url: &str) -> AttemptOutcome {
        Sender::of(network)
            .unwrap()
            .post(url, vec![("webhook-id", "msg_1".into())], BODY.into(), now(), network.attempt)
            .await
    }

    async fn post_here(port: u16, limit: Duration) -> AttemptOutcome {
        post(&Network::new(Reach::Loopback, scripted(&[&[]]), limit), &format!("http://127.0.0.1:{port}/hook?a=1"))
            .await
    }

    fn listen() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    /// A server for one request. Its thread returns the request.
    fn serve(answer: impl FnOnce(&mut TcpStream) -> io::Result<()> + Send + 'static) -> (u16, JoinHandle<String>) {
        let (listener, port) = listen();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut chunk = [0; 1024];
            while !request.ends_with(BODY.as_bytes()) {
                match stream.read(&mut chunk) {
                    Ok(read @ 1..) => request.extend_from_slice(&chunk[..read]),
                    _ => break,
                }
            }
            // The client closes the connection when it has read enough.
            let _ = answer(&mut stream);
            String::from_utf8_lossy(&request).into_owned()
        });
        (port, server)
    }

    fn say(answer: impl Into<Vec<u8>>) -> (u16, JoinHandle<String>) {
        let answer = answer.into();
        serve(move |stream| stream.write_all(&answer))
    }

    fn no_connection(listener: &TcpListener) -> bool {
        listener.set_nonblocking(true).unwrap();
        listener.accept().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    #[tokio::test]
    async fn an_event_arrives_as_it_was_given() {
        let (port, server) = say("HTTP/1.1 202 Accepted\r\nretry-after: 5\r\ncontent-length: 2\r\n\r\nok");
        let attempt = post_here(port, PLENTY).await;
        assert!(attempt.succeeded());
        let AttemptOutcome { status, error, answer, retry_after, milliseconds: _ } = attempt;
        assert_eq!((status, error, answer.as_str(), retry_after), (Some(202), None, "ok", None));
        let request = server.join().unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, BODY);
        let mut lines: Vec<_> = head.lines().collect();
        lines[1..].sort_unstable();
        let host = format!("host: 127.0.0.1:{port}");
        let wanted = [
            "POST /hook?a=1 HTTP/1.1",
            "accept: */*",
            "content-length: 30",
            "content-type: application/json",
            &host,
            "user-agent: assistants-webhooks/1",
            "webhook-id: msg_1",
        ];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn the_proxy_of_the_environment_is_not_used() {
        let (dead, port) = listen();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "delivery::sender::tests::an_event_arrives_as_it_was_given"]);
        child.env_remove("NO_PROXY").env_remove("no_proxy");
        for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            child.env(name, format!("http://127.0.0.1:{port}"));
        }
        let output = String::from_utf8(child.output().unwrap().stdout).unwrap();
        assert!(output.contains("1 passed"), "{output}");
        assert!(no_connection(&dead));
    }

    #[tokio::test]
    async fn a_redirect_is_a_failure_and_is_not_followed() {
        for status in [301, 302, 303, 307, 308] {
            let (other, there) = listen();
            let (port, _) =
                say(format!("HTTP/1.1 {status} Over There\r\nlocation: http://127.0.0.1:{there}/\r\n\r\nthere"));
            let attempt = post_here(port, PLENTY).await;
            assert!(!attempt.succeeded());
            assert_eq!((attempt.status, attempt.error, attempt.answer.as_str()), (Some(status), None, "there"));
            assert!(no_connection(&other));
        }
    }

    #[tokio::test]
    async fn each_connection_uses_the_address_that_was_checked() {
        let (listener, port) = listen();
        let url = format!("https://rebound.example.com:{port}/");

        // Public when it is checked, and this machine when it is connected to.
        let lookup = scripted(&[&[PUBLIC], &["127.0.0.1"]]);
        let network = Network::new(Reach::Public, lookup.clone(), PLENTY);
        assert!(network.check(&url, &OwnAddresses::default()).await.is_ok());
        let attempt = post(&network, &url).await;
        assert_eq!((attempt.status, attempt.error), (None, Some("address not allowed")));
        assert_eq!(lookup.asked.load(Ordering::SeqCst), 2);

        // A forbidden address at the attempt is final: there is no second look-up.
        let lookup = scripted(&[&["127.0.0.1"], &[PUBLIC]]);
        let network = Network::new(Reach::Public, lookup.clone(), PLENTY);
        assert_eq!(network.check(&url, &OwnAddresses::default()).await, Err(Refused::NotPublic));
        lookup.asked.store(0, Ordering::SeqCst);
        assert_eq!(post(&network, &url).await.error, Some("address not allowed"));
        assert_eq!(lookup.asked.load(Ordering::SeqCst), 1);

        // One forbidden address of several is enough.
        for answers in [&[&["127.0.0.1", PUBLIC] as &[_]], &[&[PUBLIC, "127.0.0.1"]], &[&[PUBLIC, "::ffff:127.0.0.1"]]]
        {
            let network = Network::new(Reach::Public, scripted(answers), PLENTY);
            assert_eq!(post(&network, &url).await.error, Some("address not allowed"));
        }
        assert!(no_connection(&listener));

        // The client connects to the address that was found: there is no second look-up.
        let (port, server) = say("HTTP/1.1 200 OK\r\n\r\n");
        let lookup = scripted(&[&["127.0.0.1"], &["10.0.0.1"]]);
        let network = Network::new(Reach::Loopback, lookup.clone(), PLENTY);
        assert!(post(&network, &format!("http://local.example.com:{port}/")).await.succeeded());
        assert_eq!(lookup.asked.load(Ordering::SeqCst), 1);
        assert!(server.join().unwrap().contains(&format!("host: local.example.com:{port}")));
    }

    #[tokio::test]
    async fn a_forbidden_url_is_refused_again_at_the_attempt() {
        let (listener, port) = listen();
        let network = Network::new(Reach::Public, scripted(&[&["127.0.0.1"]]), PLENTY);
        for (url, error) in [
            (format!("https://127.0.0.1:{port}/"), "address not allowed"),
            (format!("https://0x7f.1:{port}/"), "address not allowed"),
            (format!("https://2130706433:{port}/"), "address not allowed"),
            (format!("https://[::ffff:127.0.0.1]:{port}/"), "address not allowed"),
            (format!("https://127.0.0.1.:{port}/"), "address not allowed"),
            (format!("https://localhost:{port}/"), "address not allowed"),
            (format!("http://127.0.0.1:{port}/"), "url not allowed"),
            (format!("http://example.com:{port}/"), "url not allowed"),
            (format!("https://{PUBLIC}@127.0.0.1:{port}/"), "url not allowed"),
            ("file:///etc/passwd".to_owned(), "url not allowed"),
            ("nonsense".to_owned(), "url not allowed"),
        ] {
            assert_eq!(post(&network, &url).await.error, Some(error), "{url}");
        }
        assert!(no_connection(&listener));
    }

    #[tokio::test]
    async fn only_the_beginning_of_an_answer_is_read() {
        let head = "HTTP/1.1 500 Oh\r\ncontent-length: 1000000000\r\ncontent-encoding: gzip\r\n\r\n";
        for (body, wanted) in [
            ("x".repeat(100_000), "x".repeat(1024)),
            // The character at the edge is left out.
            (format!("x{}", "é".repeat(10_000)), format!("x{}", "é".repeat(511))),
            (format!("x{}", "𝄞".repeat(10_000)), format!("x{}", "𝄞".repeat(255))),
        ] {
            let (port, _) = say(format!("{head}{body}"));
            let attempt = post_here(port, PLENTY).await;
            assert_eq!((attempt.status, attempt.error, attempt.answer), (Some(500), None, wanted));
        }
    }

    #[test]
    fn invalid_utf_8_becomes_text_that_fits_the_limit() {
        assert_eq!(text(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(text(b"caf\xc3"), "caf");
        assert!(text(&[b'x', 0xff].repeat(512)).len() <= ANSWER);
    }

    #[tokio::test]
    async fn an_endless_answer_is_cut_by_the_time_limit() {
        let trickle = |head: &'static str| {
            serve(move |stream| {
                stream.write_all(head.as_bytes())?;
                loop {
                    stream.write_all(b"x")?;
                    thread::sleep(Duration::from_millis(20));
                }
            })
        };
        let heads =
            [("HTTP/1.1 200 OK\r\n\r\n", Some(200)), ("HTTP/1.1 200 OK\r\nx-slow: ", None), ("HTTP/1.1 200 O", None)];
        join_all(heads.map(async |(head, status)| {
            let (port, _) = trickle(head);
            let attempt = post_here(port, LITTLE).await;
            assert_eq!((attempt.status, attempt.error), (status, Some("timeout")), "{head}");
            assert_eq!(attempt.succeeded(), status.is_some());
        }))
        .await;
        // A server that never answers has the same result.
        let (_silent, port) = listen();
        assert_eq!(post_here(port, LITTLE).await.error, Some("timeout"));
    }

    #[tokio::test]
    async fn an_endless_look_up_is_cut_by_the_time_limit() {
        #[derive(Debug)]
        struct Never;
        impl Lookup for Never {
            fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
                Box::pin(std::future::pending())
            }
        }
        let network = Network::new(Reach::Public, Arc::new(Never), LITTLE);
        assert_eq!(post(&network, "https://example.com/").await.error, Some("timeout"));
    }

    #[tokio::test]
    async fn every_failure_has_its_text() {
        // No test is given the port 1.
        assert_eq!(post_here(1, PLENTY).await.error, Some("connection refused"));
        for answer in ["", "HTTP/1.1 2", "SSH-2.0-OpenSSH_9.9\r\n"] {
            let (port, _) = say(answer);
            assert_eq!(post_here(port, PLENTY).await.error, Some("connection broken"), "{answer}");
        }
        let (port, _) = say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf");
        let attempt = post_here(port, PLENTY).await;
        let wanted = (Some(200), Some("connection broken"), "half");
        assert_eq!((attempt.status, attempt.error, attempt.answer.as_str()), wanted);

        let network = Network::new(Reach::Loopback, scripted(&[&[]]), PLENTY);
        assert_eq!(post(&network, "https://example.com/").await.error, Some("name not resolved"));
        let (listener, port) = listen();
        let plain = thread::spawn(move || listener.accept().unwrap().0.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
        assert_eq!(post(&network, &format!("https://127.0.0.1:{port}/")).await.error, Some("tls"));
        plain.join().unwrap().unwrap();

        let forged = vec![("webhook-id", "a\r\nhost: b".to_owned())];
        let attempt =
            Sender::of(&network).unwrap().post("http://127.0.0.1/", forged, BODY.into(), now(), network.attempt).await;
        assert_eq!(attempt.error, Some("request not valid"));
    }

    #[tokio::test]
    async fn retry_after_counts_for_429_502_503_and_504() {
        for (status, wanted) in
            [(429, Some(7)), (502, Some(7)), (503, Some(7)), (504, Some(7)), (500, None), (200, None)]
        {
            let (port, _) = say(format!("HTTP/1.1 {status} X\r\nretry-after: 7\r\n\r\n"));
            assert_eq!(post_here(port, PLENTY).await.retry_after, wanted.map(Duration::from_secs), "{status}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_at_most_a_day() {
        for (value, wanted) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 120 ", Some(120)),
            ("86400", Some(86400)),
            ("86401", Some(86400)),
            ("99999999999999999999999", Some(86400)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sun, 06 Nov 1994 00:00:00 GMT", Some(0)),
            ("Fri, 01 Jan 2100 00:00:00 GMT", Some(86400)),
            ("", None),
            ("-1", None),
            ("+5", None),
            ("1.5", None),
            ("soon", None),
            ("1994-11-06T08:50:37Z", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now()), wanted.map(Duration::from_secs), "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now()), None);
    }

    #[test]
    fn one_network_has_one_client() {
        let network = Network::public();
        let [one, other] = [&network, &network.clone()].map(|network| Sender::of(network).unwrap());
        assert!(Arc::ptr_eq(&one.0, &other.0));
    }
}
