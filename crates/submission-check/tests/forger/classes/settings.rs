//! Forged settings, seeds and records.

use super::{Class, alone, any_log, class, performance_log, scenario};
use crate::logs::Log;

const SETTINGS: &[&str] = &["settings"];

/// Settings that LoadGen applies as they were requested.
const TAKEN_OVER: [&str; 14] = [
    "min_duration_ms",
    "max_duration_ms",
    "max_query_count",
    "qsl_rng_seed",
    "sample_index_rng_seed",
    "schedule_rng_seed",
    "accuracy_log_rng_seed",
    "accuracy_log_probability",
    "accuracy_log_sampling_target",
    "print_timestamps",
    "performance_issue_unique",
    "performance_issue_same",
    "performance_issue_same_index",
    "sample_concatenate_permutation",
];

fn other(value: &str) -> String {
    match value {
        "true" => "false".to_owned(),
        "false" => "true".to_owned(),
        number => match number.parse::<u64>() {
            Ok(number) => (number ^ 7).to_string(),
            Err(_) => (number.parse::<f64>().unwrap_or(0.0) + 1.0).to_string(),
        },
    }
}

pub(super) const EFFECTIVE: Class = class("an effective setting alone", SETTINGS, |specimen, random| {
    let (path, mut log) = any_log(specimen, random, |_| true)?;
    let keys: Vec<_> = log
        .keys()
        .into_iter()
        .filter(|key| key.starts_with("effective_"))
        .collect();
    let key = random.pick(&keys).clone();
    let value = match log.get(&key)? {
        text if text.starts_with('"') => match key.ends_with("scenario") {
            true => "\"MultiStream\"".to_owned(),
            false => "\"FindPeakPerformance\"".to_owned(),
        },
        number => other(number),
    };
    (log.set(&key, &value) && value.parse::<f64>().ok() != log.number(&key).map(|_| f64::NAN))
        .then_some(())?;
    alone(format!("{key} as {value}"), (path, log))
});

pub(super) const REQUESTED: Class = class("a requested setting alone", SETTINGS, |specimen, random| {
    let (path, mut log) = any_log(specimen, random, |_| true)?;
    let key = format!("requested_{}", random.pick(&TAKEN_OVER));
    let value = other(log.get(&key)?);
    log.set(&key, &value).then_some(())?;
    alone(format!("{key} as {value}"), (path, log))
});

pub(super) const PERCENTILE: Class = class(
    "an easier percentile",
    &["settings", "figures", "prescribed-settings"],
    |specimen, random| {
        let (path, mut log) = performance_log(specimen, random, |log| !scenario("Offline")(log))?;
        let value = random.pick(&["0.5", "0.8", "0.95"]);
        let mut keys = vec!["effective_target_latency_percentile".to_owned()];
        if random.coin() {
            keys.extend(
                log.keys()
                    .into_iter()
                    .filter(|key| key.starts_with("requested_") && key.ends_with("latency_percentile")),
            );
        }
        for key in &keys {
            log.set(key, value);
        }
        alone(format!("{keys:?} as {value}"), (path, log))
    },
);

pub(super) const ONE_SAMPLE_A_QUERY: Class = class(
    "MultiStream with one sample a query",
    &["settings", "prescribed-settings"],
    |specimen, random| {
        let (path, mut log) = any_log(specimen, random, scenario("MultiStream"))?;
        let samples = random.pick(&["1", "2", "4"]);
        log.set("effective_samples_per_query", samples);
        if random.coin() {
            log.set("requested_multi_stream_samples_per_query", samples);
            log.set("generated_samples_per_query", samples);
            let queries = log.number("effective_min_query_count")?;
            log.set(
                "effective_min_sample_count",
                &(queries * samples.parse::<f64>().unwrap()).to_string(),
            );
        }
        alone(format!("{samples} samples a query"), (path, log))
    },
);

pub(super) const GENERATED_SAMPLES: Class = class(
    "other samples than were generated",
    &["settings", "figures"],
    |specimen, random| {
        let (path, mut log) = any_log(specimen, random, |_| true)?;
        let factor = *random.pick(&[0.5, 2.0, 3.0]);
        log.scale("generated_samples_per_query", factor).then_some(())?;
        alone(format!("generated samples times {factor}"), (path, log))
    },
);

pub(super) const GENERATED_QUERIES: Class = class(
    "other queries than were generated",
    SETTINGS,
    |specimen, random| {
        let (path, mut log) = any_log(specimen, random, |log| !scenario("Offline")(log))?;
        let key = random.pick(&["generated_query_count", "generated_query_duration"]);
        let factor = *random.pick(&[0.5, 0.9, 1.1, 2.0]);
        log.scale(key, factor).then_some(())?;
        alone(format!("{key} times {factor}"), (path, log))
    },
);

