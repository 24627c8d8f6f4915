//! Checks that the latencies in a log can come from one sorted series with the logged mean.

use regatta_loadgen::results::early_stopping::slow_queries;
use regatta_mllog::latency_keys::{LISTED_PERCENTILES, LatencyKeys};
use regatta_types::Scenario;

use super::{super::logged_run::LoggedRun, Sizes};
use crate::check::{finding::Findings, rules};

/// LoadGen sums latencies in 64 bits; larger sums wrap around.
const WRAP: i128 = 1 << 64;

/// A latency and its zero-based index in the sorted series.
struct Point {
    place: u64,
    latency: i128,
    key: String,
}

/// Checks all latency series of a run.
pub(super) fn check(run: &LoggedRun<'_>, sizes: &Sizes, findings: &mut Findings) {
    let tokens = run.log.flag("requested_use_token_latencies") == Some(true);
    let (samples, queries) = (sizes.samples, sizes.queries);
    let mut judge = |series: &LatencyKeys, count: u64, estimates: bool| {
        let mut points = points(run, series, count);
        if estimates {
            points.extend(self::estimates(run, sizes));
        }
        check_series(run, series, (count, points), findings);
    };
    judge(
        &LatencyKeys::SAMPLES,
        samples,
        sizes.scenario == Scenario::SingleStream && !tokens,
    );
    if sizes.scenario == Scenario::MultiStream {
        judge(&LatencyKeys::QUERIES, queries, true);
    }
    if tokens && sizes.scenario != Scenario::Offline {
        judge(
            &LatencyKeys::FIRST_TOKENS,
            samples,
            sizes.scenario == Scenario::SingleStream,
        );
        judge(&LatencyKeys::OUTPUT_TOKENS, samples, false);
    }
}

fn points(run: &LoggedRun<'_>, series: &LatencyKeys, count: u64) -> Vec<Point> {
    let point = |place: u64, key: &str| {
        let latency = run.integer(key)?;
        Some(Point {
            place,
            latency,
            key: key.to_owned(),
        })
    };
    let percentiles = LISTED_PERCENTILES.into_iter().filter_map(|percentile| {
        let place = (count as f64 * percentile.fraction) as u64;
        point(place, &series.percentile(percentile))
    });
    point(0, series.min)
        .into_iter()
        .chain(percentiles)
        .chain(point(count - 1, series.max))
        .collect()
}

/// Returns the early-stopping estimates, which are also latencies of the series.
fn estimates(run: &LoggedRun<'_>, sizes: &Sizes) -> Vec<Point> {
    let target = run.number("effective_target_latency_percentile");
    let (target, key) = match sizes.scenario {
        Scenario::SingleStream => (target, "early_stopping_latency_ss"),
        _ => (target, "early_stopping_latency_ms"),
    };
    let inferred = (sizes.scenario == Scenario::SingleStream).then_some((0.99, "early_stopping_latency_ms"));
    let both = target.map(|share| (share, key)).into_iter().chain(inferred);
    both.filter_map(|(share, key)| {
        let share = Some(share).filter(|share| (0.5..1.0).contains(share))?;
        let slow = slow_queries(sizes.queries, share)?;
        Some(Point {
            place: sizes.queries.checked_sub(slow)?,
            latency: run.integer(key)?,
            key: key.to_owned(),
        })
    })
    .collect()
}

fn check_series(
    run: &LoggedRun<'_>,
    series: &LatencyKeys,
    (count, mut points): (u64, Vec<Point>),
    findings: &mut Findings,
) {
    points.sort_by_key(|point| point.place);
    for pair in points.windows(2) {
        let [low, high] = pair else { continue };
        let fits = match low.place == high.place {
            true => low.latency == high.latency,
            false => low.latency <= high.latency,
        };
        if !fits {
            let text = format!(
                "{} is {}, {} is {}: of {count} latencies they are the {}th and the {}th",
                low.key,
                low.latency,
                high.key,
                high.latency,
                low.place + 1,
                high.place + 1
            );
            return run.error(findings, rules::FIGURES, &high.key, text);
        }
    }
    if let Some(mean) = run.integer(series.mean)
        && let Some((least, most)) = sums(count, &points)
        && !is_mean(mean, count.into(), (least, most))
    {
        let text = format!(
            "{} is {mean}, but by the percentiles it is between {} and {}",
            series.mean,
            least / i128::from(count),
            most / i128::from(count)
        );
        run.error(findings, rules::FIGURES, series.mean, text);
    }
}

/// Returns the smallest and largest possible sum of the series. Each latency is between its two neighbouring points.
fn sums(count: u64, points: &[Point]) -> Option<(i128, i128)> {
    let (first, last) = (points.first()?, points.last()?);
    // Without its minimum and maximum, the series has no bounds.
    if first.place != 0 || last.place != count - 1 {
        return None;
    }
    let between = points
        .iter()
        .zip(points.get(1..)?)
        .fold((0, 0), |(least, most), (low, high)| {
            let places = i128::from(high.place - low.place);
            (least + places * low.latency, most + places * high.latency)
        });
    Some((between.0 + last.latency, between.1 + first.latency))
}

/// Returns whether LoadGen can compute `mean` from a sum between `least` and `most`.
fn is_mean(mean: i128, count: i128, (least, most): (i128, i128)) -> bool {
    let lowest = mean.saturating_mul(count);
    let highest = lowest.saturating_add(count - 1);
    // The number of wraps that raise the sum to at least `least`.
    let missing = (least - highest).max(0);
    let wraps = (missing + WRAP - 1) / WRAP;
    // Negative latencies, from a clock that was set back, wrap in the other direction.
    least < 0 || lowest.saturating_add(wraps * WRAP) <= most
}
