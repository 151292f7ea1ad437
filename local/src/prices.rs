//! The cost of a million calls of each operation, in US dollars: `docs/COST.md` times the public price list.
//!
//! The prices are the ones of us-east-1 as published in 2025: on demand, the first tier, without the free tier. Each
//! names the page on which it can be checked; no code looks them up.

use std::fmt::Write as _;

use crate::Trouble;

/// API Gateway, a million requests to a REST API, up to 333 million a month: `aws.amazon.com/api-gateway/pricing`.
const GATEWAY: f64 = 3.50;
/// Lambda, a million invocations: `aws.amazon.com/lambda/pricing`.
const INVOCATIONS: f64 = 0.20;
/// Lambda on arm64, a GB of memory for a second: `aws.amazon.com/lambda/pricing`.
const GB_SECOND: f64 = 0.000_013_333_4;
/// DynamoDB on demand, a million read units: `aws.amazon.com/dynamodb/pricing/on-demand`.
const READ_UNITS: f64 = 0.125;
/// DynamoDB on demand, a million write units: `aws.amazon.com/dynamodb/pricing/on-demand`.
const WRITE_UNITS: f64 = 0.625;
/// A GB taken into the logs, of Lambda's lines or the gateway's: `aws.amazon.com/cloudwatch/pricing`.
const LOG_GB: f64 = 0.50;

/// CloudWatch, an alarm of one metric for a month: `aws.amazon.com/cloudwatch/pricing`.
const ALARM: f64 = 0.10;
/// CloudWatch, a dashboard for a month, from an account's fourth on: `aws.amazon.com/cloudwatch/pricing`.
const DASHBOARD: f64 = 3.00;
/// EventBridge Scheduler, a million invocations: `aws.amazon.com/eventbridge/pricing`.
const SCHEDULED: f64 = 1.00;
/// KMS, a million requests: `aws.amazon.com/kms/pricing`.
const KEY_REQUESTS: f64 = 3.00;
/// A key of the stack itself, for a month.
const KEY: f64 = 1.0;

/// S3, a million lists of a bucket: `aws.amazon.com/s3/pricing`.
const LISTS: f64 = 5.00;

/// Minutes of a month.
const MINUTES: f64 = 730.0 * 60.0;
/// Assumed for a tick without work: billed milliseconds, MB of memory of the largest function, read units of its
/// queries, and bytes of its log lines.
const TICK: (f64, f64, f64, f64) = (12.0, 1769.0, 8.0, 1000.0);

/// MB of memory of each function, as in `template.yaml`.
const MEMORY: f64 = 256.0;
/// Assumed: milliseconds of a DynamoDB call within a region. Concurrent calls count once.
const ROUND_TRIP: f64 = 3.0;
/// Assumed: milliseconds of a warm call without the waits for DynamoDB, on the seventh of a processor that belongs to
/// the memory.
const OWN_TIME: f64 = 3.0;
/// Assumed: bytes of one call in the logs. Access log 480, the function's line 420, Lambda's start and report 450, and
/// 26 of overhead for each of the four, rounded up.
const LOG_BYTES: f64 = 1500.0;

/// Assumed: the number of sequential DynamoDB calls of a request.
const DEPTH: f64 = 2.0;
/// MB of memory of the function that handles most changes, as in `template.yaml`.
const FOLLOWING_MEMORY: f64 = 1769.0;

const HEAD: &str = "\
| Operation | Billed ms | Gateway | Lambda | DynamoDB | Logs | Total |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

const WHOLE_HEAD: &str = "\
| What | Requests | Invocations | DynamoDB | Total |
| --- | ---: | ---: | ---: | ---: |
";

