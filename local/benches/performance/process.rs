//! Runs a function's process with a runtime API of the harness, in the place of Lambda.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path as UrlPath, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use local::gateway::RESPONSE_LIMIT;
use serde_json::Value;
use shared::table::meter::Cost;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use crate::Result;

/// How long any step of a process may take before the run is given up: valgrind is fifty times slower than the machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// How long a process gets until it counts as waiting.
const SETTLED: Duration = Duration::from_millis(20);

/// A program and how to start it.
#[derive(Debug, Clone)]
pub struct Program {
    command: Vec<String>,
    environment: Vec<(String, String)>,
    /// The folder for callgrind's output, if instructions are counted.
    counts: Option<PathBuf>,
}

/// A running process that has polled the runtime API for its first event.
#[derive(Debug)]
pub struct Process {
    child: Child,
    api: Api,
    counts: Option<PathBuf>,
    /// Its standard output, as far as it was not read yet.
    log: File,
    /// Its output during the last invocation.
    said: String,
    /// The number of callgrind's dumps.
    dumps: u32,
}

/// The result of one invocation.
#[derive(Debug)]
pub struct Answer {
    /// The body that was sent to the runtime API.
    pub body: String,
    /// The time from the handover of the event to the arrival of the answer.
    pub wall: Duration,
    /// The cost in the database, from the process's own log; `None` if it logs no cost.
    pub cost: Option<Cost>,
}

impl Program {
    /// `command`, with these variables and `PATH` as its only environment.
    pub fn new(command: Vec<String>, environment: Vec<(String, String)>) -> Self {
        Self { command, environment, counts: None }
    }

    /// The same for another program.
    #[must_use]
    pub fn running(mut self, binary: &Path) -> Self {
        self.command = vec![binary.display().to_string()];
        self
    }

    /// The same, started by another command, which gets the environment.
    #[must_use]
    pub fn started_by<const N: usize>(mut self, command: [&str; N]) -> Self {
        self.command = command.map(str::to_owned).into();
        self
    }

    /// The same with one more variable, or another value of it.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.retain(|(given, _)| given != name);
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// The same under callgrind: [`Process::end`] returns the number of its instructions.
    #[must_use]
    pub fn counted(mut self, scratch: &Path) -> Self {
        self.counts = Some(scratch.join(format!("callgrind.{}", uuid::Uuid::now_v7())));
        self
    }

    /// Starts the process, and waits for its first poll.
    pub async fn start(&self) -> Result<Process> {
        let mut process = self.spawn().await?;
        process.poll().await?;
        Ok(process)
    }

    /// Starts the process without waiting.
    pub async fn spawn(&self) -> Result<Process> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?.to_string();
        let mut command = Vec::new();
        if let Some(counts) = &self.counts {
            command.extend(["valgrind".to_owned(), "--tool=callgrind".to_owned()]);
            command.push(format!("--callgrind-out-file={}", counts.display()));
        }
        command.extend(self.command.iter().cloned());
        let api = Api::serve(listener);
        // The log goes to a file, which accepts every line at once, and which only these two processes use.
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("log.{}", uuid::Uuid::now_v7()));
        let written = File::create_new(&file)?;
        let log = File::open(&file)?;
        std::fs::remove_file(&file)?;
        let child = Command::new(&command[0])
            .args(&command[1..])
            .env_clear()
            .env("PATH", path())
            .env("AWS_LAMBDA_RUNTIME_API", address)
            .env("AWS_LAMBDA_FUNCTION_NAME", "measured")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "measured")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "measured")
            .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(written)
            .stderr(if self.counts.is_some() { Stdio::null() } else { Stdio::inherit() })
            .spawn()
            .map_err(|error| format!("{}: {error}", command[0]))?;
        Ok(Process { child, api, counts: self.counts.clone(), log, said: String::new(), dumps: 0 })
    }
}

impl Process {
    /// Sends `event`, and waits for the answer and for the next poll.
    pub async fn invoke(&mut self, event: &str) -> Result<Answer> {
        let begun = Instant::now();
        self.api.events.send(event.to_owned()).await?;
        let body = tokio::select! {
            answer = self.api.answers.recv() => answer.ok_or("the runtime API has ended")?,
            status = ended(&mut self.child) => return Err(format!("the process ended: {}", status?).into()),
            () = tokio::time::sleep(PATIENCE) => return Err("no answer".into()),
        };
        let wall = begun.elapsed();
        self.poll().await?;
        Ok(Answer { body: body?, wall, cost: self.cost()? })
    }

    /// The cost in the last log line that has one, among the lines since the last call of this function.
    fn cost(&mut self) -> Result<Option<Cost>> {
        self.said.clear();
        self.log.read_to_string(&mut self.said)?;
        let lines = self.said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(lines.filter_map(|line| cost_in(&line["fields"])).next_back())
    }

    /// The warnings and errors that it logged during the last invocation.
    pub fn complaints(&self) -> String {
        let complains = |line: &&str| line.contains("\"WARN\"") || line.contains("\"ERROR\"");
        self.said.lines().filter(complains).collect::<Vec<_>>().join("\n")
    }

