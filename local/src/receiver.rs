//! A customer's server, which can fail in many ways and remembers the requests that it received.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::stream;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::Trouble;

/// A piece of a huge body, and the number of pieces.
const PIECE: Bytes = Bytes::from_static(&[b' '; 64 * 1024]);
const PIECES: usize = 4096;

/// How a path answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
    /// It answers at once, with this status.
    Answer(u16),
    /// It answers with this status, after a while.
    Slow(Duration, u16),
    /// It answers with this status and `Retry-After`, in seconds.
    RetryAfter(u16, u64),
    /// It answers with 302, to this address.
    Redirect(String),
    /// It closes the connection without an answer.
    DropConnection,
    /// It never answers; the connection stays open.
    Never,
    /// It answers with 200 and a body that never ends: a byte each tenth of a second.
    Trickle,
    /// It answers with 200, and a body of 256 MiB.
    HugeBody,
    /// It answers with 503 for a number of requests, then with another status.
    Recovering {
        /// The number of failures.
        failures: usize,
        /// The status after that.
        then: u16,
    },
    /// It answers with 200, once so many requests have come in this behaviour: the first answer waits until all of them
    /// have arrived.
    Together(usize),
    /// These behaviours one after another; then always the last one.
    Sequence(Vec<Behaviour>),
}

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Upper case.
    pub method: String,
    /// Percent-encoded, without the query.
    pub path: String,
    /// Without the question mark, percent-encoded.
    pub query: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The bytes as received.
    pub body: Vec<u8>,
    /// When it was received completely.
    pub at: Instant,
    /// The status of the answer; `None` before the answer, or if the sender closed the connection.
    pub answered: Option<u16>,
}

impl Received {
    /// Whether it was answered with a 2xx.
    pub fn succeeded(&self) -> bool {
        self.answered.is_some_and(|status| (200..300).contains(&status))
    }
}

/// The server. It ends when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    /// Its address.
    pub url: String,
    memory: Arc<Memory>,
    server: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Memory {
    received: Mutex<Vec<Received>>,
    behaviours: Mutex<HashMap<String, Behaving>>,
    /// The number of requests to each path.
    counts: Mutex<HashMap<String, usize>>,
    /// The number of requests. It wakes the tasks that wait for more.
    count: watch::Sender<usize>,
}

#[derive(Debug)]
struct Behaving {
    behaviour: Behaviour,
    /// The number of requests since this behaviour was set.
    requests: usize,
}

