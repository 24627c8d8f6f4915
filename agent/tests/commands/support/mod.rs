//! Shared code of the tests of the agent's commands: the benchmark fixture, and runs of the real binary.

pub(crate) mod place;

use std::{
    path::Path,
    process::{Command, Output},
};

/// The result of a run of the binary.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// Runs `regatta-agent` in `directory` without the caller's MLPerf environment.
pub(crate) fn agent(directory: &Path, arguments: &[&str]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_regatta-agent"))
        .args(arguments)
        .current_dir(directory)
        .env_remove("MLPERF_SCRATCH_PATH")
        .env_remove("REGATTA_PLUGINS")
        .output()
        .unwrap();
    Ended::from(output)
}

/// A flag's value that removes the flag.
pub(crate) const LEFT_OUT: &str = "\0";

/// Returns the arguments of a short `bench` on a fixture's files, with `more` instead of or after the usual flags.
pub(crate) fn bench_arguments<'a>(more: &[(&'a str, &'a str)]) -> Vec<&'a str> {
    let usual = [
        ("--engine", "null"),
        ("--benchmark", "pixels"),
        ("--scenario", "SingleStream"),
        ("--mode", "PerformanceOnly"),
        ("--mlperf-conf", "mlperf.conf"),
        ("--user-conf", "user.conf"),
        ("--benchmark-file", "benchmark.toml"),
        ("--scratch", "."),
        ("--log-dir", "logs"),
    ];
    let mut arguments = vec!["bench"];
    for (flag, value) in usual
        .iter()
        .filter(|(flag, _)| more.iter().all(|(other, _)| other != flag))
        .chain(more)
    {
        if *value != LEFT_OUT {
            arguments.extend([*flag, *value]);
        }
    }
    arguments
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().expect("the agent was killed by a signal"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// The official conf's values that the runs need, with small counts.
pub(crate) const MLPERF_CONF: &str = "\
*.*.qsl_rng_seed = 2085463073848966840
*.*.sample_index_rng_seed = 2747215439041700203
*.*.schedule_rng_seed = 16159082839903944936
*.SingleStream.target_latency_percentile = 90
*.SingleStream.min_duration = 600000
*.MultiStream.target_latency_percentile = 99
*.MultiStream.samples_per_query = 8
*.MultiStream.min_duration = 600000
*.MultiStream.min_query_count = 662
*.Server.target_latency = 10000
*.Server.target_latency_percentile = 99
*.Server.min_duration = 600000
*.Offline.min_duration = 600000
*.Offline.min_query_count = 24576
";

/// Tuning for null and tract on any machine: LoadGen makes no more queries than these latencies and rates need, so a slow guess
/// would end a run early. They are several times faster than any machine.
pub(crate) const USER_CONF: &str = "\
*.SingleStream.target_latency = 0.000001
*.MultiStream.target_latency = 0.000004
*.Server.target_qps = 4000
*.Offline.target_qps = 2000000
";

/// A Server run of ten queries, for systems that take their time.
pub(crate) const FEW_QUERIES: &str = "*.Server.target_qps = 50\n*.Server.min_query_count = 1\n";
