//! Draws differences with their intervals as a forest plot, SVG made on the server: a line for each row, its interval, and the A/A floor as a
//! band. A plot is always beside a table with its numbers; this file does not make the table.

use maud::{Markup, html};

use super::{
    outside_text::shown,
    plot::{Axis, Scale, coordinate as n},
};

/// The size of the drawing in its own units, and the space for texts.
const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 124.0;
const TOP: f64 = 8.0;
const ROW: f64 = 26.0;
const BOTTOM: f64 = 44.0;
/// The longest name of a row in characters.
const NAME: usize = 20;
/// The largest difference that the axis covers, in percent. A wider interval is cut there.
const WIDEST: f64 = 100.0;

/// A row: its difference in percent.
pub(super) struct ForestRow {
    pub(super) name: String,
    /// The difference.
    pub(super) percent: f64,
    /// The interval of the difference.
    pub(super) interval: Option<[f64; 2]>,
    /// The A/A floor, below which differences do not count.
    pub(super) floor: f64,
    /// The verdict in a word or two.
    pub(super) verdict: &'static str,
    /// The class of its colour in the style sheet.
    pub(super) class: &'static str,
}

pub(super) struct ForestPlot {
    /// Its description, for screen readers.
    pub(super) title: String,
    /// The quantity on the axis.
    pub(super) axis: String,
    pub(super) rows: Vec<ForestRow>,
}

impl ForestPlot {
    /// Renders the drawing. Nothing without a row.
    pub(super) fn render(&self) -> Markup {
        if self.rows.is_empty() {
            return Markup::default();
        }
        let axis = self.axis();
        let height = TOP + ROW * self.rows.len() as f64 + BOTTOM;
        let bottom = height - BOTTOM;
        let right = WIDTH - RIGHT;
        let x = |percent: f64| LEFT + axis.place(percent) * (right - LEFT);
        html! {
            svg .plot viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(self.title) {
                @for (number, row) in self.rows.iter().enumerate() {
                    @let top = TOP + ROW * number as f64;
                    rect .shade x=(n(x(-row.floor))) y=(n(top + 2.0)) width=(n((x(row.floor) - x(-row.floor)).max(1.0))) height=(n(ROW - 4.0)) {}
                }
                @for (value, text) in axis.ticks() {
                    line .grid x1=(n(x(value))) x2=(n(x(value))) y1=(n(TOP)) y2=(n(bottom)) {}
                    text .tick x=(n(x(value))) y=(n(bottom + 16.0)) text-anchor="middle" { (text) }
                }
                line .mark x1=(n(x(0.0))) x2=(n(x(0.0))) y1=(n(TOP)) y2=(n(bottom)) {}
                text .axis x=(n(f64::midpoint(LEFT, right))) y=(n(height - 8.0)) text-anchor="middle" { (axis.title) }
                @for (number, row) in self.rows.iter().enumerate() {
                    (drawn(row, TOP + ROW * (number as f64 + 0.5), x))
                }
            }
        }
    }

    /// Returns the axis, which covers every interval and floor.
    fn axis(&self) -> Axis {
        let all = self.rows.iter().flat_map(|row| {
            let [low, high] = row.interval.unwrap_or([row.percent; 2]);
            [low, high, row.percent, row.floor, -row.floor]
        });
        let all = all.map(|percent| percent.clamp(-WIDEST, WIDEST));
        let (low, high) = all.fold((0.0_f64, 0.0_f64), |(low, high), percent| {
            (low.min(percent), high.max(percent))
        });
        let space = (high - low) * 0.04;
        Axis::covering(Scale::Linear, [low - space, high + space], self.axis.clone())
    }
}

/// Draws a row at a height.
fn drawn(row: &ForestRow, y: f64, x: impl Fn(f64) -> f64) -> Markup {
    html! {
        text .note x=(n(LEFT - 10.0)) y=(n(y + 4.0)) text-anchor="end" { (shown(&row.name, NAME)) }
        @if let Some([low, high]) = row.interval {
            line class={ "whisker " (row.class) } x1=(n(x(low))) x2=(n(x(high))) y1=(n(y)) y2=(n(y)) {}
            @for end in [low, high] {
                line class={ "whisker " (row.class) } x1=(n(x(end))) x2=(n(x(end))) y1=(n(y - 5.0)) y2=(n(y + 5.0)) {}
            }
        }
        circle class={ "point " (row.class) } cx=(n(x(row.percent))) cy=(n(y)) r="4.5" {}
        text .note x=(n(WIDTH - RIGHT + 12.0)) y=(n(y + 4.0)) { (row.verdict) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, percent: f64, interval: Option<[f64; 2]>) -> ForestRow {
        ForestRow {
            name: name.to_owned(),
            percent,
            interval,
            floor: 1.0,
            verdict: "worse",
            class: "f-worse",
        }
    }

    #[test]
    fn every_row_is_drawn_inside_and_names_stay_text() {
        let plot = ForestPlot {
            title: "B <against> A".to_owned(),
            axis: "difference in %".to_owned(),
            rows: vec![
                row("<script>\u{202e}", 3.0, Some([2.0, 4.0])),
                row(&"long".repeat(9), 900.0, Some([-900.0, f64::MAX])),
                row("single", -4.0, None),
            ],
        };
        let drawn = plot.render().into_string();
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert_eq!(drawn.matches("whisker").count(), 6, "{drawn}");
        assert!(
            drawn.contains(r"&lt;script&gt;\u{202e}") && drawn.contains("B &lt;against&gt; A"),
            "{drawn}"
        );
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        let places = drawn
            .split("cx=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap());
        let places: Vec<f64> = places.map(|place| place.parse().unwrap()).collect();
        assert!(
            places.iter().all(|place| (LEFT..=WIDTH - RIGHT).contains(place)),
            "{places:?}"
        );
    }

    #[test]
    fn empty_comparison_has_no_plot() {
        let plot = ForestPlot {
            title: String::new(),
            axis: String::new(),
            rows: Vec::new(),
        };
        assert_eq!(plot.render().into_string(), "");
    }
}