/// The round's seeds in place of others, whose samples were loaded.
pub(super) const SEEDS: Class = Class {
    severity: regatta_submission_check::check::Severity::Warning,
    ..class("the round's seeds over others", SETTINGS, |specimen, random| {
        let (path, log) = any_log(specimen, random, |log| {
            log.number("qsl_reported_total_count")
                .is_some_and(|count| count < 1e5)
        })?;
        let text = log.text();
        let (before, list) = text.split_once("\"loaded_qsl_set\", \"value\": [")?;
        let (list, after) = list.split_once(']')?;
        let mut samples: Vec<_> = list.split(',').collect();
        let turned = 1 + random.below(samples.len() - 1);
        samples.rotate_left(turned);
        let text = format!(
            "{before}\"loaded_qsl_set\", \"value\": [{}]{after}",
            samples.join(",")
        );
        alone("samples of other seeds", (path, Log::of(&text)))
    })
};

pub(super) const LIBRARY: Class = Class {
    severity: regatta_submission_check::check::Severity::Warning,
    ..class(
        "a larger library than there was",
        &["settings", "dataset"],
        |specimen, random| {
            let (path, mut log) = any_log(specimen, random, |log| {
                log.number("qsl_reported_total_count")
                    .is_some_and(|count| count < 1e5)
            })?;
            let factor = *random.pick(&[0.5, 1.5, 2.0]);
            log.scale("qsl_reported_total_count", factor);
            alone(format!("the library times {factor}"), (path, log))
        },
    )
};

pub(super) const RECORD_REMOVED: Class = class("a record taken out", &["log"], |specimen, random| {
    let (path, mut log) = any_log(specimen, random, |_| true)?;
    let needed = |key: &String| {
        let of_run = [
            "requested_",
            "effective_",
            "generated_",
            "result_",
            "power_",
            "qsl_",
            "test_",
        ];
        // Records that only some LoadGens or settings write may be missing.
        let sometimes = [
            "token",
            "inferred",
            "concatenate",
            "accuracy_sample",
            "find_peak",
            "coalesce",
            "issue_query",
        ];
        of_run.iter().any(|start| key.starts_with(start)) && !sometimes.iter().any(|part| key.contains(part))
    };
    let keys: Vec<_> = log.keys().into_iter().filter(needed).collect();
    let key = random.pick(&keys).clone();
    // Made-up logs have records of other scenarios, too.
    let scenario = log.word("effective_scenario")?.to_owned();
    let of_other = match scenario.as_str() {
        "Offline" => [
            "stopping_latency",
            "qps_with",
            "query_latency",
            "scheduled",
            "completed",
            "per_query",
        ]
        .as_slice(),
        "Server" => &[
            "stopping_latency",
            "qps_with",
            "query_latency",
            "samples_per_second",
            "per_query",
        ],
        "SingleStream" => &[
            "query_latency",
            "scheduled",
            "completed",
            "samples_per_second",
            "per_query",
        ],
        _ => &["qps_with", "scheduled", "completed", "samples_per_second"],
    };
    let setting =
        key.starts_with("requested_") || key.starts_with("effective_") || key.starts_with("generated_");
    (setting || !of_other.iter().any(|part| key.contains(part))).then_some(())?;
    log.remove(&key);
    // Accuracy runs write some records for each set of samples.
    log.get(&key).is_none().then_some(())?;
    alone(format!("no {key}"), (path, log))
});

pub(super) const RECORD_REPEATED: Class = class("a record with two values", &["log"], |specimen, random| {
    let (path, mut log) = performance_log(specimen, random, |_| true)?;
    let keys: Vec<_> = log
        .keys()
        .into_iter()
        .filter(|key| log.number(key).is_some() && !key.starts_with("logger_"))
        .collect();
    let key = random.pick(&keys).clone();
    let value = other(log.get(&key)?);
    log.repeat(&key, &value).then_some(())?;
    alone(format!("{key} twice, as {value}, too"), (path, log))
});

pub(super) const ERROR_RECORD: Class = class(
    "an error's record made a plain one",
    &["loadgen-errors", "agreement"],
    |specimen, random| {
        let (path, log) = any_log(specimen, random, |_| true)?;
        let keys = log.keys();
        let key = random.pick(&keys);
        let start = format!(":::MLLOG {{\"key\": \"{key}\"");
        let text: String = log
            .text()
            .split_inclusive('\n')
            .map(|line| match line.starts_with(&start) {
                true => line.replace("\"is_error\": false", "\"is_error\": true"),
                false => line.to_owned(),
            })
            .collect();
        (text != log.text()).then_some(())?;
        alone(format!("{key} marked as an error"), (path, Log::of(&text)))
    },
);
