//! The rules of the strict check, each with its source.
//!
//! `submission_rules.adoc` is in mlcommons/policies, and `inference_rules.adoc` in mlcommons/inference_policies. "checker" is
//! `tools/submission` of mlcommons/inference, and "TESTnn" is the script of that test there.

use super::finding::Rule;

const fn rule(name: &'static str, source: &'static str) -> Rule {
    Rule { name, source }
}

pub(crate) const READABLE: Rule = rule("readable", "a submission can be read completely");
pub(crate) const LAYOUT: Rule = rule("layout", "submission_rules.adoc, directory structure");
pub(crate) const NAMES: Rule = rule("names", "checker, file and directory names since v3.0");
pub(crate) const LINKS: Rule = rule("links", "checker, symbolic links since v3.0");
pub(crate) const FILE_SIZE: Rule = rule("file-size", "checker, FILE_SIZE_LIMIT_MB");
pub(crate) const EMPTY_DIRECTORY: Rule = rule("empty-directory", "checker, empty directories since v3.0");
pub(crate) const UNMATCHED: Rule = rule(
    "unmatched",
    "checker, systems and measurements need results since v5.1",
);
pub(crate) const CALIBRATION: Rule = rule(
    "calibration",
    "inference_rules.adoc, calibration is documented; checker since v5.1",
);
pub(crate) const SYSTEM: Rule = rule("system-description", "submission_rules.adoc, system description");
pub(crate) const SYSTEM_TYPE: Rule = rule("system-type", "checker, system_type is one of four values");
pub(crate) const DIVISION: Rule = rule(
    "division",
    "checker, the description names the division that it is in",
);
pub(crate) const SUBMITTER: Rule = rule(
    "submitter",
    "checker, the description names the submitter that it is under",
);
pub(crate) const NETWORK: Rule = rule("network", "inference_rules.adoc, network division");
pub(crate) const BENCHMARK: Rule = rule("benchmark", "inference_rules.adoc, benchmarks of the round");
pub(crate) const SCENARIOS: Rule = rule("scenarios", "inference_rules.adoc, required scenarios");
pub(crate) const MEASUREMENTS: Rule = rule(
    "measurements",
    "submission_rules.adoc, measurements of each result",
);
pub(crate) const CODE: Rule = rule("code", "submission_rules.adoc, the code of each implementation");
pub(crate) const FILE_SET: Rule = rule(
    "file-set",
    "submission_rules.adoc, files of each result directory",
);
pub(crate) const LOG: Rule = rule("log", "LoadGen writes one JSON record per line");
pub(crate) const LOADGEN_ERRORS: Rule = rule("loadgen-errors", "checker, no errors in the detail log");
pub(crate) const LOADGEN: Rule = rule("loadgen", "inference_rules.adoc, LoadGen is used unmodified");
pub(crate) const CONFS: Rule = rule(
    "conf-files",
    "submission_rules.adoc, mlperf.conf and user.conf of each result",
);
pub(crate) const VALID: Rule = rule("valid", "inference_rules.adoc, results are valid runs");
pub(crate) const MODE: Rule = rule("mode", "inference_rules.adoc, LoadGen modes");
pub(crate) const SEEDS: Rule = rule(
    "seeds",
    "inference_rules.adoc, random numbers; mlperf.conf of the round",
);
pub(crate) const SAMPLES: Rule = rule(
    "performance-samples",
    "inference_rules.adoc, QSL size of each benchmark",
);
pub(crate) const DURATION: Rule = rule("min-duration", "inference_rules.adoc, 600 seconds");
pub(crate) const OFFLINE_SAMPLES: Rule = rule(
    "offline-samples",
    "inference_rules.adoc, samples of the Offline query",
);
pub(crate) const QUERIES: Rule = rule("min-queries", "inference_rules.adoc, queries per run");
pub(crate) const EARLY_STOPPING: Rule = rule("early-stopping", "inference_rules.adoc, early stopping");
pub(crate) const LATENCY: Rule = rule("latency", "inference_rules.adoc, Server latency bound");
pub(crate) const EQUAL_ISSUE: Rule = rule("equal-issue", "inference_rules.adoc, equal issue mode");
pub(crate) const TOKENS: Rule = rule(
    "token-latencies",
    "checker, use_token_latencies of language models",
);
pub(crate) const INFERRED: Rule = rule(
    "inferred",
    "inference_rules.adoc, inferred results of edge systems",
);
pub(crate) const FIGURES: Rule = rule(
    "figures",
    "LoadGen, results.cc: all figures are of the same latencies",
);
pub(crate) const RESULT: Rule = rule("result", "checker, the result's key in the detail log");
pub(crate) const ACCURACY: Rule = rule("accuracy", "inference_rules.adoc, accuracy targets");
pub(crate) const HASH: Rule = rule(
    "accuracy-hash",
    "submission_rules.adoc, hash of the untruncated accuracy log",
);
pub(crate) const TRUNCATED: Rule = rule("truncated", "submission_rules.adoc, accuracy logs are truncated");
pub(crate) const DATASET: Rule = rule(
    "dataset",
    "inference_rules.adoc, accuracy is of the complete data set",
);
pub(crate) const OWN_RUN: Rule = rule(
    "own-run",
    "inference_rules.adoc, each result and each test is of a separate run",
);
pub(crate) const AGREEMENT: Rule = rule(
    "agreement",
    "inference_rules.adoc, all runs are of one system under test",
);
pub(crate) const TESTS: Rule = rule(
    "tests",
    "inference_rules.adoc, compliance tests of each benchmark",
);
pub(crate) const TEST_PERFORMANCE: Rule = rule("test-performance", "TESTnn, verify_performance");
pub(crate) const TEST_ACCURACY: Rule = rule("test-accuracy", "TEST01, verify_accuracy");
pub(crate) const TEST_SETTING: Rule = rule("test-setting", "TESTnn, audit.config");
pub(crate) const POWER: Rule = rule("power", "MLPerf power measurement rules");
pub(crate) const POWER_SESSION: Rule = rule("power-session", "power_checker.py of the Power working group");
pub(crate) const ENDPOINTS: Rule = rule(
    "endpoints",
    "checker, documents of the endpoints harness since v6.1",
);
pub(crate) const ENDPOINTS_FIGURES: Rule = rule(
    "endpoints-figures",
    "mlcommons/endpoints, all figures of a run are of the same requests",
);
pub(crate) const ENDPOINTS_SETTINGS: Rule = rule(
    "endpoints-settings",
    "inference_rules.adoc and the reference's configuration of the benchmark",
);
pub(crate) const SETTINGS: Rule = rule(
    "settings",
    "LoadGen, test_settings_internal.cc and loadgen.cc: values that settings and seeds determine",
);
pub(crate) const PRESCRIBED: Rule = rule(
    "prescribed-settings",
    "mlperf.conf of the round; inference_rules.adoc, which lists the settings that the closed division must not change",
);
