//! Forged figures of performance runs.

use regatta_submission_check::check::Severity;

use super::{Class, alone, class, performance_log, scenario, with_summary};
use crate::logs::Log;

const FIGURES: &[&str] = &["figures"];
const BOTH: &[&str] = &["figures", "agreement"];

fn is_stream(log: &Log) -> bool {
    matches!(
        log.word("effective_scenario"),
        Some("SingleStream" | "MultiStream")
    )
}

fn is_server(log: &Log) -> bool {
    scenario("Server")(log)
}

fn plain_server(log: &Log) -> bool {
    is_server(log) && log.get("requested_use_token_latencies").is_none()
}

fn scaled(log: &mut Log, factor: f64) {
    for key in log.latencies() {
        log.scale(&key, factor);
    }
    let text = log.word("early_stopping_result").unwrap_or_default().to_owned();
    let words = text.split(' ').scan("", |before, word| {
        let estimate = *before == "estimate:";
        *before = word;
        let number = word.parse::<f64>().ok().filter(|_| estimate);
        Some(number.map_or_else(|| word.to_owned(), |number| format!("{:.0}", number * factor)))
    });
    let text = words.collect::<Vec<_>>().join(" ");
    log.set("early_stopping_result", &format!("\"{text}\""));
}

pub(super) const SCALED_LATENCIES: Class =
    class("latencies scaled, the rates left", FIGURES, |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, scenario("SingleStream"))?;
        let factor = random.between(0.5, 0.97);
        scaled(&mut log, factor);
        with_summary(format!("latencies times {factor:.3}"), specimen, (path, log))
    });

pub(super) const SCALED_WITH_RATE: Class = Class {
    severity: Severity::Warning,
    ..class(
        "latencies and their rate scaled, the stamps left",
        FIGURES,
        |specimen, random| {
            let (path, mut log) = performance_log(specimen, random, is_stream)?;
            let factor = random.between(0.5, 0.9);
            scaled(&mut log, factor);
            log.scale("result_qps_without_loadgen_overhead", 1.0 / factor);
            with_summary(format!("latencies times {factor:.3}"), specimen, (path, log))
        },
    )
};

pub(super) const PERCENTILE_OUT_OF_ORDER: Class =
    class("a percentile below a lower one", FIGURES, |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, |_| true)?;
        let shares = ["90.00", "95.00", "97.00", "99.00", "99.90"];
        let at = random.below(shares.len());
        let endings = ["_percentile_latency_ns", "_percentile_per_query_latency_ns"];
        let ending = endings
            .into_iter()
            .rev()
            .find(|ending| log.get(&format!("result_50.00{ending}")).is_some())?;
        let low = log.number(&format!("result_50.00{ending}"))?;
        let value = low * random.between(0.5, 0.999);
        log.set(&format!("result_{}{ending}", shares[at]), &format!("{value:.0}"));
        with_summary(format!("{} % at {value:.0}", shares[at]), specimen, (path, log))
    });

pub(super) const LATENCY_IN_ONE_LOG: Class =
    class("a latency in the detail log alone", BOTH, |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, |_| true)?;
        // The summary has none of MultiStream's samples, and only streams have estimates.
        let (multi, stream) = (scenario("MultiStream")(&log), is_stream(&log));
        let keys = log.latencies().into_iter();
        let keys: Vec<_> = keys
            .filter(|key| {
                (multi == key.contains("query") || key.contains("early"))
                    && (stream || !key.contains("early"))
            })
            .collect();
        let (key, factor) = (random.pick(&keys).clone(), random.between(0.7, 0.99));
        log.scale(&key, factor).then_some(())?;
        alone(format!("{key} times {factor:.3}"), (path, log))
    });

pub(super) const MEAN: Class = class(
    "a mean that is of no such latencies",
    FIGURES,
    |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, |log| !scenario("Offline")(log))?;
        let keys = ["result_mean_query_latency_ns", "result_mean_latency_ns"];
        let key = keys.into_iter().find(|key| log.get(key).is_some())?;
        let low = log.number(&key.replace("mean", "min"))?;
        let value = low * random.between(0.2, 0.99);
        log.set(key, &format!("{value:.0}"));
        if scenario("SingleStream")(&log) {
            log.set(
                "result_qps_without_loadgen_overhead",
                &crate::logs::six_digits(1e9 / value),
            );
        }
        with_summary(format!("{key} at {value:.0}"), specimen, (path, log))
    },
);

