//! `cargo performance` measures the built release binaries, and writes `docs/PERFORMANCE.md` with its charts.

mod bench;
mod charts;
mod conflicts;
mod figures;
mod kept;
mod machine;
mod page;
mod process;
mod ratchet;
mod recorder;
mod table;

mod bodies;
mod breakdown;
mod build;
mod calls;
mod campaign;
mod ceilings;
mod contention;
mod costs;
mod counts;
mod deliveries;
mod events;
mod exports;
mod first;
mod import;
mod limits;
mod lists;
mod memory;
mod neighbours;
mod organisation;
mod sizes;
mod start;
mod suppressions;
mod ticks;
mod tls;
mod twin;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use bench::Bench;
use figures::Figures;
use kept::Kept;

/// The result of every function here: any error ends the run.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measures the built release binaries, and writes docs/PERFORMANCE.md, its charts in docs/performance/, and docs/performance.json.
#[derive(Debug, Parser)]
#[command(name = "cargo performance", bin_name = "cargo performance")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
struct Arguments {
    /// What to measure anew; all other figures stay as they are. Without any, everything is measured
    measures: Vec<Measure>,
    /// Contacts of the export
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// Measure only functions that have no figures yet: their starts, calls and sizes. All other figures stay as they are
    #[arg(long, conflicts_with = "measures")]
    new: bool,
    /// Only count the instructions of our own binaries, compare them with docs/performance.json, and fail where one rose by more than 3 %
    #[arg(long, conflicts_with = "measures")]
    check: bool,
    /// Only count the instructions of the functions whose binary has changed since, and write the counts down
    #[arg(long, conflicts_with_all = ["measures", "check", "new"])]
    count: bool,
    /// Measure nothing: write page and charts from docs/performance.json
    #[arg(long, conflicts_with_all = ["measures", "check", "count", "new"])]
    render: bool,
    /// What `cargo bench` says to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

/// What can be measured, in the page's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// Instructions from the start of a process to its first poll
    Start,
    /// What these instructions go to, crate by crate
    Breakdown,
    /// The first TLS hello of a process
    Tls,
    /// The first call of a process beside the ones behind it
    First,
    /// Instructions of a warm call of every operation, beside a bare handler that makes the same SDK calls
    Calls,
    /// Calls and units of a warm call of every operation, against docs/COST.md
    Costs,
    /// Memory at the first poll, and over ten thousand calls
    Memory,
    /// Bytes of every function's zip
    Sizes,
    /// Pages of lists of up to a million rows
    Lists,
    /// A campaign to ten thousand contacts
    Campaign,
    /// An import of contacts, and of a hundred thousand
    Import,
    /// Many environments of a function at work for one organisation, beside one organisation each
    Contention,
    /// A key at three times its limit, from many environments
    Limits,
    /// What one organisation can do in a second, by the units of the hottest partition
    Ceilings,
    /// What events cost, and whether each change of a busy organisation is told once
    Events,
    /// Memory and work of an export of many contacts: `--rows` says of how many
    Exports,
    /// What counts cost, and whether each change of a busy organisation is counted once
    Counts,
    /// Deliveries: of many tenants, to a connector, and with little memory and few descriptors
    Deliveries,
    /// How fast the events of one organisation arrive while another organisation has slow endpoints
    Neighbours,
    /// Contacts and deferred deliveries of a tick, by its processor time
    Ticks,
    /// The dispatch of a campaign in an organisation with 100,000 suppressions
    Suppressions,
    /// Bodies of 256 KiB that mean no good, beside a plain parse
    Bodies,
    /// The same service in Python, and as one would first write it
    Twin,
    /// Processor time of a further function, and from an edit to a passing test
    Build,
    /// `cargo local` from nothing
    FirstBuild,
}

