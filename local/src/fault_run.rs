//! The fault run: closes conversations and sends campaigns while faults happen, and then checks which events arrived.
//!
//! - [`plan`] is made from a seed. [`world`] is the service with its customers, and their actions.
//! - [`acts`] are the events of a run: closes at a steady rate in real time, campaigns, then recovery in skipped
//!   time. [`caller`] calls the API for them. Meanwhile connectors report [`outcomes`], forms and intents are
//!   [`captured`], and rows are [`exported`].
//! - [`check`] compares the events that arrived with the expected ones, [`event_log`] the log of every change, and
//!   [`counted`] the counts, both by the [`changes`] of the table. [`report`] prints the result.
//!
//! The same seed makes the same plan and the same random numbers. Which request gets which number depends on timing.

pub mod acts;
pub mod caller;
pub mod captured;
pub mod changes;
pub mod check;
pub mod counted;
pub mod event_log;
pub mod exported;
pub mod outcomes;
pub mod plan;
pub mod report;
pub mod world;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::try_join;
use shared::records::delivery::{Delivery, DeliveryState};
use tokio::time::sleep;

use crate::Trouble;
use crate::event_source::StreamFaults;
use crate::fault_run::acts::{Closed, FinishedCampaign};
use crate::fault_run::changes::TableChanges;
use crate::fault_run::check::{Check, ReceivedEvents};
use crate::fault_run::plan::{EndpointKind, Plan};
use crate::fault_run::report::{EndpointFigures, FaultRunReport, quantiles};
use crate::fault_run::world::{World, path_of_connector, path_of_webhook};
use crate::faults::Fault;

/// The factor by which fewer conversations are closed in the world without faults. That world runs at the same time, so
/// that both have the same machine under the same load.
const CALMER: u32 = 5;

/// The options of a run.
#[derive(Debug, Clone)]
pub struct FaultRunOptions {
    /// The checkout.
    pub root: PathBuf,
    /// The seed of the plan and of the random numbers.
    pub seed: u64,
    /// Conversations that are closed.
    pub conversations: usize,
    /// Contacts of campaigns.
    pub contacts: usize,
    /// Exports of each organisation.
    pub exports: usize,
    /// Conversations that are closed per second.
    pub pace: u32,
    /// The factor by which the service's clock is faster than the machine's.
    pub times: u32,
    /// The time limit of an attempt to send.
    pub attempt: Duration,
    /// The time limit of an attempt to call the database.
    pub call: Duration,
    /// The rate limit of a widget, per second.
    pub sends_per_second: u32,
    /// The longest additional latency of a database call.
    pub latency: Duration,
    /// The faults of the database, with their probabilities.
    pub database: Vec<(f64, Fault)>,
    /// The units of a partition per second, as a multiple of DynamoDB's.
    pub partitions: f64,
    /// The faults between the stream and the functions.
    pub stream: StreamFaults,
    /// Whether a fifth as many conversations are closed in a world without faults, to compare the durations.
    pub compared: bool,
}

impl FaultRunOptions {
    /// 10,000 conversations and contacts. With the faster clock, an attempt takes as long as 15 seconds in reality.
    pub fn full(root: &Path, seed: u64) -> Self {
        Self {
            root: root.to_owned(),
            seed,
            conversations: 10_000,
            contacts: 10_000,
            exports: 4,
            pace: 90,
            times: 15,
            attempt: Duration::from_secs(1),
            call: Duration::from_secs(1),
            sends_per_second: 5,
            latency: Duration::from_millis(6),
            database: vec![
                (0.01, Fault::StaleIndex),
                (0.005, Fault::Throttle),
                (0.002, Fault::ServerError),
                (0.002, Fault::Conflict),
                (0.002, Fault::ThrottledTransaction),
                (0.002, Fault::InProgress { meets: 5, commits: true }),
                (0.002, Fault::InProgress { meets: 5, commits: false }),
                (0.002, Fault::Unprocessed),
                (0.001, Fault::BreakAnswer),
                (0.00005, Fault::LoseRequest),
                (0.00005, Fault::LoseAnswer),
            ],
            partitions: 1.0,
            stream: StreamFaults {
                redelivered: 0.02,
                split: 0.05,
                delayed: 0.02,
                delay: Duration::from_millis(200),
                killed: 0.02,
                frozen: 0.02,
                given_up: 0.02,
                ..StreamFaults::default()
            },
            compared: true,
        }
    }