pub(super) const OFFLINE_RATE: Class = class("Offline's rate in both logs", FIGURES, |specimen, random| {
    let (path, mut log) = performance_log(specimen, random, scenario("Offline"))?;
    let factor = random.between(1.01, 1.5);
    log.scale("result_samples_per_second", factor);
    with_summary(format!("the rate times {factor:.3}"), specimen, (path, log))
});

pub(super) const OFFLINE_RATE_AND_TIME: Class = class(
    "Offline's rate and latencies, the stamps left",
    FIGURES,
    |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, scenario("Offline"))?;
        let factor = random.between(1.01, 1.5);
        log.scale("result_samples_per_second", factor);
        for key in log.latencies() {
            log.scale(&key, 1.0 / factor);
        }
        with_summary(format!("the rate times {factor:.3}"), specimen, (path, log))
    },
);

pub(super) const SERVER_RATE: Class = class("Server's rates in both logs", FIGURES, |specimen, random| {
    let (path, mut log) = performance_log(specimen, random, is_server)?;
    let factor = random.between(1.05, 1.5);
    log.scale("result_completed_samples_per_sec", factor);
    if random.coin() {
        log.scale("result_scheduled_samples_per_sec", factor);
    }
    with_summary(format!("the rates times {factor:.3}"), specimen, (path, log))
});

pub(super) const SERVER_TAIL: Class = class(
    "a percentile of Server above its bound",
    FIGURES,
    |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, plain_server)?;
        let value = log.number("effective_target_latency_ns")? * random.between(1.1, 10.0);
        let keys = [
            "result_99.00_percentile_latency_ns",
            "result_99.90_percentile_latency_ns",
            "result_max_latency_ns",
        ];
        for key in keys {
            log.set(key, &format!("{value:.0}"));
        }
        with_summary(format!("the tail at {value:.0}"), specimen, (path, log))
    },
);

pub(super) const LATE_QUERIES: Class =
    class("another number of late queries", FIGURES, |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, plain_server)?;
        let queries = log.number("result_query_count")?;
        let late = (queries * random.between(0.02, 0.5)).ceil();
        log.set("result_overlatency_query_count", &late.to_string());
        with_summary(format!("{late} late"), specimen, (path, log))
    });

pub(super) const CONSTRAINTS: Class = class("constraints that were not met", FIGURES, |specimen, random| {
    let (path, mut log) = performance_log(specimen, random, is_server)?;
    log.set("result_perf_constraints_met", "false");
    alone("constraints not met", (path, log))
});

pub(super) const QUERY_COUNT: Class = class("another number of queries", FIGURES, |specimen, random| {
    let (path, mut log) = performance_log(specimen, random, |log| !scenario("Offline")(log))?;
    let factor = random.pick(&[0.1, 0.5, 0.9, 1.1, 2.0, 10.0]);
    log.scale("result_query_count", *factor);
    with_summary(format!("queries times {factor}"), specimen, (path, log))
});

pub(super) const ESTIMATE: Class = class("a better estimate of early stopping", BOTH, |specimen, random| {
    let (path, mut log) = performance_log(specimen, random, is_stream)?;
    let keys = ["early_stopping_latency_ss", "early_stopping_latency_ms"];
    let key = keys.into_iter().find(|key| log.get(key).is_some())?;
    let factor = random.between(0.8, 0.999);
    log.scale(key, factor);
    alone(format!("{key} times {factor:.4}"), (path, log))
});

pub(super) const STOPPING_TEXT: Class =
    class("another paragraph of early stopping", BOTH, |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, is_stream)?;
        let keys = ["early_stopping_result", "early_stopping_ttft_result"];
        let key = keys.into_iter().find(|key| log.get(key).is_some())?;
        let text = log.get(key)?.to_owned();
        let discarded = text.split("Would discard ").nth(1)?.split(' ').next()?.to_owned();
        let other: u64 = discarded.parse::<u64>().ok()? + 1 + random.below(1000) as u64;
        let text = text.replace(&format!("discard {discarded} "), &format!("discard {other} "));
        log.set(key, &text);
        alone(format!("{other} discarded, not {discarded}"), (path, log))
    });

pub(super) const REQUIREMENT: Class = class("a requirement that was not met", FIGURES, |specimen, random| {
    let (path, mut log) = performance_log(specimen, random, |_| true)?;
    let keys = [
        "result_min_duration_met",
        "result_min_queries_met",
        "early_stopping_met",
    ];
    let key = random.pick(&keys);
    log.set(key, "false").then_some(())?;
    alone(format!("{key} false"), (path, log))
});