// One thread, as the function has one: otherwise the measure would include the time in which threads wake each other.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.render {
        let root = repository::root();
        page::write(&root, &Kept::read(&root)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let all = arguments.measures.is_empty();
    let wanted = if all { Measure::value_variants() } else { &arguments.measures };
    let in_process = !all && wanted.iter().all(|measure| measure.is_in_process());
    let mut bench = if in_process { Bench::of_checkout()? } else { Bench::build()? };
    bench.rows = arguments.rows;
    if arguments.check {
        return ratchet::check(&mut bench).await;
    }
    if arguments.count {
        let counted = ratchet::write(&mut bench).await?;
        page::write(&bench.root, &Kept::read(&bench.root)?)?;
        return Ok(counted);
    }
    if arguments.new {
        bench.build_references()?;
        return measure_new(&mut bench).await;
    }
    if wanted.iter().any(|measure| measure.has_references()) {
        bench.build_references()?;
    }
    let (path, mut taken) = (bench::programs(&bench.root)?, Figures::default());
    for (number, measure) in wanted.iter().enumerate() {
        bench::progress(&format!("{measure:?}"), number, wanted.len());
        measure.take(&bench, &mut taken).await?;
        // Figures are stored at once: the next measure may fail, and all of them take an hour.
        Kept::of(Kept::read(&bench.root)?.figures.replaced_by(&taken), &path)?.write(&bench.root)?;
    }
    print!("{}", page::text(&taken));
    if all {
        // Without sections that no measure writes any more.
        Kept::of(taken, &path)?.write(&bench.root)?;
    }
    page::write(&bench.root, &Kept::read(&bench.root)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures the functions that have no figures yet.
async fn measure_new(bench: &mut Bench) -> Result<ExitCode> {
    let kept = Kept::read(&bench.root)?.figures;
    let sections = [start::SECTION, sizes::SECTION, calls::SECTION].map(|section| kept.subjects(section));
    let is_kept = |name: &String| sections[..2].iter().all(|subjects| subjects.contains(name));
    // The functions without a route have no calls.
    let routes: Vec<&str> = shared::routes::ALL.iter().map(|route| route.name).collect();
    let has_calls = |name: &String| !routes.contains(&name.as_str()) || sections[2].contains(name);
    let names = bench.functions()?.into_iter().map(|function| function.name);
    bench.skipped = names.filter(|name| is_kept(name) && has_calls(name)).collect();
    let path = bench::programs(&bench.root)?;
    for measure in [Measure::Sizes, Measure::Start, Measure::Calls] {
        let mut taken = Figures::default();
        measure.take(bench, &mut taken).await?;
        Kept::of(Kept::read(&bench.root)?.figures.with(&taken), &path)?.write(&bench.root)?;
    }
    page::write(&bench.root, &Kept::read(&bench.root)?)?;
    Ok(ExitCode::SUCCESS)
}

impl Measure {
    /// Whether it runs inside the harness, and needs no build of a function.
    const fn is_in_process(self) -> bool {
        matches!(self, Self::Ceilings | Self::Events | Self::Counts | Self::Neighbours | Self::Suppressions)
    }

    /// Whether the functions are compared with other programs, which take long to build.
    const fn has_references(self) -> bool {
        !matches!(
            self,
            Self::Breakdown
                | Self::First
                | Self::Costs
                | Self::Lists
                | Self::Campaign
                | Self::Contention
                | Self::Limits
                | Self::Ceilings
                | Self::Events
                | Self::Counts
                | Self::Exports
                | Self::Import
                | Self::Deliveries
                | Self::Neighbours
                | Self::Ticks
                | Self::Suppressions
                | Self::Build
                | Self::FirstBuild
        )
    }

    async fn take(self, bench: &Bench, figures: &mut Figures) -> Result<()> {
        match self {
            Self::Start => start::measure(bench, figures).await,
            Self::Breakdown => breakdown::measure(bench, figures).await,
            Self::Tls => tls::measure(bench, figures).await,
            Self::First => first::measure(bench, figures).await,
            Self::Calls => calls::measure(bench, figures).await,
            Self::Costs => costs::measure(bench, figures).await,
            Self::Memory => memory::measure(bench, figures).await,
            Self::Sizes => sizes::measure(bench, figures),
            Self::Lists => lists::measure(bench, figures).await,
            Self::Campaign => {
                campaign::measure(bench, figures).await?;
                campaign::measure_sending(bench, figures)
            }
            Self::Import => import::measure(bench, figures),
            Self::Contention => contention::measure(bench, figures),
            Self::Limits => limits::measure(bench, figures).await,
            Self::Ceilings => ceilings::measure(bench, figures).await,
            Self::Events => events::measure(bench, figures),
            Self::Counts => counts::measure(bench, figures),
            Self::Exports => exports::measure(bench, figures),
            Self::Deliveries => {
                bench.build_sender()?;
                deliveries::measure(bench, figures)
            }
            Self::Neighbours => neighbours::measure(bench, figures),
            Self::Ticks => {
                bench.build_sender()?;
                ticks::measure(bench, figures)
            }
            Self::Suppressions => suppressions::measure(bench, figures).await,
            Self::Bodies => bodies::measure(bench, figures).await,
            Self::Twin => twin::measure(bench, figures).await,
            Self::Build => build::measure(bench, figures),
            Self::FirstBuild => build::measure_first(bench, figures),
        }
    }
}