impl Receiver {
    /// Starts on a free port of loopback. Each path answers 200 until its behaviour is set.
    ///
    /// # Errors
    /// [`Trouble`] where there is no port.
    pub async fn start() -> Result<Self, Trouble> {
        let trouble = |error: std::io::Error| Trouble(format!("a receiver: {error}"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(trouble)?;
        let url = format!("http://{}", listener.local_addr().map_err(trouble)?);
        let memory = Arc::new(Memory::default());
        let router = Router::new().fallback(receive).with_state(Arc::clone(&memory));
        let server = tokio::spawn(async move {
            // An error that ends it early also ends the process.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { url, memory, server })
    }

    /// Sets the behaviour of `path`.
    pub fn behave(&self, path: &str, behaviour: Behaviour) {
        lock(&self.memory.behaviours).insert(path.to_owned(), Behaving { behaviour, requests: 0 });
    }

    /// The requests to `path`, in order.
    pub fn received(&self, path: &str) -> Vec<Received> {
        lock(&self.memory.received).iter().filter(|received| received.path == path).cloned().collect()
    }

    /// The number of requests to `path`, including forgotten ones.
    pub fn count(&self, path: &str) -> usize {
        lock(&self.memory.counts).get(path).copied().unwrap_or_default()
    }

    /// What `read` makes of the requests, in order. Unlike [`Self::all`], it copies none of them.
    pub fn each<T>(&self, read: impl FnMut(&Received) -> Option<T>) -> Vec<T> {
        lock(&self.memory.received).iter().filter_map(read).collect()
    }

    /// All requests, in order.
    pub fn all(&self) -> Vec<Received> {
        lock(&self.memory.received).clone()
    }

    /// Forgets all requests.
    pub fn forget(&self) {
        lock(&self.memory.received).clear();
    }

    /// Waits until `count` requests have come to `path`, and returns them.
    ///
    /// # Errors
    /// [`Trouble`] where fewer come within `patience`.
    pub async fn wait_for(&self, path: &str, count: usize, patience: Duration) -> Result<Vec<Received>, Trouble> {
        let mut news = self.memory.count.subscribe();
        let enough = async {
            while self.received(path).len() < count && news.changed().await.is_ok() {}
            self.received(path)
        };
        timeout(patience, enough).await.map_err(|_| {
            Trouble(format!("{count} requests were to come to {path}, and {} came", self.received(path).len()))
        })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Memory {
    /// Remembers a request, and returns its index and the behaviour for it.
    fn remember(&self, received: Received) -> (usize, Behaviour) {
        let behaviour = lock(&self.behaviours).get_mut(&received.path).map_or(Behaviour::Answer(200), |behaving| {
            behaving.requests += 1;
            behaving.behaviour.at(behaving.requests - 1)
        });
        *lock(&self.counts).entry(received.path.clone()).or_default() += 1;
        let mut all = lock(&self.received);
        all.push(received);
        (all.len() - 1, behaviour)
    }

    /// Waits until `wanted` requests have come to `path` in its current behaviour.
    async fn gather(&self, path: &str, wanted: usize) {
        let mut news = self.count.subscribe();
        let come = || lock(&self.behaviours).get(path).map_or(wanted, |behaving| behaving.requests);
        while come() < wanted && news.changed().await.is_ok() {}
    }

    /// Records the answer to the request at `place`.
    fn answer(&self, place: usize, at: Instant, status: u16) {
        // The request may have been forgotten, and another one may have its index.
        if let Some(received) = lock(&self.received).get_mut(place).filter(|received| received.at == at) {
            received.answered = Some(status);
        }
    }
}

impl Behaviour {
    /// The behaviour for a request after `earlier` others.
    fn at(&self, earlier: usize) -> Self {
        match self {
            Self::Recovering { failures, then } => Self::Answer(if earlier < *failures { 503 } else { *then }),
            Self::Sequence(behaviours) => {
                let behaviour = behaviours.get(earlier).or(behaviours.last());
                behaviour.map_or(Self::Answer(200), |behaviour| behaviour.at(earlier))
            }
            other => other.clone(),
        }
    }
}

async fn receive(State(memory): State<Arc<Memory>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // A request with an incomplete body is ignored.
    let Ok(body) = to_bytes(body, usize::MAX).await else { drop_connection() };
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let (at, path) = (Instant::now(), parts.uri.path().to_owned());
    let (place, behaviour) = memory.remember(Received {
        method: parts.method.to_string(),
        path: path.clone(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: body.into(),
        at,
        answered: None,
    });
    memory.count.send_modify(|count| *count += 1);
    let answer = |status: u16, header: Option<(&str, String)>, body: Body| {
        memory.answer(place, at, status);
        let response = Response::builder().status(status);
        let response = header.into_iter().fold(response, |response, (name, value)| response.header(name, value));
        response.body(body).unwrap_or_default()
    };
    match behaviour {
        Behaviour::Slow(duration, status) => {
            sleep(duration).await;
            answer(status, None, Body::empty())
        }
        Behaviour::Together(wanted) => {
            memory.gather(&path, wanted).await;
            answer(200, None, Body::empty())
        }
        Behaviour::RetryAfter(status, seconds) => {
            answer(status, Some(("retry-after", seconds.to_string())), Body::empty())
        }
        Behaviour::Redirect(to) => answer(302, Some(("location", to)), Body::empty()),
        Behaviour::DropConnection => drop_connection(),
        Behaviour::Never => std::future::pending().await,
        Behaviour::Trickle => answer(200, None, trickle()),
        Behaviour::HugeBody => {
            let pieces = (0..PIECES).map(|_| Ok::<_, std::convert::Infallible>(PIECE));
            answer(200, None, Body::from_stream(stream::iter(pieces)))
        }
        Behaviour::Answer(status) => answer(status, None, Body::empty()),
        // `Behaviour::at` has replaced these.
        Behaviour::Recovering { .. } | Behaviour::Sequence(_) => answer(500, None, Body::empty()),
    }
}

fn trickle() -> Body {
    Body::from_stream(stream::unfold((), async |()| {
        sleep(Duration::from_millis(100)).await;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from_static(b".")), ()))
    }))
}

/// Ends the task of a connection, and so the connection, without a message on standard error.
fn drop_connection() -> ! {
    std::panic::resume_unwind(Box::new("the connection ends"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    /// Sends a request with the body `hello`, and reads up to `most` bytes of what comes back.
    async fn send(receiver: &Receiver, path: &str, most: u64) -> String {
        let mut stream = TcpStream::connect(receiver.url.strip_prefix("http://").unwrap()).await.unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nX-Mark: 1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A reset connection sends no more.
        let _ = stream.take(most).read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    fn status(answer: &str) -> u16 {
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[tokio::test]
    async fn a_receiver_answers_as_set_and_records_requests() {
        let receiver = Receiver::start().await.unwrap();
        assert_eq!(status(&send(&receiver, "/hook?a=1", 1000).await), 200);
        let came = receiver.received("/hook");
        assert_eq!((came.len(), &came[0].body[..], &came[0].query[..]), (1, &b"hello"[..], "a=1"));
        assert_eq!((&came[0].method[..], &came[0].headers["x-mark"][..]), ("POST", "1"));
        assert!(came[0].succeeded());
        receiver.behave("/hook", Behaviour::Answer(410));
        assert_eq!(status(&send(&receiver, "/hook", 1000).await), 410);
        assert!(!receiver.received("/hook")[1].succeeded());
        receiver.behave("/hook", Behaviour::Slow(Duration::from_millis(1), 202));
        assert_eq!(status(&send(&receiver, "/hook", 1000).await), 202);
        receiver.behave("/hook", Behaviour::RetryAfter(429, 7));
        let answer = send(&receiver, "/hook", 1000).await;
        assert!(status(&answer) == 429 && answer.contains("retry-after: 7\r\n"), "{answer}");
        receiver.behave("/hook", Behaviour::Redirect("http://127.0.0.1:1/".into()));
        let answer = send(&receiver, "/hook", 1000).await;
        assert!(status(&answer) == 302 && answer.contains("location: http://127.0.0.1:1/\r\n"), "{answer}");
        assert_eq!((receiver.all().len(), receiver.count("/hook")), (5, 5));
        receiver.forget();
        assert_eq!(receiver.all(), []);
    }

    #[tokio::test]
    async fn a_receiver_changes_its_answers_over_time() {
        let receiver = Receiver::start().await.unwrap();
        receiver.behave("/a", Behaviour::Recovering { failures: 2, then: 204 });
        receiver.behave("/b", Behaviour::Sequence(vec![Behaviour::Answer(500), Behaviour::Answer(201)]));
        for (path, statuses) in [("/a", [503, 503, 204, 204]), ("/b", [500, 201, 201, 201])] {
            for wanted in statuses {
                assert_eq!(status(&send(&receiver, path, 1000).await), wanted, "{path}");
            }
        }
    }

    #[tokio::test]
    async fn a_receiver_fails_in_every_way() {
        let receiver = Receiver::start().await.unwrap();
        receiver.behave("/drop", Behaviour::DropConnection);
        assert_eq!(send(&receiver, "/drop", 1000).await, "");
        assert_eq!(receiver.received("/drop")[0].answered, None);
        receiver.behave("/trickle", Behaviour::Trickle);
        let trickled = send(&receiver, "/trickle", 120).await;
        assert!(trickled.ends_with("1\r\n.\r\n") || trickled.contains("\r\n.\r\n1"), "{trickled}");
        receiver.behave("/huge", Behaviour::HugeBody);
        assert_eq!(send(&receiver, "/huge", 1_000_000).await.len(), 1_000_000);
        receiver.behave("/never", Behaviour::Never);
        let waiting = async { timeout(Duration::from_mins(5), send(&receiver, "/never", 1000)).await };
        let came = async { receiver.wait_for("/never", 1, Duration::from_mins(1)).await };
        tokio::select! {
            _ = waiting => panic!("it answered"),
            came = came => assert_eq!(came.unwrap()[0].answered, None),
        }
        let trouble = receiver.wait_for("/never", 2, Duration::from_millis(1)).await.unwrap_err();
        assert_eq!(trouble.to_string(), "2 requests were to come to /never, and 1 came");
    }
}
