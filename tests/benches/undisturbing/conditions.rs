//! The four conditions and one run in each of them.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use regatta_tests::{Broker, DEVICE, Lab, agent, eventually, succeed_output};
use serde_json::Value;

use crate::AnyError;

/// What the daemon does during the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// No daemon at all.
    Off,
    /// The daemon sends heartbeats.
    Heartbeat,
    /// The daemon sends logs.
    Live,
}

/// In the order of the tables: off, off again, heartbeat, live.
pub(crate) const CONDITIONS: [Condition; 4] = [
    Condition::Off,
    Condition::Off,
    Condition::Heartbeat,
    Condition::Live,
];

/// The processor of the issuing thread, in every condition.
const TIMING_CPU: u64 = 0;
/// The log data of a live run per step, with several steps a second: twice what the device is allowed to send.
const LIVE_STEP: usize = 64 * 1024;
const LIVE_PAUSE: Duration = Duration::from_millis(125);

/// A lab, and a spec that it has made.
pub(crate) struct Bench {
    lab: Lab,
    millis: usize,
    spec: PathBuf,
}

/// One run.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The 50th, 90th and 99th percentile.
    pub(crate) latency_ns: [f64; 3],
    queries: f64,
    seconds: f64,
    window: Value,
}

impl Measured {
    /// Returns a count of the measurement window, if there is one.
    pub(crate) fn cost(&self, name: &str) -> Option<f64> {
        self.window[name].as_f64()
    }

    /// As [`Self::cost`], per second.
    pub(crate) fn per_second(&self, name: &str) -> Option<f64> {
        // Without a daemon there is nothing to count.
        Some(self.cost(name)? / self.seconds)
    }

    /// Returns the daemon's wake-ups on the issuing thread's processor, which it should avoid.
    pub(crate) fn daemon_on_timing_cpu(&self) -> Option<f64> {
        let wakeups = self.cost("daemon_wakeups")?;
        let kept_off = self.window["daemon_kept_off_cpu"].as_u64() == Some(TIMING_CPU);
        Some(if kept_off { 0.0 } else { wakeups })
    }

    /// Returns the sleeps beyond the modelled accelerator's, one per query. A wait for a lock would be one more.
    pub(crate) fn extra_sleeps(&self) -> Option<f64> {
        Some(self.cost("timing_sleeps")? - self.queries)
    }
}

impl Bench {
    /// Starts a lab and has it make a spec. The coordinator represents another machine and runs on another processor.
    pub(crate) fn set_up(millis: usize) -> Result<Self, AnyError> {
        let mut lab = Lab::new(Broker::Embedded).ok_or("the embedded broker needs nothing")?;
        lab.coordinator_prefix = ["taskset", "-c", "1"].map(str::to_owned).to_vec();
        lab.start_coordinator();
        lab.start_device();
        lab.wait_for_device();
        let mut bench = Self {
            lab,
            millis,
            spec: PathBuf::new(),
        };
        let first = bench.through_the_daemon(Condition::Heartbeat)?;
        bench.spec = first.with_file_name("spec.json");
        // The log of a run without daemon is in a directory that nothing delivers.
        let alone = bench.lab.workspace().with_file_name("alone");
        fs::create_dir_all(&alone)?;
        fs::copy(&bench.spec, alone.join("spec.json"))?;
        bench.spec = alone.join("spec.json");
        Ok(bench)
    }

    /// The spec of a run without a daemon.
    pub(crate) fn spec(&self) -> &Path {
        &self.spec
    }

    /// One run.
    pub(crate) fn measure(&mut self, condition: Condition) -> Result<Measured, AnyError> {
        match condition {
            Condition::Off => {
                // No daemon: neither its threads nor its connection.
                self.lab.device = None;
                let files = self.alone(&[])?;
                read(&files, &files.join("attempt.json"), "/window")
            }
            Condition::Heartbeat | Condition::Live => {
                let files = self.through_the_daemon(condition)?;
                read(&files, &files.join("evidence.json"), "/attempts/0/window")
            }
        }
    }