pub(super) const INVALID_REASON: Class = class(
    "a reason why the run is not valid",
    FIGURES,
    |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, |_| true)?;
        log.add(
            "early_stopping_met",
            "result_invalid_reason",
            "\"Reduce target QPS to improve latency. \"",
        );
        alone("a reason", (path, log))
    },
);

pub(super) const TOKEN_RATE: Class = class("another rate of tokens", BOTH, |specimen, random| {
    let keys = [
        "result_tokens_per_second",
        "result_completed_tokens_per_second",
        "result_token_throughput",
    ];
    let (path, mut log) = performance_log(specimen, random, |log| {
        log.get("requested_use_token_latencies").is_some() && keys.iter().any(|key| log.get(key).is_some())
    })?;
    // Offline's is known by its summary alone, as are made-up runs without one.
    let factor = random.between(1.05, 2.0);
    let key = keys.into_iter().find(|key| log.get(key).is_some())?;
    let summary = specimen.text(&path.replace(super::DETAIL, super::SUMMARY));
    (key == keys[1] || summary.contains("okens per second")).then_some(())?;
    log.scale(key, factor);
    alone(format!("{key} times {factor:.2}"), (path, log))
});

pub(super) const TOKEN_LATENCY: Class = class(
    "a percentile of tokens out of order",
    FIGURES,
    |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, |log| {
            log.get("result_first_token_99.00_percentile_latency_ns")
                .is_some()
                && !scenario("Offline")(log)
                && log.get("requested_use_token_latencies").is_some()
        })?;
        let keys = [
            "result_first_token_99.00_percentile_latency_ns",
            "result_time_per_output_token_99.00_percentile_ns",
            "result_first_token_max_latency_ns",
            "result_time_to_output_token_max",
        ];
        let key = random.pick(&keys);
        let factor = random.between(0.1, 0.4);
        log.scale(key, factor).then_some(())?;
        alone(format!("{key} times {factor:.2}"), (path, log))
    },
);

pub(super) const NO_STAMPS: Class = class("no stamps of the run", &["log"], |specimen, random| {
    let (path, mut log) = performance_log(specimen, random, |_| true)?;
    log.remove("power_begin");
    log.remove("power_end");
    alone("no stamps", (path, log))
});

pub(super) const END_BEFORE_BEGIN: Class =
    class("an end before the beginning", FIGURES, |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, |_| true)?;
        let (begin, end) = (
            log.get("power_begin")?.to_owned(),
            log.get("power_end")?.to_owned(),
        );
        log.set("power_begin", &end);
        log.set("power_end", &begin);
        alone("stamps exchanged", (path, log))
    });

/// Returns a time some seconds later on the same day.
fn moved(stamp: &str, seconds: i64) -> Option<String> {
    let (date, time) = stamp.trim_matches('"').split_once(' ')?;
    let mut parts = time.split(':');
    let (hour, minute) = (
        parts.next()?.parse::<i64>().ok()?,
        parts.next()?.parse::<i64>().ok()?,
    );
    let second: f64 = parts.next()?.parse().ok()?;
    let time = (hour * 60 + minute) * 60 + seconds;
    let day = 0..86_400 - 60;
    day.contains(&time).then(|| {
        format!(
            "\"{date} {:02}:{:02}:{second:06.3}\"",
            time / 3600,
            time / 60 % 60
        )
    })
}

pub(super) const END_MOVED: Class = class("another end", FIGURES, |specimen, random| {
    let (path, mut log) = performance_log(specimen, random, |_| true)?;
    let minutes = *random.pick(&[-10, -5, -1, 1, 5, 10]);
    let end = moved(log.get("power_end")?, minutes * 60)?;
    log.set("power_end", &end);
    alone(format!("the end {minutes} minutes on"), (path, log))
});

pub(super) const STAMPS_MOVED: Class = Class {
    severity: Severity::Warning,
    ..class("both stamps moved", FIGURES, |specimen, random| {
        // Loading samples may take minutes, which delay the start of a run by as much.
        let (path, mut log) = performance_log(specimen, random, |log| {
            let late = log.number("generated_query_duration").is_some();
            late && !log.text().contains("\"time_ms\": 1000000")
        })?;
        let minutes = *random.pick(&[-7, -4, 4, 7, 19, 34]);
        for key in ["power_begin", "power_end"] {
            let stamp = moved(log.get(key)?, minutes * 60)?;
            log.set(key, &stamp);
        }
        alone(format!("stamps {minutes} minutes on"), (path, log))
    })
};
