//! Counts over time: a chart of each metric by day, with a table of the same numbers beside it.

use maud::{Markup, html};
use serde_json::Value;
use shared::input::schema::capitalised;
use shared::records::analytics::metrics::Metric;
use shared::routes;

use super::markup::{member, rows};
use super::{Console, Shown};
use crate::api::{ApiRequest, OrganisationWithKey};

/// The height of a chart, and the width of the bar of a day with the space beside it.
const HEIGHT: u64 = 120;
const BAR: (usize, usize) = (18, 22);

impl Console {
    pub(super) async fn counts(&self, organisation: &OrganisationWithKey) -> Shown {
        let mut charts = Vec::new();
        for metric in Metric::WORDS {
            let counts = ApiRequest::of(&routes::READ_ANALYTICS).query(format!("metric={metric}&group_by=day"));
            let answer = self.api.ask(organisation, counts).await?;
            charts.push(chart(metric, &answer));
        }
        Ok(html! {
            p.quiet { "A change is counted some seconds after it. " code { "group_by" } " of the API groups by other fields." }
            div.cards { @for chart in &charts { (chart) } }
        })
    }
}

/// The metric as words.
fn words(metric: &str) -> String {
    metric.replace('_', " ")
}

/// The chart of a metric, and its table.
fn chart(metric: &str, answer: &Value) -> Markup {
    let days = by_day(answer);
    let most = days.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let (bar, step) = BAR;
    let (width, base) = (days.len().max(1) * step, HEIGHT);
    let listed: Vec<Markup> = answer["rows"].as_array().into_iter().flatten().map(row).collect();
    html! {
        section.card {
            h2 { (capitalised(&words(metric))) }
            div.live.chart id=(format!("chart-{metric}")) {
                @if !days.is_empty() {
                    svg role="img" aria-label=(format!("{} by day; the table has the numbers", words(metric)))
                        viewBox=(format!("0 0 {width} {base}")) width=(width) height=(base)
                    {
                        @for (place, (day, count)) in days.iter().enumerate() {
                            @let height = (count * HEIGHT).div_ceil(most);
                            rect x=(place * step) y=(HEIGHT - height) width=(bar) height=(height) {
                                title { (day) ": " (count) }
                            }
                        }
                    }
                }
            }
            (rows(metric, &["Day", "Of", "#Count"], &listed, "None in these days."))
        }
    }
}

/// The sum of each day.
fn by_day(answer: &Value) -> Vec<(&str, u64)> {
    let mut days: Vec<(&str, u64)> = Vec::new();
    for row in answer["rows"].as_array().into_iter().flatten() {
        let (day, count) = (member(row, "day"), row["count"].as_u64().unwrap_or_default());
        match days.last_mut() {
            Some((last, sum)) if *last == day => *sum += count,
            _ => days.push((day, count)),
        }
    }
    days
}

fn row(row: &Value) -> Markup {
    let of = ["sender_type", "outcome"].map(|name| member(row, name)).join("");
    html! {
        td { (member(row, "day")) }
        td.wide { (of) }
        td.number { (row["count"]) }
    }
}