    /// Runs `exec` without a daemon, behind a prefix, and returns the directory of its files.
    pub(crate) fn alone(&self, prefix: &[String]) -> Result<PathBuf, AnyError> {
        let files = self.spec.with_file_name("files");
        let _ = fs::remove_dir_all(&files);
        let mut command = regatta_tests::prefixed(prefix, &agent());
        command.arg("exec").arg(&self.spec).stdin(Stdio::null());
        // An INVALID run ends with 1, and has been measured.
        let output = command.output()?;
        if !files.join("mlperf_log_summary.txt").exists() {
            return Err(format!("exec: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(files)
    }

    fn through_the_daemon(&mut self, condition: Condition) -> Result<PathBuf, AnyError> {
        if self.lab.device.is_none() {
            self.lab.start_device();
        }
        let run = self.request_run(condition)?;
        let files = self
            .lab
            .device_directory()
            .join("state/runs")
            .join(&run)
            .join("files");
        if condition == Condition::Live {
            self.log_while_it_runs(&run, &files)?;
        }
        eventually("the run to be sealed", 120, || {
            files.join("evidence.sig").exists()
        });
        eventually("the run to be delivered", 120, || {
            ["done", "failed"].contains(&self.lab.phase(&run).as_str())
        });
        Ok(files)
    }

    fn request_run(&self, condition: Condition) -> Result<String, AnyError> {
        let mut command = self.lab.regatta();
        command.args([
            "run",
            "--device",
            DEVICE,
            "--benchmark",
            "digits",
            "--engine",
            "sim",
        ]);
        command.args(["--scenario", "SingleStream", "--mode", "PerformanceOnly"]);
        command.args([
            "--duration",
            &format!("{}ms", self.millis),
            "--no-wait",
            "--format",
            "json",
        ]);
        command.args(["--set", &format!("timing_cpu={TIMING_CPU}")]);
        command.args([
            "--stream",
            if condition == Condition::Live {
                "live"
            } else {
                "after"
            },
        ]);
        let requested: Value = serde_json::from_slice(&succeed_output(&mut command).stdout)?;
        Ok(requested["runs"][0]["run"].as_str().ok_or("a run id")?.to_owned())
    }

    /// Writes into the run's log until LoadGen has ended.
    fn log_while_it_runs(&self, run: &str, files: &Path) -> Result<(), AnyError> {
        let log = files.join("run.log");
        eventually("the run to begin", 60, || log.exists());
        let text = vec![b'.'; LIVE_STEP];
        let begin = Instant::now();
        let summary = files.join("mlperf_log_summary.txt");
        let is_over = || fs::metadata(&summary).is_ok_and(|summary| summary.len() > 0);
        while !is_over() && begin.elapsed() < Duration::from_secs(120) {
            OpenOptions::new().append(true).open(&log)?.write_all(&text)?;
            std::thread::sleep(LIVE_PAUSE);
        }
        if begin.elapsed() >= Duration::from_secs(120) {
            return Err(format!("run {run} does not end").into());
        }
        Ok(())
    }
}

fn read(files: &Path, document: &Path, window: &str) -> Result<Measured, AnyError> {
    let summary = fs::read_to_string(files.join("mlperf_log_summary.txt"))?;
    let number = |label: &str| -> Result<f64, AnyError> {
        let line = summary.lines().find(|line| line.starts_with(label));
        let line = line.ok_or_else(|| format!("no `{label}` in the summary"))?;
        Ok(line.rsplit(':').next().unwrap_or_default().trim().parse()?)
    };
    let latency_ns = [
        number("50.00 percentile latency (ns)")?,
        number("90.00 percentile latency (ns)")?,
        number("99.00 percentile latency (ns)")?,
    ];
    let per_second = number("QPS w/o loadgen overhead")?;
    let detail = fs::read_to_string(files.join("mlperf_log_detail.txt"))?;
    let queries = logged(&detail, "result_query_count").ok_or("no query count in the detail log")?;
    let document: Value = serde_json::from_slice(&fs::read(document)?)?;
    Ok(Measured {
        latency_ns,
        queries,
        seconds: queries / per_second,
        window: document.pointer(window).cloned().unwrap_or_default(),
    })
}

/// A number of the detail log.
pub(crate) fn logged(detail: &str, key: &str) -> Option<f64> {
    let expected = format!("\"key\": \"{key}\"");
    let line = detail.lines().find(|line| line.contains(&expected))?;
    let (_, value) = line.split_once("\"value\":")?;
    value.trim().split([',', ' ']).next()?.parse().ok()
}
