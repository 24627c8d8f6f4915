//! The sensors of a run over time: a plot and a table for each quantity that the device reported.

use maud::{Markup, html};
use regatta_text::{ErrorChain, significant};

use super::RunCharts;
use crate::{
    outside_text::shown,
    plot::{Axis, Line, Plot, Scale, swatch},
};
use regatta_lab_runs::{Quantity, RunTelemetry, TelemetryColumn};

/// The longest name of a sensor in characters.
const NAME: usize = 40;

/// Renders the section.
pub(super) fn render(charts: Option<&RunCharts>) -> Markup {
    match charts.map(|charts| &charts.telemetry) {
        None => html! { p .note { "Shown once the run is recorded." } },
        Some(Err(error)) => {
            html! { p .alarm { "The samples cannot be read: " (shown(&ErrorChain(error).to_string(), 300)) "." } }
        }
        Some(Ok(Some(telemetry))) if !telemetry.columns.is_empty() => html! {
            p .note { (what(telemetry)) }
            @for quantity in Quantity::ALL { (chart(telemetry, quantity)) }
        },
        Some(Ok(_)) => html! { p .note { "The device reported no sensors." } },
    }
}

fn what(telemetry: &RunTelemetry) -> String {
    let sampled = match telemetry.merged {
        1 => "The device sampled once a second".to_owned(),
        merged => format!("The device sampled once a second; each point is the mean of {merged} samples"),
    };
    match telemetry.window {
        Some([from, to]) => {
            format!("{sampled}. The shaded part is LoadGen's: from {from:.0} s to {to:.0} s.")
        }
        None => format!("{sampled}. LoadGen did not measure during a sample."),
    }
}

fn chart(telemetry: &RunTelemetry, quantity: Quantity) -> Markup {
    let columns: Vec<&TelemetryColumn> = telemetry
        .columns
        .iter()
        .filter(|column| column.quantity == quantity)
        .collect();
    if columns.is_empty() {
        return Markup::default();
    }
    let (title, unit) = quantity.title();
    let values = || {
        columns
            .iter()
            .flat_map(|column| &column.values)
            .copied()
            .flatten()
    };
    let (low, high) = match quantity {
        Quantity::Load => (0.0, 100.0),
        _ => (
            values().fold(f64::INFINITY, f64::min),
            values().fold(f64::NEG_INFINITY, f64::max),
        ),
    };
    let last = telemetry.seconds.last().copied().unwrap_or(0.0);
    let first = telemetry.seconds.first().copied().unwrap_or(0.0);
    let lines = columns.iter().enumerate().map(|(number, column)| Line {
        number,
        points: telemetry
            .seconds
            .iter()
            .copied()
            .zip(column.values.iter().copied())
            .collect(),
        has_dots: telemetry.seconds.len() < 4,
    });
    let plot = Plot {
        title: format!("{title} over time"),
        x: Axis::covering(Scale::Linear, [first, last], "seconds since the first sample"),
        y: Axis::covering(Scale::Linear, [low, high], ""),
        shaded: telemetry.window.into_iter().collect(),
        lines: lines.collect(),
        marks: Vec::new(),
    };
    html! {
        h3 { (title) " in " (unit) }
        (plot.render())
        table .small role="table" aria-label={ (title) " in " (unit) " while LoadGen ran" } {
            thead role="rowgroup" { tr role="row" {
                @for heading in ["Sensor", "Lowest", "Mean", "Highest"] {
                    th .number[heading != "Sensor"] role="columnheader" scope="col" { (heading) }
                }
            } }
            tbody role="rowgroup" {
                @for (number, column) in columns.iter().enumerate() {
                    @if let Some(summary) = telemetry.summary(column) {
                        tr role="row" {
                            th role="rowheader" scope="row" data-title="Sensor" { (swatch(number)) " " (shown(&column.name, NAME)) }
                            @for (value, heading) in summary.iter().zip(["Lowest", "Mean", "Highest"]) {
                                td .number role="cell" data-title=(heading) { (significant(*value, 4)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
