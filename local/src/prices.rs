//! What a million calls of each operation cost, in US dollars: `docs/COST.md` times the public price list.
//!
//! The prices are those of us-east-1 as published in 2025: on demand, the first tier, without the free tier. Each names the page to
//! check it against; nothing looks them up.

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

/// Minutes of a month, in each of which every schedule invokes its function.
const MINUTES: f64 = 730.0 * 60.0;
/// Assumed: of a tick that finds nothing to do, milliseconds billed, MB of memory of the largest function, read units of its queries,
/// and bytes of its log lines.
const TICK: (f64, f64, f64, f64) = (12.0, 512.0, 2.0, 1000.0);

/// MB of memory of each function, as `template.yaml` has it.
const MEMORY: f64 = 256.0;
/// Assumed: milliseconds that a call of DynamoDB takes within a region. Calls side by side are waited for once.
const ROUND_TRIP: f64 = 3.0;
/// Assumed: milliseconds of a warm call that are not spent waiting for DynamoDB, on the seventh of a processor that
/// goes with the memory.
const OWN_TIME: f64 = 3.0;
/// Assumed: bytes that one call leaves in the logs. Access log 480, the function's line 420, Lambda's start and report
/// 450, and 26 of overhead for each of the four, rounded up.
const LOG_BYTES: f64 = 1500.0;

const HEAD: &str = "\
| Operation | Billed ms | Gateway | Lambda | DynamoDB | Logs | Total |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// The dollars that belong to `costs`, the text of `docs/COST.md`: a table, and below it what it assumes.
///
/// # Errors
/// [`Trouble`] names the row that is none.
pub fn table(costs: &str) -> Result<String, Trouble> {
    let mut table = HEAD.to_owned();
    // The first two lines with bars are the head and the rule below it.
    for row in costs.lines().filter(|line| line.starts_with('|')).skip(2) {
        let broken = || Trouble(format!("not a row of a name and four numbers: {row}"));
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, numbers @ ..] = cells.as_slice() else { return Err(broken()) };
        let numbers: Vec<f64> =
            numbers.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(|_| broken())?;
        let [_, depth, read_units, write_units] = numbers[..] else { return Err(broken()) };

        let billed = depth.mul_add(ROUND_TRIP, OWN_TIME).ceil();
        // A million calls of a millisecond are a thousand seconds.
        let lambda = cents(INVOCATIONS + billed * 1000.0 * (MEMORY / 1024.0) * GB_SECOND);
        let dynamodb = cents(read_units.mul_add(READ_UNITS, write_units * WRITE_UNITS));
        // A million calls of a byte each are a thousandth of a GB.
        let logs = cents(LOG_BYTES / 1000.0 * LOG_GB);
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

/// What a stack costs in a month without a single call: a table with what it assumes below, and the sum in dollars.
pub fn idle_month(alarms: usize, schedules: usize) -> (String, f64) {
    // Both numbers are a few hundred at most.
    let count = |number: usize| f64::from(u16::try_from(number).unwrap_or(u16::MAX));
    let ticks = count(schedules) * MINUTES;
    let (milliseconds, memory, read_units, log_bytes) = TICK;
    let compute = ticks * milliseconds / 1000.0 * (memory / 1024.0) * GB_SECOND;
    let million = 1e-6;
    // Each role that uses the table's key requests it at most once in five minutes.
    let key_requests = count(schedules) * MINUTES / 5.0;
    let rows = [
        (format!("{alarms} alarms"), count(alarms) * ALARM),
        (format!("{schedules} schedules, each of them every minute"), ticks * million * SCHEDULED),
        ("The functions that they invoke".to_owned(), ticks * million * INVOCATIONS + compute),
        ("What these read to find nothing".to_owned(), ticks * read_units * million * READ_UNITS),
        ("Their log lines".to_owned(), ticks * log_bytes * 1e-9 * LOG_GB),
        ("The table's key".to_owned(), key_requests * million * KEY_REQUESTS),
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
        Prices: an alarm {ALARM:.2}, a million schedules {SCHEDULED:.2}, a million requests for a key {KEY_REQUESTS:.2}, the others as above.\n\
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
    fn an_idle_month_is_the_sum_of_its_rows() {
        let (table, total) = idle_month(10, 1);
        for row in
            ["| 10 alarms | 1.00 |", "| 1 schedules, each of them every minute | 0.04 |", "| **Together** | **1.11** |"]
        {
            assert!(table.contains(row), "{table}");
        }
        assert!((total - 1.11).abs() < 0.001, "{total}");
    }

    #[test]
    fn a_row_of_something_else_is_named() {
        for row in ["| `a` | 5 | 3 | 2.5 |", "| `a` | 5 | 3 | 2.5 | many |", "|"] {
            let error = table(&format!("| head |\n| --- |\n{row}\n")).unwrap_err();
            assert!(error.to_string().ends_with(row), "{error}");
        }
    }
}
