//! The first TLS hello of a process: the cost of reading the root certificates and making keys.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::Result;
use crate::bench::Bench;
use crate::figures::{Figures, Must, Row, Unit, figure, milliseconds};
use crate::process::Program;

const SECTION: &str = "First TLS hello";
/// Milliseconds of processor time that it may take.
const MOST: f64 = 1.0;
const RUNS: usize = 25;
/// The longest time from a process's last byte until it waits for an answer.
const SETTLED: Duration = Duration::from_millis(10);

/// The cost of a process until its first bytes have arrived.
struct Until {
    /// Processor time.
    cpu: Duration,
    /// Instructions, if they were counted.
    instructions: u64,
}

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = bench.stack().await?;
    let event = bench.event("get-agent-list")?;
    let ours = hello(bench, &bench.program("get-agent-list", &stack), &event).await?;
    let naive = hello(bench, &bench.naive(&stack), &event).await?;
    let reference = "naive";
    let row = Row::new(SECTION, "time of a processor", ours.0, Unit::Milliseconds);
    figures.push(row.compared_with(reference, naive.0).must(Must::AtMost(MOST)));
    let row = Row { exact: false, ..Row::new(SECTION, "instructions", ours.1, Unit::Instructions) };
    figures.push(row.compared_with(reference, naive.1));
    stack.stop().await;
    Ok(())
}

/// Milliseconds and instructions by which the first bytes with TLS cost more than the first bytes without: everything
/// before them is the same in both cases.
async fn hello(bench: &Bench, program: &Program, event: &str) -> Result<(f64, f64)> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        with.push(milliseconds(until_first_bytes(program, "https", event).await?.cpu));
        without.push(milliseconds(until_first_bytes(program, "http", event).await?.cpu));
    }
    let counted = program.clone().counted(&bench.scratch);
    let instructions = [
        until_first_bytes(&counted, "https", event).await?.instructions,
        until_first_bytes(&counted, "http", event).await?.instructions,
    ];
    Ok((least(with) - least(without), figure(instructions[0]) - figure(instructions[1])))
}

/// Lets the process call a database that accepts its bytes and never answers. A process that makes no call at its start
/// gets an event.
async fn until_first_bytes(program: &Program, scheme: &str, event: &str) -> Result<Until> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("{scheme}://localhost:{}", listener.local_addr()?.port());
    let mut process = program.clone().with("AWS_ENDPOINT_URL_DYNAMODB", url).spawn().await?;
    let called = async {
        let (mut connection, _) = listener.accept().await?;
        connection.read_u8().await?;
        Ok::<_, std::io::Error>(connection)
    };
    tokio::pin!(called);
    let connection = tokio::select! {
        connection = &mut called => connection?,
        polled = process.poll() => {
            polled?;
            process.hand_over(event).await?;
            called.await?
        }
    };
    tokio::time::sleep(SETTLED).await;
    let cpu = process.cpu()?;
    let instructions = process.end().await?;
    drop(connection);
    Ok(Until { cpu, instructions })
}

/// Other load on the machine only makes a time longer.
fn least(times: Vec<f64>) -> f64 {
    times.into_iter().fold(f64::INFINITY, f64::min)
}
