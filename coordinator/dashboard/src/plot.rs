//! Draws lines over two axes as SVG on the server. Colours and fonts come from the style sheet, so that a plot fits light and dark. A plot is
//! always beside a table with its numbers; this file does not make the table.

mod axis;

use maud::{Markup, html};

pub(super) use self::axis::{Axis, Scale};
use self::coordinate as n;

/// The size of the drawing in its own units, and the space for the axes' texts.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 40.0;

/// A line of a plot. A point without a value is a gap.
pub(super) struct Line {
    /// Its number, which chooses its colour and dashes.
    pub(super) number: usize,
    pub(super) points: Vec<(f64, Option<f64>)>,
    /// Whether each point is marked.
    pub(super) has_dots: bool,
}

/// A straight mark across the plot with a short text.
pub(super) enum Mark {
    /// A line at a value of the lower axis.
    Vertical(f64, String),
    /// A line at a value of the left axis.
    Horizontal(f64, String),
}

pub(super) struct Plot {
    /// Its description, for screen readers.
    pub(super) title: String,
    /// The lower axis.
    pub(super) x: Axis,
    /// The left axis.
    pub(super) y: Axis,
    /// The parts of the lower axis that are shaded.
    pub(super) shaded: Vec<[f64; 2]>,
    pub(super) lines: Vec<Line>,
    pub(super) marks: Vec<Mark>,
}

impl Plot {
    /// Renders the drawing.
    pub(super) fn render(&self) -> Markup {
        let x = |value: f64| LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM);
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        html! {
            svg .plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.title) {
                @for [from, to] in &self.shaded {
                    rect .shade x=(n(x(*from))) y=(n(TOP)) width=(n((x(*to) - x(*from)).max(1.0))) height=(n(bottom - TOP)) {}
                }
                @for (value, text) in self.y.ticks() {
                    line .grid x1=(n(LEFT)) x2=(n(right)) y1=(n(y(value))) y2=(n(y(value))) {}
                    text .tick x=(n(LEFT - 6.0)) y=(n(y(value) + 4.0)) text-anchor="end" { (text) }
                }
                @for (value, text) in self.x.ticks() {
                    line .grid x1=(n(x(value))) x2=(n(x(value))) y1=(n(TOP)) y2=(n(bottom)) {}
                    text .tick x=(n(x(value))) y=(n(bottom + 16.0)) text-anchor="middle" { (text) }
                }
                text .axis x=(n(f64::midpoint(LEFT, right))) y=(n(HEIGHT - 6.0)) text-anchor="middle" { (self.x.title) }
                @for line in &self.lines {
                    path class={ "line c" (line.number % COLOURS) } d=(path(&line.points, x, y)) {}
                    @if line.has_dots {
                        @for (at, value) in known(&line.points) {
                            circle class={ "dot c" (line.number % COLOURS) } cx=(n(x(at))) cy=(n(y(value))) r="3.5" {}
                        }
                    }
                }
                @for mark in &self.marks {
                    @match mark {
                        Mark::Vertical(value, text) => {
                            line .mark x1=(n(x(*value))) x2=(n(x(*value))) y1=(n(TOP)) y2=(n(bottom)) {}
                            @let is_right = x(*value) > f64::midpoint(LEFT, right);
                            text .note x=(n(x(*value) + if is_right { -6.0 } else { 6.0 })) y=(n(bottom - 8.0))
                                text-anchor=(if is_right { "end" } else { "start" }) { (text) }
                        }
                        Mark::Horizontal(value, text) => {
                            line .mark x1=(n(LEFT)) x2=(n(right)) y1=(n(y(*value))) y2=(n(y(*value))) {}
                            text .note x=(n(right - 6.0)) y=(n(y(*value) - 5.0)) text-anchor="end" { (text) }
                        }
                    }
                }
            }
        }
    }
}

/// The number of colours of lines in the style sheet.
pub(super) const COLOURS: usize = 8;

/// Renders the sample of a line for a table.
pub(super) fn swatch(number: usize) -> Markup {
    html! {
        svg .swatch viewBox="0 0 28 10" aria-hidden="true" { path class={ "line c" (number % COLOURS) } d="M1 5H27" {} }
    }
}

fn known(points: &[(f64, Option<f64>)]) -> impl Iterator<Item = (f64, f64)> {
    points.iter().filter_map(|(at, value)| Some((*at, (*value)?)))
}

fn path(points: &[(f64, Option<f64>)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let (mut path, mut is_drawing) = (String::new(), false);
    for (at, value) in points {
        if let Some(value) = value {
            path.push(if is_drawing { 'L' } else { 'M' });
            path.push_str(&format!("{} {}", n(x(*at)), n(y(*value))));
        }
        is_drawing = value.is_some();
    }
    path
}

/// Formats a coordinate with as many digits as can be seen.
pub(super) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_interrupts_a_line() {
        let points = [(0.0, Some(1.0)), (1.0, Some(2.0)), (2.0, None), (3.0, Some(0.5))];
        assert_eq!(path(&points, |x| x, |y| y), "M0 1L1 2M3 0.5");
    }

    #[test]
    fn a_plot_is_inside_its_frame() {
        let plot = Plot {
            title: "a <plot>".to_owned(),
            x: Axis::covering(Scale::Linear, [0.0, 10.0], "s"),
            y: Axis::covering(Scale::Linear, [5.0, 5.0], "W"),
            shaded: vec![[2.0, 8.0]],
            lines: vec![Line {
                number: 9,
                points: vec![(0.0, Some(5.0)), (10.0, Some(5.0))],
                has_dots: true,
            }],
            marks: vec![Mark::Horizontal(5.0, "<b>".to_owned())],
        };
        let drawn = plot.render().into_string();
        assert!(
            drawn.contains("a &lt;plot&gt;") && drawn.contains("&lt;b&gt;"),
            "{drawn}"
        );
        assert!(
            drawn.contains("line c1") && !drawn.contains("NaN") && !drawn.contains("inf"),
            "{drawn}"
        );
    }
}
