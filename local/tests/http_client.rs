//! Calls a TLS server with its own certificate by the HTTP clients of the SDK and of events.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use local::database::own_retries;
use rustls::RootCertStore;
use shared::delivery::sender::Sender;
use shared::network::address::Reach;
use shared::network::{Network, SystemLookup};
use shared::runtime::http_client;
use shared::values::time::Clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::certificate::Certified;
use crate::support::fixture::scratch;

/// The end of an exchange with the server.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Turn {
    /// Answers 200 and keeps the connection.
    Answer,
    /// Answers 500 and keeps the connection.
    Fail,
    /// Answers 200 and closes the connection without a notice.
    AnswerAndClose,
    /// Closes the connection without an answer.
    Close,
}

/// A TLS server that ends each exchange by the next turn, and answers 200 after the last one.
struct Server {
    url: String,
    /// The authority of its certificate.
    root: RootCertStore,
    /// The same, as PEM.
    pem: String,
    connections: Arc<AtomicUsize>,
}

impl Server {
    async fn start(turns: impl IntoIterator<Item = Turn>) -> Self {
        let certified = Certified::new("localhost").unwrap();
        let pem = certified.pem();
        let mut root = RootCertStore::empty();
        root.add(certified.authority).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(certified.config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let connections = Arc::<AtomicUsize>::default();
        let (counted, turns) = (connections.clone(), Arc::new(Mutex::new(VecDeque::from_iter(turns))));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(acceptor.clone(), socket, turns.clone()));
            }
        });
        Self { url, root, pem, connections }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Serves the requests of a connection in order, and returns `None` when it ends.
async fn serve(acceptor: TlsAcceptor, socket: tokio::net::TcpStream, turns: Arc<Mutex<VecDeque<Turn>>>) -> Option<()> {
    let mut socket = acceptor.accept(socket).await.ok()?;
    loop {
        let mut request = Vec::new();
        let head = loop {
            if let Some(head) = request.windows(4).position(|window| window == b"\r\n\r\n") {
                break head + 4;
            }
            if socket.read_buf(&mut request).await.ok()? == 0 {
                return None;
            }
        };
        let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
        let length = text.split("content-length: ").nth(1)?.lines().next()?.parse::<usize>().ok()?;
        while request.len() < head + length {
            socket.read_buf(&mut request).await.ok()?;
        }
        let turn = turns.lock().unwrap().pop_front().unwrap_or(Turn::Answer);
        let status = match turn {
            Turn::Close => return None,
            Turn::Fail => "500 Internal Server Error",
            Turn::Answer | Turn::AnswerAndClose => "200 OK",
        };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
        socket.write_all(answer.as_bytes()).await.ok()?;
        socket.flush().await.ok()?;
        if turn == Turn::AnswerAndClose {
            return socket.shutdown().await.ok();
        }
    }
}

/// A client that trusts these roots.
fn client(url: &str, roots: RootCertStore, attempts: u32) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .endpoint_url(url)
        .region(Region::new("local"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .http_client(http_client::client(http_client::connector(roots)))
        .retry_config(RetryConfig::standard().with_max_attempts(attempts))
        .retry_partition(own_retries())
        .build();
    Client::from_conf(config)
}

/// Makes a call and returns its error with all causes.
async fn call(client: &Client) -> Result<(), String> {
    let result = client.list_tables().send().await;
    result.map(drop).map_err(|error| shared::values::cause::chain(&error))
}

#[tokio::test]
async fn a_server_with_an_untrusted_certificate_or_name_is_refused() {
    let server = Server::start([]).await;
    for roots in [http_client::amazon_roots().unwrap(), RootCertStore::empty()] {
        let error = call(&client(&server.url, roots, 1)).await.unwrap_err();
        assert!(error.contains("UnknownIssuer"), "{error}");
    }
    // The certificate is for another name.
    let address = server.url.replace("localhost", "127.0.0.1");
    let error = call(&client(&address, server.root.clone(), 1)).await.unwrap_err();
    assert!(error.contains("not valid for name"), "{error}");
}

#[tokio::test]
async fn calls_share_a_connection_and_are_retried_over_another() {
    for (turns, connections) in [
        (vec![], 1),
        (vec![Turn::Close], 2),
        (vec![Turn::Answer, Turn::Close], 2),
        (vec![Turn::Close, Turn::Close], 3),
        // After a 500, the client opens another connection.
        (vec![Turn::Fail], 2),
        // The server closes an idle connection.
        (vec![Turn::AnswerAndClose], 2),
    ] {
        let server = Server::start(turns.clone()).await;
        let client = client(&server.url, server.root.clone(), 3);
        for _ in 0..5 {
            call(&client).await.unwrap_or_else(|error| panic!("{turns:?}: {error}"));
        }
        assert_eq!(server.connections(), connections, "{turns:?}");
    }
}

#[test]
fn the_roots_of_amazon_are_publicly_trusted() {
    let roots = http_client::amazon_roots().unwrap().roots;
    assert_eq!(roots.len(), 5);
    for root in &roots {
        assert!(webpki_roots::TLS_SERVER_ROOTS.contains(root), "{root:?}");
    }
}

#[tokio::test]
async fn events_reach_a_receiver_with_the_operator_s_authority() {
    let server = Server::start([]).await;
    let [file, empty, missing] = ["authority.pem", "empty.pem", "missing.pem"].map(scratch);
    std::fs::write(&file, &server.pem).unwrap();
    std::fs::write(&empty, "").unwrap();
    let post = async |file: Option<PathBuf>| {
        let network = Network::new(Reach::Loopback, Arc::new(SystemLookup), Duration::from_secs(20)).trusting(file);
        let sender = Sender::of(&network).unwrap();
        let attempt =
            sender.post(&server.url, Vec::new(), "{}".into(), Clock::System.now(), Duration::from_secs(20)).await;
        (attempt.status, attempt.error)
    };
    for none in [None, Some(empty), Some(missing)] {
        assert_eq!(post(none).await, (None, Some("tls")));
    }
    assert_eq!(post(Some(file)).await, (Some(200), None));
}
