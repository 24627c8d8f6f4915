//! The watts of both runs of a session over time: a plot with the phases, and a table with the power of each.

use jiff::Timestamp;
use maud::{Markup, html};
use regatta_submission_check::check::power::{PowerSample, PowerTimeline};
use regatta_text::significant;

use crate::plot::{Axis, Line, Mark, Plot, Scale, swatch};
use regatta_lab_views::wording;

/// The number of points of a run; more samples are averaged.
const MAX_POINTS: usize = 300;
/// The longest time that the plot covers, in seconds: clocks may be wrong.
const MAX: f64 = 7.0 * 86_400.0;

/// Renders the plot and its table.
pub(super) fn render(timelines: &[PowerTimeline]) -> Markup {
    let parts: Vec<&PowerTimeline> = timelines
        .iter()
        .filter(|part| known(&part.samples).next().is_some())
        .collect();
    let first = parts
        .iter()
        .flat_map(|part| known(&part.samples))
        .map(|sample| sample.seconds)
        .fold(f64::INFINITY, f64::min);
    let last = parts
        .iter()
        .flat_map(|part| known(&part.samples))
        .map(|sample| sample.seconds)
        .fold(f64::NEG_INFINITY, f64::max);
    if parts.is_empty() {
        return html! { p .note { "There are no samples of the meter yet." } };
    }
    html! {
        p .note { "PTDaemon samples once a second. The shaded parts are LoadGen's, and the dashed lines are where each phase began." }
        @if last - first <= MAX {
            (plot(&parts, first, last).render())
        } @else {
            p .alarm { "The samples are not drawn: their times are more than a week apart." }
        }
        (table(&parts))
    }
}

fn known(samples: &[PowerSample]) -> impl Iterator<Item = &PowerSample> {
    samples.iter().filter(|sample| sample.watts > 0.0)
}

fn plot(parts: &[&PowerTimeline], first: f64, last: f64) -> Plot {
    let since = |seconds: f64| seconds - first;
    let lines: Vec<Line> = parts
        .iter()
        .enumerate()
        .map(|(number, part)| Line {
            number,
            points: points(part, first),
            has_dots: part.samples.len() < 4,
        })
        .collect();
    let highest = lines
        .iter()
        .flat_map(|line| &line.points)
        .filter_map(|(_, watts)| *watts)
        .fold(0.0, f64::max);
    Plot {
        title: "Watts over time".to_owned(),
        x: Axis::covering(
            Scale::Linear,
            [0.0, since(last)],
            "seconds since the first sample",
        ),
        y: Axis::covering(Scale::Linear, [0.0, highest * 1.05], "W"),
        shaded: parts
            .iter()
            .filter_map(|part| part.window.map(|window| window.map(since)))
            .collect(),
        lines,
        marks: parts
            .iter()
            .map(|part| {
                let began = part
                    .checkpoints
                    .first()
                    .copied()
                    .or_else(|| known(&part.samples).next().map(|sample| sample.seconds));
                Mark::Vertical(
                    since(began.unwrap_or(first)).clamp(0.0, since(last)),
                    part.name.to_owned(),
                )
            })
            .collect(),
    }
}

/// Returns the points of a line, each the mean of as many samples as needed. A point without any power is a gap.
fn points(part: &PowerTimeline, first: f64) -> Vec<(f64, Option<f64>)> {
    let merged = part.samples.len().div_ceil(MAX_POINTS).max(1);
    part.samples
        .chunks(merged)
        .map(|samples| {
            let seconds = samples.iter().map(|sample| sample.seconds).sum::<f64>() / samples.len() as f64;
            (
                seconds - first,
                Summary::of(known(samples)).map(|summary| summary.mean),
            )
        })
        .collect()
}

/// The power of a part of a session.
struct Summary {
    samples: usize,
    lowest: f64,
    mean: f64,
    highest: f64,
}