    /// Forty of each, without pauses and with more faults, for `cargo test`.
    pub fn short(root: &Path, seed: u64) -> Self {
        Self {
            conversations: 40,
            contacts: 40,
            exports: 2,
            pace: 1000,
            // A tick has a few seconds of the machine's clock.
            times: 20,
            attempt: Duration::from_millis(250),
            call: Duration::from_millis(500),
            sends_per_second: 1000,
            latency: Duration::from_millis(2),
            database: vec![
                (0.05, Fault::StaleIndex),
                (0.02, Fault::Throttle),
                (0.01, Fault::ServerError),
                (0.01, Fault::Conflict),
                (0.01, Fault::ThrottledTransaction),
                (0.01, Fault::InProgress { meets: 5, commits: true }),
                (0.01, Fault::InProgress { meets: 5, commits: false }),
                (0.01, Fault::Unprocessed),
                (0.01, Fault::BreakAnswer),
                (0.0005, Fault::LoseRequest),
                (0.0005, Fault::LoseAnswer),
            ],
            // Otherwise so few conversations would not reach the limit.
            partitions: 0.05,
            stream: StreamFaults {
                redelivered: 0.1,
                split: 0.2,
                delayed: 0.1,
                delay: Duration::from_millis(20),
                killed: 0.1,
                frozen: 0.1,
                given_up: 0.1,
                ..StreamFaults::default()
            },
            ..Self::full(root, seed)
        }
    }

    /// The same on a busy machine: everything may take so many times longer.
    #[must_use]
    pub fn slower(self, factor: u32) -> Self {
        let factor = factor.max(1);
        Self { times: (self.times / factor).max(1), attempt: self.attempt * factor, call: self.call * factor, ..self }
    }

    /// If no function calls the database for this time, all of them wait for the clock. It is longer than an attempt to
    /// send, and longer than the pause between two polls of the stream.
    pub fn idle(&self) -> Duration {
        self.attempt + Duration::from_millis(50)
    }

    /// The longest time from the last read before an attempt to its end.
    pub fn under_way(&self) -> Duration {
        self.call * 3 + self.attempt + Duration::from_millis(250)
    }
}

/// Executes the whole run, and prints the duration of each act at its end.
///
/// # Errors
/// [`Trouble`] where the run cannot be finished. Everything else is in the report.
pub async fn run(options: &FaultRunOptions, say: fn(&str, Duration)) -> Result<FaultRunReport, Trouble> {
    let mut watch = Instant::now();
    let mut done = |what: String| {
        say(&what, watch.elapsed());
        watch = Instant::now();
    };
    let plan = Plan::of(options.seed, options.conversations, options.contacts);
    // Boxed, as are the futures below: a world has many parts.
    let world = Box::pin(World::prepare(plan, options)).await?;
    let calm = if options.compared {
        let few = options.conversations / CALMER as usize;
        Some(Box::pin(World::prepare(Plan::of(options.seed, few, 0), options)).await?)
    } else {
        None
    };
    done(format!("{} conversations opened", world.conversations.len()));
    acts::start_endpoint_faults(&world, options.attempt);
    world.start_faults(options);
    let (clock, background) = (world.run_clock(options.times), world.run_in_background(options.idle()));
    let pace = options.pace;
    let closing = Duration::from_secs(1) / pace * u32::try_from(options.conversations).unwrap_or(u32::MAX);
    let (closed, clean, finished, ()) = try_join!(
        acts::close(&world, pace),
        undisturbed(calm, options),
        acts::campaign(&world, options),
        exported::export(&world, options.exports, closing)
    )?;
    // A request that was being sent when something was stopped arrives before the endpoints recover.
    sleep(options.under_way()).await;
    drop((clock, background));
    let contacts = world.plan.campaigns.iter().map(|run| run.contacts).sum::<usize>();
    done(format!(
        "{} conversations closed, {pace} in a second, while campaigns with {contacts} contacts were sent and {} exports made by each",
        closed.len(),
        options.exports
    ));
    let clock = world.run_clock(1);
    let days = acts::recover(&world, options).await?;
    done(format!("{days:.1} days until nothing was left to do"));
    let (received_events, mut checks) = check::read(&world);
    let logs = check::logs(&world).await?;
    checks.extend(check::closed(&world, &closed, &received_events, &logs));
    checks.push(check::repeats(&world, &received_events, &logs));
    let changes = TableChanges::read(&world)?;
    checks.extend(event_log::checks(&world, &finished, &changes, options.exports).await?);
    checks.push(check::expiry(&world, &logs).await?);
    done(format!("{} deliveries expired", logs.iter().map(Vec::len).sum::<usize>()));
    // Until here the units of partitions are refilled, second by second.
    drop(clock);
    let requests = world.requests();
    world.stop_faults();
    checks.extend([check::long_ticks(&world), counted::counts(&world, &changes).await?]);
    checks.extend(of_records(&world, &finished, &received_events, options).await?);
    let rows = rows(&world, &closed, &received_events, &logs);
    let faulty = quantiles(&check::times(&world, &closed, &received_events, EndpointKind::Prompt));
    done(format!("all looked through; the database had {requests} requests"));
    let slowest = clean.zip(faulty).map(|((_, clean), (_, faulty))| (clean, faulty));
    Ok(FaultRunReport { seed: options.seed, rows, checks, slowest, partitions: world.partitions.clone() })
}

