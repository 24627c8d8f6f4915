//! The table of a run, and its report in JSON and Markdown.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    check::Check,
    claims::{CLAIMS, ClaimState},
    outcome::{Figure, Kit, Outcome, Verdict},
    probe::DriverFacts,
    runner::Finished,
};

/// The prefix of every line when fakes are used.
const FAKES: &str = "FAKES ";

#[derive(Serialize)]
pub(crate) struct Report {
    schema: u32,
    /// Whether this was a test of the kit with fakes, which proves nothing about hardware.
    fakes: bool,
    kit: &'static str,
    begun: Timestamp,
    machine: Machine,
    checks: Vec<Entry>,
    claims: Vec<ClaimEntry>,
}

/// Facts about the machine, from its files and from the driver.
#[derive(Serialize)]
struct Machine {
    system: Option<String>,
    kernel: Option<String>,
    driver: Option<String>,
    cuda: String,
    gpus: Vec<String>,
    tensorrt: Option<PathBuf>,
    shims: Vec<String>,
}

#[derive(Serialize)]
struct Entry {
    key: &'static str,
    title: &'static str,
    #[serde(flatten)]
    outcome: Outcome,
    seconds: f64,
}

#[derive(Serialize)]
struct ClaimEntry {
    key: &'static str,
    state: ClaimState,
    checks: &'static [&'static str],
    remains: Option<&'static str>,
}

impl Report {
    pub(crate) fn begin(kit: &Kit, driver: DriverFacts) -> Self {
        Self {
            schema: 1,
            fakes: kit.has_fakes,
            kit: env!("CARGO_PKG_VERSION"),
            begun: Timestamp::now(),
            machine: Machine::read(kit, driver),
            checks: Vec::new(),
            claims: Vec::new(),
        }
    }

    fn prefix(&self) -> &'static str {
        if self.fakes { FAKES } else { "" }
    }

    /// Prints a line, with a prefix when fakes are used.
    pub(crate) fn line(&self, text: &str) {
        println!("{}{text}", self.prefix());
    }

    pub(crate) fn print_head(&self) {
        for gpu in &self.machine.gpus {
            self.line(gpu);
        }
        if self.fakes {
            self.line(
                "the driver and TensorRT are fakes: this run tests the kit and shows nothing about hardware",
            );
        }
        self.line(&format!("{:<22} {:<4} {:>7}  {}", "check", "", "time", "result"));
    }

    /// Prints the line of a check, and adds the check to the report.
    pub(crate) fn add(&mut self, check: &Check, finished: Finished) {
        let Finished { outcome, seconds } = finished;
        self.line(&format!(
            "{:<22} {:<4} {seconds:>5.1} s  {}",
            check.key,
            outcome.verdict.as_str(),
            one_line(&outcome)
        ));
        self.checks.push(Entry {
            key: check.key,
            title: check.title,
            outcome,
            seconds,
        });
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.checks
            .iter()
            .filter(|entry| entry.outcome.verdict == verdict)
            .count()
    }

    /// Returns whether no check failed and at least one passed.
    pub(crate) fn all_passed(&self) -> bool {
        self.count(Verdict::Fail) == 0 && self.count(Verdict::Pass) > 0
    }

    /// Writes the report and returns the paths of its files. With fakes, the file names say so, and no claims are listed.
    pub(crate) fn write(&mut self, directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
        if !self.fakes {
            self.claims = CLAIMS
                .iter()
                .map(|claim| ClaimEntry {
                    key: claim.key,
                    state: claim.state(|key| {
                        let entry = self.checks.iter().find(|entry| entry.key == key);
                        entry.map(|entry| entry.outcome.verdict)
                    }),
                    checks: claim.checks,
                    remains: claim.remains,
                })
                .collect();
        }
        self.line(&format!(
            "{} pass, {} fail, {} skipped",
            self.count(Verdict::Pass),
            self.count(Verdict::Fail),
            self.count(Verdict::Skip)
        ));
        fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))?;
        let name = if self.fakes { "fakes-no-proof" } else { "gpu-kit" };
        let files = [
            (format!("{name}.json"), serde_json::to_string_pretty(self)? + "\n"),
            (format!("{name}.md"), self.markdown()),
        ];
        files
            .into_iter()
            .map(|(name, text)| {
                let path = directory.join(name);
                fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
                Ok(path)
            })
            .collect()
    }

    fn markdown(&self) -> String {
        let prefix = self.prefix();
        let mut text = format!(
            "# {prefix}GPU kit, {}\n\n",
            self.begun.strftime("%Y-%m-%d %H:%M UTC")
        );
        let mut line = |line: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{line}");
        };
        for (name, value) in self.machine.lines() {
            line(&format!("* {prefix}{name}: {value}"));
        }
        line(&format!(
            "\n| {prefix}check | result | figures | time |\n|---|---|---|---:|"
        ));
        for entry in &self.checks {
            line(&format!(
                "| {prefix}`{}`: {} | {}: {} | {} | {:.1} s |",
                entry.key,
                entry.title,
                entry.outcome.verdict.as_str(),
                entry.outcome.detail.replace('|', "/").replace('\n', " "),
                figures(&entry.outcome.figures),
                entry.seconds
            ));
        }
        if self.fakes {
            line(&format!(
                "\n{prefix}This run tested the kit over fakes. It shows nothing about hardware."
            ));
            return text;
        }
        line("\n| claim of docs/UNPROVEN.md | state | not shown by the kit |\n|---|---|---|");
        for claim in &self.claims {
            let state = match claim.state {
                ClaimState::Shown => "shown",
                ClaimState::Refuted => "REFUTED",
                ClaimState::NotRun => "not run",
            };
            line(&format!(
                "| `{}` | {state} | {} |",
                claim.key,
                claim.remains.unwrap_or_default()
            ));
        }
        text
    }
}

impl Machine {
    fn read(kit: &Kit, driver: DriverFacts) -> Self {
        let file = |path: &str| fs::read_to_string(path).ok();
        let system = file("/etc/os-release").and_then(|text| {
            let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
            name.map(|name| name.trim_matches('"').to_owned())
        });
        Self {
            system,
            kernel: file("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            driver: file("/proc/driver/nvidia/version")
                .filter(|_| !kit.has_fakes)
                .and_then(|text| text.lines().next().map(str::to_owned)),
            cuda: driver.cuda,
            gpus: driver.gpus,
            tensorrt: kit.tensorrt.clone().filter(|_| !kit.has_fakes),
            shims: names(&kit.shims),
        }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let tensorrt = self
            .tensorrt
            .as_ref()
            .map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        vec![
            (
                "system",
                format!("{}, kernel {}", known(&self.system), known(&self.kernel)),
            ),
            ("driver", format!("{}, CUDA {}", known(&self.driver), self.cuda)),
            ("GPUs", self.gpus.join("; ")),
            ("TensorRT", tensorrt),
            ("shims", self.shims.join(", ")),
        ]
    }
}

/// Returns the sorted file names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn figures(figures: &[Figure]) -> String {
    let shown = figures
        .iter()
        .map(|figure| format!("{} {} {}", figure.name, number(figure.value), figure.unit));
    shown.collect::<Vec<_>>().join(", ")
}

/// Formats a number with at least three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn one_line(outcome: &Outcome) -> String {
    let detail = outcome.detail.replace('\n', " ");
    match &outcome.figures[..] {
        [] => detail,
        measured => format!("{} ({detail})", figures(measured)),
    }
}
