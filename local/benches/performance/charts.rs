//! The page's charts: SVG with a background of its own, so that it is legible on any page.

use std::path::Path;

use crate::figures::shown;
use crate::figures::{Figures, Row, Series, Unit};
use crate::{Result, breakdown, calls, contention, lists, start, twin};

const WIDTH: f64 = 820.0;
/// The margin around a chart.
const MARGIN: f64 = 20.0;
/// The left end of bars: right of their names.
const BARS: f64 = 330.0;
/// The right end of the longest bar: left of its figure.
const BARS_END: f64 = 600.0;
/// The distance from one bar to the next.
const STEP: f64 = 22.0;
const STYLE: &str = "\
text { font: 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.soft { fill: #59636e }
.back { fill: #ffffff; stroke: #d1d9e0 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.c0 { fill: #2f81f7 } .c1 { fill: #d9822b } .c2 { fill: #8b949e }
.l0 { stroke: #2f81f7 } .l1 { stroke: #d9822b } .l2 { stroke: #8b949e }
.l0, .l1, .l2 { fill: none; stroke-width: 2.5; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .soft { fill: #9198a1 } .back { fill: #0d1117; stroke: #3d444d } .grid { stroke: #3d444d }
}
";

/// Draws all available charts into `folder`; returns their names and titles.
pub fn write(folder: &Path, figures: &Figures) -> Result<Vec<(&'static str, &'static str)>> {
    std::fs::create_dir_all(folder)?;
    let of = |chart: &str| figures.series.iter().filter(|series| series.chart == chart).collect::<Vec<_>>();
    let charts = [
        (breakdown::CHART, "What the instructions of a start go to", parts(&of(breakdown::CHART))),
        (
            breakdown::CALL_CHART,
            "What the instructions of a warm call of create-assistant go to",
            parts(&of(breakdown::CALL_CHART)),
        ),
        ("beside", "Us, what one would write first, and the same in Python", comparison(&figures.rows)),
        ("calls", "Instructions of a warm call of every operation", warm_calls(&figures.rows)),
        (contention::CHART, "64 environments of one function", contended(&of(contention::CHART))),
        (lists::CHART, "Read units of any page, in addition to those of its rows", lines(&of(lists::CHART))),
    ];
    let mut drawn = Vec::new();
    for (name, title, chart) in charts {
        if let Some(chart) = chart {
            std::fs::write(folder.join(name).with_extension("svg"), chart.finish(title))?;
            drawn.push((name, title));
        }
    }
    Ok(drawn)
}

/// A drawing, from the top downwards.
struct Drawing {
    body: String,
    /// The position of the next element.
    y: f64,
}

/// One bar.
struct Bar {
    name: String,
    value: f64,
    figure: String,
    /// The class that gives its colour.
    class: &'static str,
}

/// The distribution of the instructions of a start, one bar for each part.
fn parts(series: &[&Series]) -> Option<Drawing> {
    let parts: Vec<(&str, f64)> =
        series.iter().filter_map(|series| Some((&*series.name, series.points.first()?.1))).collect();
    let all: f64 = parts.iter().map(|(_, count)| count).sum();
    let bar = |(name, count): &(&str, f64)| Bar {
        name: (*name).to_owned(),
        value: *count,
        figure: format!("{}, {}", shown(*count, Unit::Instructions), shown(count / all * 100.0, Unit::Percent)),
        class: "c0",
    };
    let mut drawing = Drawing::new();
    drawing.note(&format!("{} from the start of the process to its first poll", shown(all, Unit::Instructions)));
    drawing.bars(&parts.iter().map(bar).collect::<Vec<_>>());
    (!parts.is_empty()).then_some(drawing)
}

/// The service, the naive program, and the same in Python: a panel for each figure that they share.
fn comparison(rows: &[Row]) -> Option<Drawing> {
    let bar = |name: &str, value: f64, unit: Unit, class: &'static str| Bar {
        name: name.to_owned(),
        value,
        figure: shown(value, unit),
        class,
    };
    let mut panels: Vec<(String, Vec<Bar>)> = Vec::new();
    let starts = rows.iter().filter(|row| row.section == start::SECTION);
    // Of the service's own figures, which are the ones with a bound, only the largest is shown.
    let (ours, others): (Vec<&Row>, Vec<&Row>) = starts.partition(|row| row.must.is_some());
    if let Some(dearest) = ours.into_iter().max_by(|a, b| a.value.total_cmp(&b.value)) {
        let mut bars = vec![bar(&format!("ours, {}", dearest.subject), dearest.value, dearest.unit, "c0")];
        bars.extend(others.into_iter().map(|row| bar(&row.subject, row.value, row.unit, "c2")));
        panels.push((start::SECTION.to_owned(), bars));
    }
    for row in rows.iter().filter(|row| row.section == twin::SECTION) {
        let Some((name, value)) = &row.reference else { continue };
        let title = format!("{}, {}", row.subject, shown_in(row.unit));
        let reference = bar(name, *value, row.unit, if name == twin::TWIN { "c1" } else { "c2" });
        match panels.iter_mut().find(|(other, _)| *other == title) {
            Some((_, bars)) => bars.push(reference),
            None => panels.push((title, vec![bar("ours", row.value, row.unit, "c0"), reference])),
        }
    }
    let mut drawing = Drawing::new();
    for (title, bars) in &mut panels {
        bars.sort_by(|a, b| a.value.total_cmp(&b.value));
        drawing.note(title);
        drawing.bars(bars);
    }
    (!panels.is_empty()).then_some(drawing)
}

/// The unit of a panel's bars.
const fn shown_in(unit: Unit) -> &'static str {
    match unit {
        Unit::Instructions => "instructions",
        _ => "milliseconds",
    }
}

/// The warm calls of every operation, and the excess of each over the bare handler.
fn warm_calls(rows: &[Row]) -> Option<Drawing> {
    let rows = rows.iter().filter(|row| row.section == calls::SECTION && row.unit == Unit::Instructions);
    let bar = |row: &Row| {
        let (_, bare) = row.reference.as_ref()?;
        let more = (row.value / bare - 1.0) * 100.0;
        let figure = format!("{}, {more:+.1} %", shown(row.value, row.unit));
        Some(Bar { name: row.subject.clone(), value: row.value, figure, class: "c0" })
    };
    let bars: Vec<Bar> = rows.filter_map(bar).collect();
    let mut drawing = Drawing::new();
    drawing.note("and how many more instructions than a bare handler that makes the same SDK calls");
    drawing.bars(&bars);
    (!bars.is_empty()).then_some(drawing)
}

/// Requests per second of many environments: all for one organisation, and each for one of its own.
fn contended(series: &[&Series]) -> Option<Drawing> {
    let mut drawing = Drawing::new();
    drawing.note("Requests a second, 6 ms for each call of the database, overlapping writes refused");
    let bar = |series: &&Series| {
        let class = if series.name.ends_with(contention::APART) { "c2" } else { "c0" };
        let (_, value) = *series.points.first()?;
        Some(Bar { name: series.name.clone(), value, figure: shown(value, Unit::PerSecond), class })
    };
    let bars: Vec<Bar> = series.iter().filter_map(bar).collect();
    drawing.bars(&bars);
    (!bars.is_empty()).then_some(drawing)
}

/// Lines over a length; both axes are logarithmic.
fn lines(series: &[&Series]) -> Option<Drawing> {
    const LEFT: f64 = 70.0;
    const RIGHT: f64 = WIDTH - 240.0;
    const HEIGHT: f64 = 300.0;
    let points = || series.iter().flat_map(|series| &series.points);
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        let logs = || points().map(of).map(f64::log10);
        (logs().fold(f64::INFINITY, f64::min).floor(), logs().fold(f64::NEG_INFINITY, f64::max).ceil())
    };
    points().next()?;
    let ((x_from, x_to), (y_from, y_to)) = (bounds(|point| point.0), bounds(|point| point.1));
    let mut drawing = Drawing::new();
    drawing.note("Read units (upwards) by the number of rows of the list (to the right)");
    let top = drawing.y + STEP / 2.0;
    let x = |value: f64| LEFT + (value - x_from) / (x_to - x_from) * (RIGHT - LEFT);
    let y = |value: f64| top + HEIGHT - (value - y_from) / (y_to - y_from) * HEIGHT;
    for (from, to, upright) in [(x_from, x_to, true), (y_from, y_to, false)] {
        let mut power = from;
        while power <= to {
            let name = label(power);
            if upright {
                drawing.line((x(power), top), (x(power), top + HEIGHT));
                drawing.text(x(power), top + HEIGHT + 18.0, "middle", "soft", &name);
            } else {
                drawing.line((LEFT, y(power)), (RIGHT, y(power)));
                drawing.text(LEFT - 8.0, y(power) + 4.0, "end", "soft", &name);
            }
            power += 1.0;
        }
    }
    for (number, series) in series.iter().enumerate() {
        let places: Vec<(f64, f64)> =
            series.points.iter().map(|point| (x(point.0.log10()), y(point.1.log10()))).collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        drawing.body += &format!("<polyline class=\"l{}\" points=\"{}\"/>\n", number % 3, path.join(" "));
        for (x, y) in &places {
            drawing.body += &format!("<circle class=\"c{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>\n", number % 3);
        }
        if let (Some((x, y)), Some((_, units))) = (places.last(), series.points.last()) {
            let name = format!("{}: {}", series.name, shown(*units, Unit::CapacityUnits));
            drawing.text(x + 10.0, y + 4.0, "start", "", &name);
        }
    }
    drawing.y = top + HEIGHT + 30.0;
    Some(drawing)
}

