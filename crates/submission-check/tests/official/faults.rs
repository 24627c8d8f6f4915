//! Faults that submissions have: changed values of logs and documents, lost, swapped and misplaced files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proptest::{prelude::*, sample::Index};

/// A fault. Its place is drawn from the submission's files.
#[derive(Debug, Clone)]
pub(crate) enum TreeFault {
    /// The value of a key in a detail log.
    Value(Index, &'static str, &'static str),
    /// A line of a detail log marked as an error.
    ErrorLine(Index),
    /// A field of a JSON document.
    Field(Index, Index, &'static str),
    /// A file deleted.
    Lost(Index),
    /// A directory deleted.
    LostDirectory(Index),
    /// A file added beside another.
    Added(Index, &'static str),
    /// Text replaced in a file of text.
    Text(Index, &'static str, &'static str),
    /// A scenario's directory copied over another's.
    Scenario(Index, Index),
    /// A directory renamed.
    Renamed(Index, &'static str),
}

const VALUES: [(&str, &str); 30] = [
    ("effective_scenario", "\"Offline\""),
    ("effective_scenario", "\"SingleStream\""),
    ("effective_scenario", "\"MultiStream\""),
    ("effective_scenario", "\"Server\""),
    ("effective_scenario", "7"),
    ("result_validity", "\"INVALID\""),
    ("result_validity", "null"),
    ("effective_qsl_rng_seed", "1"),
    ("effective_schedule_rng_seed", "\"1\""),
    ("effective_min_duration_ms", "599999"),
    ("effective_min_duration_ms", "600000.0"),
    ("effective_min_duration_ms", "\"long\""),
    ("effective_min_query_count", "0"),
    ("effective_samples_per_query", "42"),
    ("effective_samples_per_query", "24576"),
    ("effective_performance_sample_count", "41"),
    ("effective_performance_sample_count", "null"),
    ("early_stopping_met", "false"),
    ("early_stopping_latency_ms", "0"),
    ("early_stopping_latency_ss", "\"fast\""),
    ("early_stopping_latency_ss", "0"),
    ("result_samples_per_second", "1e-5"),
    ("result_samples_per_second", "\"12.5\""),
    ("result_tokens_per_second", "null"),
    ("result_mean_query_latency_ns", "0"),
    ("effective_sample_concatenate_permutation", "false"),
    ("requested_use_token_latencies", "false"),
    ("qsl_reported_total_count", "7"),
    ("num_errors", "2"),
    ("sut_name", "\"Network SUT\""),
];
const FIELDS: [&str; 12] = [
    "\"\"",
    "0",
    "null",
    "\"closed\"",
    "\"Closed\"",
    "\"TEAM\"",
    "\"rdi\"",
    "\"true\"",
    "true",
    "\"edge,datacenter\"",
    "\"2\"",
    "[1, \"it's\", 2.0]",
];
const ADDED: [&str; 6] = [
    "notes.txt",
    ".hidden",
    "with space.txt",
    "spl.txt",
    "results.json",
    "mlperf_log_trace.json",
];
const TEXTS: [(&str, &str); 14] = [
    ("TEST PASS", "TEST FAIL"),
    ("TEST PASS", "TEST PASSED"),
    ("TEST PASS\n", " TEST PASS \n"),
    ("hash=", "hash= "),
    ("hash=", "x hash="),
    ("accuracy=", "accuracy=1"),
    ("accuracy=7", "accuracy=6"),
    ("accuracy=", "accuracy: "),
    ("mean = 0", "mean=0"),
    ("\"f1\"", "'f1'"),
    ("\n", "\r\n"),
    (":::MLLOG", "::MLLOG"),
    ("600000", "1000"),
    ("}}\n", "}}\n:::MLLOG {broken\n"),
];
const RENAMED: [&str; 6] = [
    "offline",
    "singlestream",
    "Offlin",
    "resnet50",
    "whisper",
    "TEST02",
];

/// Draws one to three faults.
pub(crate) fn some() -> impl Strategy<Value = Vec<TreeFault>> {
    let index = any::<Index>;
    let one = prop_oneof![
        6 => (index(), prop::sample::select(&VALUES[..])).prop_map(|(at, (key, value))| TreeFault::Value(at, key, value)),
        1 => index().prop_map(TreeFault::ErrorLine),
        4 => (index(), index(), prop::sample::select(&FIELDS[..])).prop_map(|(at, field, value)| TreeFault::Field(at, field, value)),
        2 => index().prop_map(TreeFault::Lost),
        1 => index().prop_map(TreeFault::LostDirectory),
        1 => (index(), prop::sample::select(&ADDED[..])).prop_map(|(at, name)| TreeFault::Added(at, name)),
        4 => (index(), prop::sample::select(&TEXTS[..])).prop_map(|(at, (from, to))| TreeFault::Text(at, from, to)),
        1 => (index(), index()).prop_map(|(from, to)| TreeFault::Scenario(from, to)),
        1 => (index(), prop::sample::select(&RENAMED[..])).prop_map(|(at, name)| TreeFault::Renamed(at, name)),
    ];
    prop::collection::vec(one, 1..4)
}

impl TreeFault {
    /// Applies the fault. Returns what was changed; `None` where the submission has no place for it.
    pub(crate) fn apply(&self, root: &Path) -> Option<String> {
        let all = paths(root);
        let among = |keep: &dyn Fn(&Path) -> bool, index: &Index| {
            let found: Vec<_> = all.iter().filter(|path| keep(path)).cloned().collect();
            (!found.is_empty()).then(|| index.get(&found).clone())
        };
        let named = |ending: &'static str| {
            move |path: &Path| path.to_string_lossy().ends_with(ending) && path.is_file()
        };
        let shown = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
        let scenario = |path: &Path| path.join("performance").is_dir() && path.join("accuracy").is_dir();
        match self {
            Self::Value(at, key, value) => {
                let path = among(&named("detail.txt"), at)?;
                replace(&path, |text| log_value(&text, key, value))?;
                Some(format!("{key} = {value} in {}", shown(&path)))
            }
            Self::ErrorLine(at) => {
                let path = among(&named("detail.txt"), at)?;
                replace(&path, |text| {
                    text.replacen("\"is_error\": false", "\"is_error\": true", 1)
                })?;
                Some(format!("an error in {}", shown(&path)))
            }
            Self::Field(at, field, value) => {
                let path = among(&named(".json"), at)?;
                let mut name = String::new();
                replace(&path, |text| {
                    let Ok(serde_json::Value::Object(mut object)) = serde_json::from_str(&text) else {
                        return text;
                    };
                    let names: Vec<_> = object.keys().cloned().collect();
                    name.clone_from(field.get(&names));
                    object.insert(name.clone(), serde_json::from_str(value).unwrap());
                    serde_json::to_string(&object).unwrap()
                })?;
                Some(format!("{name} = {value} in {}", shown(&path)))
            }
            Self::Lost(at) => {
                let path = among(&|path| path.is_file(), at)?;
                fs::remove_file(&path).ok()?;
                Some(format!("lost {}", shown(&path)))
            }
            Self::LostDirectory(at) => {
                let deep =
                    |path: &Path| path.is_dir() && path.strip_prefix(root).unwrap().components().count() > 3;
                let path = among(&deep, at)?;
                fs::remove_dir_all(&path).ok()?;
                Some(format!("lost {}", shown(&path)))
            }
            Self::Added(at, name) => {
                let path = among(&|path| path.is_file(), at)?.with_file_name(name);
                fs::write(&path, "x\n").ok()?;
                Some(format!("added {}", shown(&path)))
            }
            Self::Text(at, from, to) => {
                let path = among(
                    &|path| path.is_file() && fs::read_to_string(path).is_ok_and(|text| text.contains(from)),
                    at,
                )?;
                replace(&path, |text| text.replacen(from, to, 1))?;
                Some(format!("{from:?} to {to:?} in {}", shown(&path)))
            }
            Self::Scenario(from, to) => {
                let (from, to) = (among(&scenario, from)?, among(&scenario, to)?);
                if from.starts_with(&to) || to.starts_with(&from) {
                    return None;
                }
                fs::remove_dir_all(&to).ok()?;
                copy(&from, &to);
                Some(format!("{} over {}", shown(&from), shown(&to)))
            }
            Self::Renamed(at, name) => {
                let deep =
                    |path: &Path| path.is_dir() && path.strip_prefix(root).unwrap().components().count() > 4;
                let path = among(&deep, at)?;
                let to = path.with_file_name(name);
                if to.exists() {
                    return None;
                }
                fs::rename(&path, &to).ok()?;
                Some(format!("{} is now {name}", shown(&path)))
            }
        }
    }
}

fn replace(path: &Path, change: impl FnOnce(String) -> String) -> Option<()> {
    let text = fs::read_to_string(path).ok()?;
    let changed = change(text.clone());
    (changed != text).then(|| fs::write(path, changed).ok()).flatten()
}

/// Returns the log with another value of a key.
fn log_value(text: &str, key: &str, value: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let start = format!(":::MLLOG {{\"key\": \"{key}\", \"value\": ");
        match line
            .strip_prefix(&start)
            .and_then(|rest| rest.split_once(", \"time_ms\""))
        {
            Some((_, rest)) => format!("{start}{value}, \"time_ms\"{rest}"),
            None => line.to_owned(),
        }
    });
    lines.collect()
}

fn copy(from: &Path, to: &Path) {
    for path in paths(from).into_iter().filter(|path| path.is_file()) {
        let copy = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(path, copy).unwrap();
    }
}

fn paths(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}