/// The dollars for `costs`, the text of `docs/COST.md`: a table, and below it the assumptions.
///
/// # Errors
/// [`Trouble`] names the row that is invalid.
pub fn table(costs: &str) -> Result<String, Trouble> {
    let mut table = HEAD.to_owned();
    for row in rows_of(costs, 0) {
        let (name, [_, depth, read_units, write_units]) = cells_of(row)?;
        let billed = billed(depth);
        let lambda = cents(lambda(billed));
        let dynamodb = cents(units(read_units, write_units));
        let logs = cents(logs());
        // The sum of the rounded parts, so that a reader can check it.
        let total = GATEWAY + lambda + dynamodb + logs;
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| {name} | {billed} | {GATEWAY:.2} | {lambda:.2} | {dynamodb:.2} | {logs:.2} | **{total:.2}** |"
        );
    }
    let _ = write!(
        table,
        "\n\
        Prices: a million requests at the gateway {GATEWAY:.2}, a million invocations {INVOCATIONS:.2}, a GB-second on\n\
        arm64 {GB_SECOND}, a million read units {READ_UNITS}, a million write units {WRITE_UNITS}, a GB of logs {LOG_GB:.2}.\n\
        Assumed: a function of {MEMORY} MB is billed {OWN_TIME} ms of its own and {ROUND_TRIP} ms for each step of the\n\
        depth, and a call leaves {LOG_BYTES} bytes in the logs.\n"
    );
    Ok(table)
}

/// The same for the cost of a request with all its reactions.
///
/// # Errors
/// [`Trouble`] names the row that is invalid.
pub fn whole(costs: &str) -> Result<String, Trouble> {
    let mut table = WHOLE_HEAD.to_owned();
    for row in rows_of(costs, 1) {
        let (name, [requests, invocations, read_units, write_units]) = cells_of(row)?;
        let requests = cents(requests * (GATEWAY + lambda(billed(DEPTH)) + logs()));
        let (invocations, dynamodb) = (cents(invocations * INVOCATIONS), cents(units(read_units, write_units)));
        let total = requests + invocations + dynamodb;
        let _ = writeln!(table, "| {name} | {requests:.2} | {invocations:.2} | {dynamodb:.2} | **{total:.2}** |");
    }
    let tenth = cents(lambda_seconds(100.0, FOLLOWING_MEMORY));
    let _ = write!(
        table,
        "\n\
        Assumed: a request has a depth of {DEPTH}. How long an invocation takes depends on what else is in its batch: each 100 ms of a function of\n\
        {FOLLOWING_MEMORY} MB would add {tenth:.2}.\n"
    );
    Ok(table)
}

/// The rows of the table at `place` in a text, without its head and the line below it.
fn rows_of(text: &str, place: usize) -> impl Iterator<Item = &str> {
    let mut tables = text.split("\n\n").filter(|part| part.starts_with('|'));
    tables.nth(place).unwrap_or_default().lines().skip(2)
}

/// The name and the numbers of a row.
fn cells_of(row: &str) -> Result<(&str, [f64; 4]), Trouble> {
    let broken = || Trouble(format!("not a row of a name and four numbers: {row}"));
    let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [name, numbers @ ..] = cells.as_slice() else { return Err(broken()) };
    let numbers: Vec<f64> = numbers.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(|_| broken())?;
    Ok((name, numbers.try_into().map_err(|_| broken())?))
}

/// Billed milliseconds of a call with DynamoDB calls of this depth.
fn billed(depth: f64) -> f64 {
    depth.mul_add(ROUND_TRIP, OWN_TIME).ceil()
}

/// A million invocations of so many milliseconds of a function with a route.
fn lambda(billed: f64) -> f64 {
    INVOCATIONS + lambda_seconds(billed, MEMORY)
}

/// A million times so many milliseconds, which are a thousand seconds each, of a function with so many MB.
fn lambda_seconds(milliseconds: f64, memory: f64) -> f64 {
    milliseconds * 1000.0 * (memory / 1024.0) * GB_SECOND
}

/// A million times these units.
fn units(read: f64, written: f64) -> f64 {
    read.mul_add(READ_UNITS, written * WRITE_UNITS)
}

/// The logs of a million calls: a million bytes are a thousandth of a GB.
fn logs() -> f64 {
    LOG_BYTES / 1000.0 * LOG_GB
}

