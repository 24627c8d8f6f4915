//! The distribution of a run's latencies as a plot and a table, with the percentile by which the run is judged.

use maud::{Markup, html};
use regatta_text::ErrorChain;
use regatta_types::Scenario;

use super::RunCharts;
use crate::{
    outside_text::shown,
    plot::{Axis, Line, Mark, Plot, Scale},
};
use regatta_lab_runs::LatencyDistribution;
use regatta_lab_store::RunRow;
use regatta_lab_views::wording::figure::value;
use regatta_types::documents::Metric;

/// The ratio of the longest and the shortest latency from which the axis is logarithmic.
const WIDE: f64 = 20.0;

/// Renders the section.
pub(super) fn render(row: &RunRow, charts: Option<&RunCharts>) -> Markup {
    match charts.map(|charts| &charts.latencies) {
        None => html! { p .note { "Shown once the run is recorded." } },
        Some(Err(error)) => {
            html! { p .alarm { "The detail log cannot be read: " (shown(&ErrorChain(error).to_string(), 300)) "." } }
        }
        Some(Ok(None)) => html! { p .note { "This run logged no latencies." } },
        Some(Ok(Some(latencies))) => html! {
            p .note { (what(row, latencies)) }
            (plot(row, latencies).render())
            (table(latencies))
        },
    }
}

/// Returns a description of the latencies and of how they are judged.
fn what(row: &RunRow, latencies: &LatencyDistribution) -> String {
    let of = match row.scenario {
        Scenario::MultiStream => "queries",
        _ => "samples",
    };
    let judged = match (row.scenario, latencies.judged_share) {
        (Scenario::Offline, _) | (_, None) => "Offline is judged by its rate".to_owned(),
        (Scenario::Server, Some(share)) => {
            let bound = latencies
                .bound
                .map_or_else(String::new, |bound| format!(" of {}", time(bound)));
            format!(
                "Server is VALID if the {} is within the bound{bound}",
                percentile(share)
            )
        }
        (scenario, Some(share)) => format!(
            "{scenario} is judged by early stopping's estimate of the {}",
            percentile(share)
        ),
    };
    format!(
        "Latencies of {of}. LoadGen logs these points; the lines between them are only drawn. The left axis shows percentiles, logarithmic towards 100 %. {judged}."
    )
}

fn percentile(share: f64) -> String {
    format!("{} percentile", ordinal(share * 100.0))
}

fn ordinal(percent: f64) -> String {
    let text = format!("{percent:.2}");
    format!("{}th", text.trim_end_matches('0').trim_end_matches('.'))
}

fn plot(row: &RunRow, latencies: &LatencyDistribution) -> Plot {
    let estimate = judged_estimate(row);
    let milliseconds = |nanoseconds: f64| nanoseconds / 1e6;
    let all = latencies.points.iter().map(|point| point.nanoseconds);
    let all: Vec<f64> = all
        .chain(latencies.bound)
        .chain(estimate)
        .map(milliseconds)
        .collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    let scale = if high > low * WIDE {
        Scale::Logarithmic
    } else {
        Scale::Linear
    };
    let points = latencies.points.iter();
    let mut marks = Vec::new();
    if let Some(share) = latencies.judged_share {
        marks.push(Mark::Horizontal(share, format!("judged: {}", percentile(share))));
    }
    if let Some(bound) = latencies.bound {
        marks.push(Mark::Vertical(
            milliseconds(bound),
            format!("bound {}", time(bound)),
        ));
    }
    if let Some(estimate) = estimate {
        marks.push(Mark::Vertical(
            milliseconds(estimate),
            format!("estimate {}", time(estimate)),
        ));
    }
    Plot {
        title: "Share of latencies up to a time".to_owned(),
        x: Axis::covering(scale, [low, high], "latency in ms"),
        y: Axis::covering(Scale::Nines, [0.0, 1.0], ""),
        shaded: Vec::new(),
        lines: vec![Line {
            number: 0,
            points: points
                .map(|point| (milliseconds(point.nanoseconds), Some(point.share)))
                .collect(),
            has_dots: true,
        }],
        marks,
    }
}

/// Returns the estimate by early stopping, where the run is judged by one.
fn judged_estimate(row: &RunRow) -> Option<f64> {
    let judged = row.outcome.as_ref()?.judgement.figure.as_ref()?;
    (judged.unit == "ns").then_some(judged.value)
}

fn table(latencies: &LatencyDistribution) -> Markup {
    let name = |share: f64| match share {
        0.0 => "shortest".to_owned(),
        1.0 => "longest".to_owned(),
        share => percentile(share),
    };
    html! {
        table .small role="table" aria-label="Latencies" {
            thead role="rowgroup" { tr role="row" {
                th role="columnheader" scope="col" { "Part" }
                th .number role="columnheader" scope="col" { "Latency" }
            } }
            tbody role="rowgroup" {
                @for point in &latencies.points {
                    tr role="row" {
                        th role="rowheader" scope="row" data-title="Part" {
                            (name(point.share))
                            @if latencies.judged_share == Some(point.share) { " " span .badge .v-busy { "judged" } }
                        }
                        td .number role="cell" data-title="Latency" { (time(point.nanoseconds)) }
                    }
                }
                @if let Some(mean) = latencies.mean {
                    tr role="row" {
                        th role="rowheader" scope="row" data-title="Part" { "mean" }
                        td .number role="cell" data-title="Latency" { (time(mean)) }
                    }
                }
            }
        }
    }
}

/// Formats a latency as every figure.
fn time(nanoseconds: f64) -> String {
    value(&Metric {
        name: String::new(),
        value: nanoseconds,
        unit: "ns".to_owned(),
    })
}
