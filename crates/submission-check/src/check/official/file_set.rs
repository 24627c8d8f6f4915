//! The exact sets of files that some directories must contain.

use super::Context;

/// The required and the optional files of a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileSet {
    needed: &'static [&'static str],
    allowed: &'static [&'static str],
}

/// Files that are allowed in every directory.
const ALWAYS_ALLOWED: [&str; 3] = ["mlperf_log_trace.json", "results.json", ".gitkeep"];
const LOGS: &[&str] = &["mlperf_log_summary.txt", "mlperf_log_detail.txt"];
const LOGS_AND_SAMPLES: &[&str] = &["mlperf_log_summary.txt", "mlperf_log_detail.txt", "spl.txt"];
const ACCURACY_LOG: &[&str] = &["mlperf_log_accuracy.json"];

impl FileSet {
    pub(super) const ACCURACY: Self = Self {
        needed: &[
            "mlperf_log_summary.txt",
            "mlperf_log_detail.txt",
            "accuracy.txt",
            "mlperf_log_accuracy.json",
        ],
        allowed: &[],
    };
    pub(super) const PERFORMANCE: Self = Self {
        needed: LOGS,
        allowed: ACCURACY_LOG,
    };
    pub(super) const PERFORMANCE_WITH_POWER: Self = Self {
        needed: LOGS_AND_SAMPLES,
        allowed: ACCURACY_LOG,
    };
    pub(super) const POWER: Self = Self {
        needed: &[
            "client.json",
            "client.log",
            "ptd_logs.txt",
            "server.json",
            "server.log",
        ],
        allowed: &[],
    };
    pub(super) const TEST_RUN: Self = Self::PERFORMANCE;
    pub(super) const TEST01_PASSED: Self = Self {
        needed: &["mlperf_log_accuracy.json", "accuracy.txt"],
        allowed: &[],
    };
    pub(super) const TEST01_FALLBACK: Self = Self {
        needed: &[
            "mlperf_log_accuracy.json",
            "accuracy.txt",
            "baseline_accuracy.txt",
            "compliance_accuracy.txt",
        ],
        allowed: &[],
    };
}

/// Describes how the files of `directory` differ from `set`, or returns `None` if they do not.
pub(super) fn fault(context: &Context<'_>, directory: &str, set: FileSet) -> Option<String> {
    let Some(found) = context.tree.files(directory) else {
        return Some("is not a directory".to_owned());
    };
    let mut differences = Vec::new();
    for name in set.needed {
        if !found.contains(name) && !ALWAYS_ALLOWED.contains(name) {
            differences.push(format!("{name} is missing"));
        }
    }
    for name in found {
        let known =
            set.needed.contains(&name) || set.allowed.contains(&name) || ALWAYS_ALLOWED.contains(&name);
        if !known {
            differences.push(format!("{name} does not belong here"));
        }
    }
    (!differences.is_empty()).then(|| differences.join(", "))
}