/// The cost of a stack in a month without a single call: a table with its assumptions below, and the sum in dollars.
/// `schedules` has the seconds between two invocations of each schedule; a schedule that is slower than every minute
/// lists a bucket, and the others read the table.
pub fn idle_month(alarms: usize, schedules: &[u64]) -> (String, f64) {
    // All numbers are a few hundred at most.
    let count = |number: usize| f64::from(u16::try_from(number).unwrap_or(u16::MAX));
    let in_month = |seconds: &u64| MINUTES * 60.0 / f64::from(u32::try_from(*seconds).unwrap_or(u32::MAX));
    let (slower, every_minute): (Vec<u64>, Vec<u64>) = schedules.iter().partition(|seconds| **seconds > 60);
    let (lists, reads): (f64, f64) = (slower.iter().map(in_month).sum(), every_minute.iter().map(in_month).sum());
    let ticks = lists + reads;
    let (milliseconds, memory, read_units, log_bytes) = TICK;
    let compute = ticks * milliseconds / 1000.0 * (memory / 1024.0) * GB_SECOND;
    let million = 1e-6;
    // Each role that uses the table's key requests it at most once in five minutes.
    let key_requests = count(schedules.len()) * MINUTES / 5.0;
    let rows = [
        (format!("{alarms} alarms"), count(alarms) * ALARM),
        (
            format!("{} schedules every minute, {} less often", every_minute.len(), slower.len()),
            ticks * million * SCHEDULED,
        ),
        ("The functions that they invoke".to_owned(), ticks * million * INVOCATIONS + compute),
        ("Their reads of the table".to_owned(), reads * read_units * million * READ_UNITS),
        ("Their lists of the bucket".to_owned(), lists * million * LISTS),
        ("Their log lines".to_owned(), ticks * log_bytes * 1e-9 * LOG_GB),
        ("The table's key".to_owned(), key_requests * million * KEY_REQUESTS),
        ("The key of secrets".to_owned(), KEY),
    ];
    let mut table = "| For | A month |\n| --- | ---: |\n".to_owned();
    let mut total = 0.0;
    for (what, dollars) in rows {
        let dollars = cents(dollars);
        total += dollars;
        let _ = writeln!(table, "| {what} | {dollars:.2} |");
    }
    let _ = write!(
        table,
        "| **Together** | **{total:.2}** |\n\n\
        Prices: an alarm {ALARM:.2}, a million schedules {SCHEDULED:.2}, a million requests for a key {KEY_REQUESTS:.2}, a million lists of a bucket {LISTS:.2}, the\nothers as above.\n\
        Assumed: a call that finds nothing to do is billed {milliseconds} ms at {memory} MB, reads {read_units} units and leaves {log_bytes} bytes \
        in the logs.\nThe metrics of failures cost nothing while nothing fails. The dashboard is free as one of an account's first three, and \
        costs\n{DASHBOARD:.2} a month from the fourth on.\n"
    );
    (table, total)
}

fn cents(dollars: f64) -> f64 {
    (dollars * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_priced_part_by_part() {
        let costs =
            "text\n\n| Operation | Calls | Depth | Read units | Write units |\n| --- | ---: | ---: | ---: | ---: |\n";
        let one = table(&format!("{costs}| `a`, twice | 5 | 3 | 2.5 | 5 |\n")).unwrap();
        let row = "| `a`, twice | 12 | 3.50 | 0.24 | 3.44 | 0.75 | **7.93** |\n\nPrices: ";
        assert!(one.starts_with(&format!("{HEAD}{row}")), "{one}");
    }

    #[test]
    fn the_second_table_is_priced_by_whole_events() {
        let costs = "| Operation | Calls |\n| --- | ---: |\n| `a` | 1 |\n\n| What | Requests |\n| --- | ---: |\n| `b`, closed | 2 | 0.5 | 34 | 25 |\n";
        let whole = whole(costs).unwrap();
        assert!(whole.contains("| `b`, closed | 8.96 | 0.10 | 19.88 | **28.94** |\n\nAssumed: "), "{whole}");
    }

    #[test]
    fn an_idle_month_is_the_sum_of_its_rows() {
        let (table, total) = idle_month(10, &[60, 300]);
        for row in [
            "| 10 alarms | 1.00 |",
            "| 1 schedules every minute, 1 less often | 0.05 |",
            "| Their lists of the bucket | 0.04 |",
            "| Their reads of the table | 0.04 |",
            "| **Together** | **2.24** |",
        ] {
            assert!(table.contains(row), "{table}");
        }
        assert!((total - 2.24).abs() < 0.005, "{total}");
    }

    #[test]
    fn an_unreadable_row_is_named_in_the_error() {
        for row in ["| `a` | 5 | 3 | 2.5 |", "| `a` | 5 | 3 | 2.5 | many |", "|"] {
            let error = table(&format!("| head |\n| --- |\n{row}\n")).unwrap_err();
            assert!(error.to_string().ends_with(row), "{error}");
        }
    }
}
