//! Runs the driver around the official LoadGen.

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::cases::Case;

/// How often a crashed run of the official LoadGen is repeated.
const CRASHES: usize = 20;

/// A built driver.
pub(crate) struct Oracle {
    driver: PathBuf,
}

impl Oracle {
    /// Finds the driver of a version.
    pub(crate) fn find(version: &str) -> Result<Self, String> {
        let how = "build it with REGATTA_ORACLES=DIR tests/oracles/loadgen/build.sh and set REGATTA_ORACLES; older versions \
                   are named to it, and --debian11 makes that of libstdc++ 10";
        let root = std::env::var_os("REGATTA_ORACLES").ok_or(format!("no official LoadGen: {how}"))?;
        let driver = Path::new(&root).join(format!("loadgen-{version}/driver"));
        if driver.is_file() {
            Ok(Self { driver })
        } else {
            Err(format!("no {}: {how}", driver.display()))
        }
    }

    /// Runs `what` for a case, with its files in `dir`.
    pub(crate) fn run(&self, what: &str, case: &Case, dir: &Path, more: &[(&str, String)]) {
        let write = |name: &str, text: &str| {
            let path = dir.join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let mut command = Command::new(&self.driver);
        command.arg(what);
        let mut option = |name: &str, value: String| {
            command.arg(format!("--{name}")).arg(value);
        };
        option("model", case.model.clone());
        option("scenario", case.scenario.to_string());
        option("mode", case.mode_number().to_string());
        option("mlperf-conf", write("mlperf.conf", &case.mlperf_conf));
        option("user-conf", write("user.conf", &case.user_conf));
        if let Some(audit) = &case.audit_config {
            option("audit-conf", write("audit.config", audit));
        }
        option("total", case.total.to_string());
        option("performance", case.performance.to_string());
        for (name, count) in [
            ("issue-threads", case.issue_threads),
            ("capacity", case.capacity),
            ("late-ms", case.late_ms),
        ] {
            if count != 0 {
                option(name, count.to_string());
            }
        }
        if let Some(decimals) = case.find_peak_decimals {
            option("find-peak-decimals", decimals.to_string());
        }
        option("log-dir", dir.display().to_string());
        option("issue-log", dir.join("issue.bin").display().to_string());
        option("schedule-log", dir.join("schedule.bin").display().to_string());
        for (name, value) in more {
            option(name, value.clone());
        }
        command.current_dir(dir);
        let mut output = command.output().unwrap();
        // With several issuing threads it sometimes crashes with a memory fault, on a case that succeeds at other times. The
        // cause, in LoadGen or our driver, is unknown.
        for _ in 0..CRASHES {
            if case.issue_threads > 1 && output.status.signal().is_some() {
                println!(
                    "the official LoadGen crashed with {} issuing threads; once more",
                    case.issue_threads
                );
                output = command.output().unwrap();
            }
        }
        assert!(output.status.success(), "{what} of {case:#?}: {output:?}");
    }
}

/// Reads 64-bit words.
pub(crate) fn words(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).unwrap();
    bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect()
}