/// Ten to the `power`, as text.
fn label(power: f64) -> String {
    let value = 10_f64.powf(power);
    match value {
        1e6.. => format!("{:.0} M", value / 1e6),
        1e3.. => format!("{:.0} k", value / 1e3),
        _ => format!("{value}"),
    }
}

impl Drawing {
    /// An empty drawing with room for its title.
    fn new() -> Self {
        Self { body: String::new(), y: MARGIN + 32.0 }
    }

    /// A line that explains the elements below it.
    fn note(&mut self, text: &str) {
        self.text(MARGIN, self.y + 4.0, "start", "soft", text);
        self.y += STEP;
    }

    fn bars(&mut self, bars: &[Bar]) {
        let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        for Bar { name, value, figure, class } in bars {
            let width = (value / most * (BARS_END - BARS)).max(1.0);
            self.text(BARS - 10.0, self.y + 12.0, "end", "", name);
            let (y, height) = (self.y + 1.0, STEP - 7.0);
            self.body += &format!(
                "<rect class=\"{class}\" x=\"{BARS}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" rx=\"2\"/>\n"
            );
            self.text(BARS + width + 8.0, self.y + 12.0, "start", "soft", figure);
            self.y += STEP;
        }
        self.y += STEP;
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        self.body +=
            &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>\n");
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.body += &format!("<line class=\"grid\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n");
    }

    fn finish(mut self, title: &str) -> String {
        self.text(MARGIN, MARGIN + 12.0, "start", "title", title);
        let height = self.y + MARGIN / 2.0;
        let (width, inner) = (WIDTH - 1.0, height - 1.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\">\n<style>\n{STYLE}</style>\n\
             <rect class=\"back\" x=\"0.5\" y=\"0.5\" width=\"{width}\" height=\"{inner:.1}\" rx=\"8\"/>\n{}</svg>\n",
            self.body
        )
    }
}