/// The checks of what the records are at the end.
async fn of_records(
    world: &World,
    finished: &[FinishedCampaign],
    received_events: &ReceivedEvents,
    options: &FaultRunOptions,
) -> Result<Vec<Check>, Trouble> {
    let mut checks = vec![check::lists(world).await?, captured::lists(world).await?];
    checks.extend(check::campaigns(world, finished, received_events, options).await?);
    checks.extend(outcomes::results(world, finished).await?);
    checks.extend(exported::files(world).await?);
    checks.extend(check::rates(world, options));
    checks.extend(check::ends(world)?);
    Ok(checks)
}

/// The median and the slowest hundredth of the times from close to receipt, in a world without faults.
async fn undisturbed(
    world: Option<Arc<World>>,
    options: &FaultRunOptions,
) -> Result<Option<(Duration, Duration)>, Trouble> {
    let Some(world) = world else { return Ok(None) };
    let (_clock, _background) = (world.run_clock(options.times), world.run_in_background(options.idle()));
    let closed = acts::close(&world, (options.pace / CALMER).max(1)).await?;
    let (received_events, _) = check::read(&world);
    Ok(quantiles(&check::times(&world, &closed, &received_events, EndpointKind::Prompt)))
}

fn rows(
    world: &Arc<World>,
    closed: &Closed,
    received_events: &ReceivedEvents,
    logs: &[Vec<Delivery>],
) -> Vec<EndpointFigures> {
    let webhooks = EndpointKind::ALL.map(|kind| {
        let mut row = EndpointFigures { name: format!("webhook, {}", kind.name()), ..EndpointFigures::default() };
        let (mut attempts, mut dead) = (0, 0);
        for (number, log) in logs.iter().enumerate().filter(|(number, _)| world.plan.webhooks[*number].kind == kind) {
            row.events +=
                closed.keys().filter(|conversation| world.plan.conversations[**conversation].webhook == number).count();
            row.count(received_events, &path_of_webhook(number));
            attempts += log.iter().map(|delivery| delivery.attempts).sum::<u64>();
            dead += log.iter().filter(|delivery| delivery.state == DeliveryState::Dead).count();
        }
        (row.attempts, row.dead) = (Some(attempts), Some(dead));
        if kind == EndpointKind::Prompt {
            row.times = quantiles(&check::times(world, closed, received_events, kind));
        }
        row
    });
    let connectors = world.plan.campaigns.iter().enumerate().filter_map(|(number, run)| {
        let end = match run.act {
            plan::CallerAct::None if run.later => ", with a schedule",
            plan::CallerAct::None => "",
            plan::CallerAct::Pause(_) => ", paused",
            plan::CallerAct::Cancel(_) => ", cancelled",
            plan::CallerAct::DeleteContacts(_) => ", thinned",
        };
        let name = format!("connector, {}{end}", run.connector?.name());
        let mut row = EndpointFigures { name, events: run.contacts, ..EndpointFigures::default() };
        row.count(received_events, &path_of_connector(number));
        Some(row)
    });
    webhooks.into_iter().chain(connectors).collect()
}

impl EndpointFigures {
    fn count(&mut self, received_events: &ReceivedEvents, path: &str) {
        for event in received_events.get(path).into_iter().flat_map(|events| events.values()) {
            self.requests += event.requests;
            self.taken += usize::from(event.taken > 0);
            self.again += event.taken - event.ids.len();
        }
    }
}