impl Summary {
    fn of<'a>(samples: impl Iterator<Item = &'a PowerSample>) -> Option<Self> {
        let watts: Vec<f64> = samples.map(|sample| sample.watts).collect();
        (!watts.is_empty()).then(|| Self {
            samples: watts.len(),
            lowest: watts.iter().copied().fold(f64::INFINITY, f64::min),
            mean: watts.iter().sum::<f64>() / watts.len() as f64,
            highest: watts.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

fn table(parts: &[&PowerTimeline]) -> Markup {
    let titles = [
        "Part",
        "Began (UTC)",
        "Took",
        "Samples",
        "Lowest",
        "Mean",
        "Highest",
    ];
    html! {
        table .watts role="table" aria-label="Power of each phase" {
            thead role="rowgroup" { tr role="row" { @for title in titles { th role="columnheader" scope="col" { (title) } } } }
            tbody role="rowgroup" {
                @for (number, part) in parts.iter().enumerate() {
                    @let ends = [part.samples.first(), part.samples.last()].map(|sample| sample.map_or(0.0, |sample| sample.seconds));
                    (row(part.name, Some(number), ends, Summary::of(known(&part.samples))))
                    @if let Some([from, to]) = part.window {
                        @let within = known(&part.samples).filter(|sample| sample.seconds > from && sample.seconds < to);
                        (row(&format!("{}, while LoadGen ran", part.name), None, [from, to], Summary::of(within)))
                    }
                }
            }
        }
    }
}

fn row(name: &str, number: Option<usize>, [from, to]: [f64; 2], summary: Option<Summary>) -> Markup {
    let began = Timestamp::from_second(from as i64)
        .map_or_else(|_| String::new(), |began| wording::time(&began.to_string()));
    let watts =
        |value: Option<f64>| value.map_or_else(String::new, |value| format!("{} W", significant(value, 4)));
    let of = |figure: fn(&Summary) -> f64| watts(summary.as_ref().map(figure));
    html! {
        tr role="row" {
            th role="rowheader" scope="row" data-title="Part" { @if let Some(number) = number { (swatch(number)) " " } (name) }
            td role="cell" data-title="Began (UTC)" { (began) }
            td .number role="cell" data-title="Took" { (wording::figure::duration(to - from)) }
            td .number role="cell" data-title="Samples" { (summary.as_ref().map_or(0, |summary| summary.samples)) }
            td .number role="cell" data-title="Lowest" { (of(|summary| summary.lowest)) }
            td .number role="cell" data-title="Mean" { (of(|summary| summary.mean)) }
            td .number role="cell" data-title="Highest" { (of(|summary| summary.highest)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &'static str, from: u32, count: u32, window: Option<[f64; 2]>) -> PowerTimeline {
        let samples = (from..from + count).map(|second| PowerSample {
            seconds: f64::from(second),
            watts: if second % 50 == 7 {
                -1.0
            } else {
                20.0 + f64::from(second % 3)
            },
        });
        PowerTimeline {
            name,
            samples: samples.collect(),
            window,
            checkpoints: vec![f64::from(from)],
        }
    }

    #[test]
    fn a_day_of_samples_is_a_small_plot_with_its_table() {
        let day = [
            part("ranging", 1_000, 40_000, Some([1_010.0, 40_900.0])),
            part("testing", 41_100, 40_000, Some([41_110.0, 81_000.0])),
        ];
        let drawn = render(&day).into_string();
        assert!(drawn.len() < 20_000, "{} bytes", drawn.len());
        assert_eq!(
            (
                drawn.matches("class=\"shade\"").count(),
                drawn.matches("<tr").count()
            ),
            (2, 5),
            "{drawn}"
        );
        for part in [
            ">ranging</text>",
            ">testing</text>",
            "testing, while LoadGen ran",
            "20.00 W",
            "21.00 W",
            "22.00 W",
        ] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn wrong_clocks_and_no_samples_are_reported() {
        let mut apart = [part("ranging", 1_000, 10, None), part("testing", 2_000, 10, None)];
        for sample in &mut apart[1].samples {
            sample.seconds += 1e9;
        }
        assert!(render(&apart).into_string().contains("more than a week apart"));
        assert!(
            render(&[part("ranging", 0, 0, None)])
                .into_string()
                .contains("no samples")
        );
    }
}
