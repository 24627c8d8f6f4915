//! Tests that our verdict on given latencies equals the official one's, log for log.

use std::{fs, path::Path};

use regatta_loadgen::{
    effective::EffectiveSettings,
    results::{Latencies, Results, SeriesResult, TokenLatencies},
};
use regatta_mllog::summary::SummaryWriter;
use regatta_types::{Mode, Scenario};

use crate::{
    builds::Build,
    cases::{Case, Draw},
    draws,
    logs::{detail_lines, without_log_facts},
    oracle::Oracle,
    tally::Tally,
};

/// Latencies and times as input of both sides.
struct Measured {
    samples: Vec<i64>,
    queries: Vec<i64>,
    first_tokens: Vec<i64>,
    per_token: Vec<i64>,
    token_counts: Vec<i64>,
    queries_issued: u64,
    /// Longest latency; last query due, issued, done: seconds.
    times: [f64; 4],
}

fn measure(draw: &mut Draw, settings: &EffectiveSettings) -> Measured {
    let few = [1, 2, 60, 63, 64, 65, 661, 662, 663, 1000];
    let queries = match draw.below(3) {
        0 => few[usize::try_from(draw.below(10)).unwrap()],
        1 => 1 + draw.below(3000),
        _ => 1 + draw.below(40_000),
    };
    let centre = 10_u64.pow(3 + u32::try_from(draw.below(6)).unwrap());
    let mut latency = |spread: u64| (centre + draw.below(1 + centre * spread)).cast_signed();
    let per_query = match settings.scenario {
        Scenario::MultiStream => settings.samples_per_query,
        _ => 1,
    };
    let samples: Vec<i64> = (0..queries * per_query).map(|_| latency(9)).collect();
    let by_query = samples
        .chunks(usize::try_from(per_query).unwrap())
        .map(|s| *s.iter().max().unwrap());
    let queries_ns = if settings.scenario == Scenario::MultiStream {
        by_query.collect()
    } else {
        Vec::new()
    };
    let tokens = settings.use_token_latencies;
    let first_tokens = if tokens {
        samples.iter().map(|&s| s / 3).collect()
    } else {
        Vec::new()
    };
    let per_token = if tokens {
        samples.iter().map(|&s| s / 20).collect()
    } else {
        Vec::new()
    };
    let token_counts = if tokens {
        samples.iter().map(|&s| 2 + s % 40).collect()
    } else {
        Vec::new()
    };
    #[expect(clippy::cast_precision_loss, reason = "a drawn time")]
    let mut seconds = |low: u64| (low + draw.below(9_000_000_000)) as f64 / 1e9;
    let times = [seconds(1), seconds(1), seconds(1), seconds(1)];
    let queries_issued = if settings.scenario == Scenario::Offline {
        1
    } else {
        queries
    };
    Measured {
        samples,
        queries: queries_ns,
        first_tokens,
        per_token,
        token_counts,
        queries_issued,
        times,
    }
}

fn ours(
    settings: &EffectiveSettings,
    errors: &[String],
    measured: &Measured,
) -> (String, Vec<(String, String)>) {
    let series = SeriesResult {
        samples: Latencies::from_values(measured.samples.clone()),
        queries: Latencies::from_values(measured.queries.clone()),
        queries_issued: measured.queries_issued,
        max_latency_s: measured.times[0],
        final_query_scheduled_s: measured.times[1],
        final_query_issued_s: measured.times[2],
        final_query_done_s: measured.times[3],
        tokens: TokenLatencies {
            first: Latencies::from_values(measured.first_tokens.clone()),
            per_token: Latencies::from_values(measured.per_token.clone()),
            count: measured.token_counts.iter().sum::<i64>().cast_unsigned(),
        },
    };
    let results = Results::new("EchoSUT", settings, &series);
    let (mut summary, mut detail) = (Vec::new(), Vec::new());
    results
        .write_summary(&mut SummaryWriter::new(&mut summary))
        .unwrap();
    SummaryWriter::new(&mut summary)
        .finish(0, errors.len() as u64)
        .unwrap();
    results.write_detail_lines(&mut detail).unwrap();
    let error_line = |error: &String| ("error_invalid_test_settings".to_owned(), format!("\"{error}\""));
    let mut lines: Vec<_> = errors.iter().map(error_line).collect();
    lines.extend(detail_lines(&String::from_utf8(detail).unwrap()));
    lines.push(("num_errors".to_owned(), errors.len().to_string()));
    (String::from_utf8(summary).unwrap(), lines)
}

fn dump(dir: &Path, name: &str, words: &[i64]) -> (&'static str, String) {
    let path = dir.join(format!("{name}.bin"));
    fs::write(
        &path,
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<_>>(),
    )
    .unwrap();
    let option = [
        "latencies",
        "query-latencies",
        "first-tokens",
        "time-per-token",
        "token-counts",
    ];
    (
        option.into_iter().find(|&o| o == name).unwrap(),
        path.display().to_string(),
    )
}

fn theirs(oracle: &Oracle, case: &Case, measured: &Measured) -> (String, Vec<(String, String)>) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = vec![
        dump(dir.path(), "latencies", &measured.samples),
        dump(dir.path(), "query-latencies", &measured.queries),
        dump(dir.path(), "first-tokens", &measured.first_tokens),
        dump(dir.path(), "time-per-token", &measured.per_token),
        dump(dir.path(), "token-counts", &measured.token_counts),
        ("queries-issued", measured.queries_issued.to_string()),
    ];
    let names = ["max-latency", "final-scheduled", "final-issued", "final-done"];
    options.extend(
        names
            .into_iter()
            .zip(measured.times.iter().map(ToString::to_string)),
    );
    oracle.run("results", case, dir.path(), &options);
    let read = |name: &str| fs::read_to_string(dir.path().join(format!("mlperf_log_{name}.txt"))).unwrap();
    (read("summary"), without_log_facts(detail_lines(&read("detail"))))
}

#[test]
fn every_verdict_equals_the_official_one() {
    // 4.1.30 writes percentiles in another form.
    for build in [Build::NEWEST, Build::OLDER[0]] {
        let Some(oracle) = build.find() else { continue };
        println!(
            "Verdicts on given latencies, {}:\n{}",
            build.name,
            compare(&oracle, build)
        );
    }
}

fn compare(oracle: &Oracle, build: Build) -> Tally {
    let (count, seed) = draws();
    let mut draw = Draw::new(seed ^ 0x5EED);
    let mut tally = Tally::default();
    for index in 0..count {
        let mut case = draw.case(3000);
        case.mode = Mode::PerformanceOnly;
        let percentile = ["50", "90", "97", "99", "99.9"][usize::try_from(draw.below(5)).unwrap()];
        case.user_conf
            .push_str(&format!("*.*.target_latency_percentile = {percentile}\n"));
        case.user_conf
            .push_str(&format!("*.Server.target_latency = {}\n", 1 + draw.below(50)));
        let mut request = case.request(Path::new("."));
        request.audit_config = None;
        let settings = request.resolve().unwrap().settings;
        let (settings, errors) = EffectiveSettings::new(&settings, case.library());
        let measured = measure(&mut draw, &settings);
        let (ours, theirs) = (
            ours(&settings, &errors, &measured),
            theirs(oracle, &case, &measured),
        );
        assert_eq!(
            build.as_its_summary(&ours.0),
            theirs.0,
            "summary of case {index}: {case:#?}"
        );
        assert_eq!(ours.1, theirs.1, "detail of case {index}: {case:#?}");
        tally.equal(&case);
    }
    tally
}