    /// Instructions since the last call of this function, or since the start, of a process under callgrind.
    pub async fn counted(&mut self) -> Result<u64> {
        let counts = self.counts.as_ref().ok_or("nothing is counted")?;
        // It has polled for the next event, and still executes a little until it waits for the event.
        tokio::time::sleep(SETTLED).await;
        self.dumps += 1;
        let dump = PathBuf::from(format!("{}.{}", counts.display(), self.dumps));
        // The program behind `callgrind_control`. The process waits in its poll, so it can be interrupted at once.
        let process = format!("--pid={}", self.pid());
        Command::new("vgdb").args([&process, "--max-invoke-ms=1", "dump"]).output()?;
        let begun = Instant::now();
        loop {
            // The file exists before it is complete.
            if let Ok(total) = std::fs::read_to_string(&dump).map_err(Into::into).and_then(|text| total_of(&text)) {
                std::fs::remove_file(&dump)?;
                return Ok(total);
            }
            if begun.elapsed() > PATIENCE {
                return Err("callgrind wrote no counts".into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Sends `event` without waiting.
    pub async fn hand_over(&self, event: &str) -> Result<()> {
        Ok(self.api.events.send(event.to_owned()).await?)
    }

    /// Waits until it polls for an event.
    pub async fn poll(&mut self) -> Result<()> {
        tokio::select! {
            polled = self.api.polls.recv() => polled.ok_or("the runtime API has ended")?,
            status = ended(&mut self.child) => return Err(format!("the process ended: {}", status?).into()),
            () = tokio::time::sleep(PATIENCE) => return Err("no poll".into()),
        }
        Ok(())
    }

    /// Bytes of memory that are resident now.
    pub fn resident(&self) -> Result<u64> {
        self.memory("VmRSS:")
    }

    /// The most bytes of memory that were resident at the same time.
    pub fn peak(&self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, which: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(which)).ok_or("no such line")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }

    /// Processor time of the process.
    pub fn cpu(&self) -> Result<Duration> {
        cpu_of(self.pid())
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process; returns its instructions, if they were counted.
    pub async fn end(self) -> Result<u64> {
        if self.counts.is_none() {
            return Ok(0);
        }
        total_of(&self.end_with_profile().await?)
    }

    /// Ends the process; returns callgrind's profile of its functions.
    pub async fn end_with_profile(mut self) -> Result<String> {
        let counts = self.counts.take().ok_or("nothing was counted")?;
        // It waits in its poll; the way there still takes a few hundred instructions.
        tokio::time::sleep(SETTLED).await;
        Command::new("kill").arg(self.pid().to_string()).status()?;
        tokio::time::timeout(PATIENCE, ended(&mut self.child)).await??;
        let text = std::fs::read_to_string(&counts)?;
        std::fs::remove_file(&counts)?;
        Ok(text)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The cost in a line of the log, if it has one.
fn cost_in(fields: &Value) -> Option<Cost> {
    let count = |name: &str| fields[name].as_u64().and_then(|count| u32::try_from(count).ok());
    Some(Cost {
        calls: count("dynamodb_calls")?,
        depth: count("dynamodb_depth")?,
        read_units: fields["read_units"].as_f64()?,
        write_units: fields["write_units"].as_f64()?,
    })
}

/// The number of instructions in callgrind's output.
fn total_of(text: &str) -> Result<u64> {
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("callgrind counted nothing")?;
    Ok(total.trim().parse()?)
}

/// Waits until `child` has ended.
async fn ended(child: &mut Child) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The search path for programs of the caller of this program.
#[expect(clippy::disallowed_methods, reason = "the harness is no function")]
pub fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Processor time of the process `pid`, for all its threads together.
pub fn cpu_of(pid: u32) -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanoseconds += text.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// The runtime API of one process.
#[derive(Debug)]
struct Api {
    polls: mpsc::Receiver<()>,
    events: mpsc::Sender<String>,
    answers: mpsc::Receiver<std::result::Result<String, String>>,
    server: JoinHandle<()>,
}

struct Ends {
    polled: mpsc::Sender<()>,
    events: Mutex<mpsc::Receiver<String>>,
    answered: mpsc::Sender<std::result::Result<String, String>>,
}

impl Api {
    fn serve(listener: TcpListener) -> Self {
        let (polled, polls) = mpsc::channel(1);
        let (events, received) = mpsc::channel(1);
        let (answered, answers) = mpsc::channel(1);
        let ends = Arc::new(Ends { polled, events: Mutex::new(received), answered });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(failure))
            .route("/2018-06-01/runtime/init/error", post(init_failure))
            .layer(DefaultBodyLimit::max(RESPONSE_LIMIT))
            .with_state(ends);
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, router.into_make_service()).await;
        });
        Self { polls, events, answers, server }
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn next(State(ends): State<Arc<Ends>>) -> Response {
    let _ = ends.polled.send(()).await;
    let Some(event) = ends.events.lock().await.recv().await else { return StatusCode::GONE.into_response() };
    let headers = [
        ("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned()),
        ("lambda-runtime-deadline-ms", "4102444800000".to_owned()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:000000000000:function:measured".to_owned()),
        ("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0".to_owned()),
        (header::CONTENT_TYPE.as_str(), "application/json".to_owned()),
    ];
    (headers, event).into_response()
}

async fn response(State(ends): State<Arc<Ends>>, UrlPath(_): UrlPath<String>, body: Bytes) -> StatusCode {
    let _ = ends.answered.send(Ok(String::from_utf8_lossy(&body).into_owned())).await;
    StatusCode::ACCEPTED
}

async fn failure(State(ends): State<Arc<Ends>>, UrlPath(_): UrlPath<String>, body: Bytes) -> StatusCode {
    let _ = ends.answered.send(Err(String::from_utf8_lossy(&body).into_owned())).await;
    StatusCode::ACCEPTED
}

async fn init_failure(body: Bytes) -> StatusCode {
    eprintln!("a function did not start: {}", String::from_utf8_lossy(&body));
    StatusCode::ACCEPTED
}
