//! The report of `bench`: the main results of LoadGen's summary, and why the run is not a valid measurement. LoadGen's
//! logs contain everything else.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use regatta_engines::Description;
use regatta_loadgen::outcome::{Outcome, Performance};
use regatta_terminal::fit;
use regatta_text::{EscapedText, escape_json, figure};
use regatta_types::{
    Scenario,
    documents::{LoadgenChoice, SystemUse},
};
use serde::Serialize;

use crate::{
    cli::{BenchArgs, Format},
    run_process::prepared_run::PrepareError,
};

/// The result of a `bench`.
#[derive(Debug, Serialize)]
pub(crate) struct BenchReport {
    model: String,
    scenario: String,
    mode: String,
    engine: String,
    loadgen: String,
    /// The origin of the system's values.
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<SystemUse>,
    /// The duration of `--duration`, which replaces that of the conf files.
    duration: Option<String>,
    /// `VALID`, `INVALID`, or `ENDED` for an accuracy run, for which LoadGen gives no verdict.
    verdict: &'static str,
    reasons: Vec<String>,
    /// The figure that checkers report: early stopping's estimate for SingleStream and MultiStream, otherwise the scenario's result.
    judged: Option<Judged>,
    metric: Option<MetricLine>,
    early_stopping: Vec<String>,
    accuracy: Option<IssuedCounts>,
    performance: Option<IssuedCounts>,
    warnings: Vec<String>,
    not_a_measurement: Vec<String>,
    /// The file with the units' times.
    #[serde(skip_serializing_if = "Option::is_none")]
    board: Option<PathBuf>,
    logs: Vec<PathBuf>,
}

/// The scenario's result, as in the summary.
#[derive(Debug, Serialize)]
struct MetricLine {
    name: String,
    text: String,
    value: f64,
    unit: &'static str,
}

/// The figure that checkers report.
#[derive(Debug, Serialize)]
struct Judged {
    value: f64,
    unit: &'static str,
    /// Whether early stopping estimated it.
    is_estimate: bool,
}

impl Judged {
    /// Returns `None` when early stopping made no estimate.
    fn of(scenario: Scenario, result: &Performance) -> Option<Self> {
        let estimate = match scenario {
            Scenario::SingleStream => result.early_stopping_latency_ss,
            Scenario::MultiStream => result.early_stopping_latency_ms,
            Scenario::Server | Scenario::Offline => {
                return Some(Self {
                    value: result.metric.value,
                    unit: result.metric.unit,
                    is_estimate: false,
                });
            }
        };
        estimate.filter(|latency| *latency > 0).map(|latency| Self {
            value: latency as f64,
            unit: "ns",
            is_estimate: true,
        })
    }
}

/// Number of issued queries and samples.
#[derive(Debug, Serialize)]
struct IssuedCounts {
    queries: u64,
    samples: u64,
}

/// Prints, for programs, the command that builds the missing engine.
pub(crate) fn tell_missing_engine(format: Format, error: &PrepareError) {
    if let (Format::Json, PrepareError::NotBuilt { command, .. }) = (format, error) {
        let missing = serde_json::json!({ "missing_engine": command.words() });
        // Standard output may be closed. The failure is reported in any case.
        let _ = writeln!(io::stdout(), "{missing}");
    }
}

impl BenchReport {
    /// Creates the report of a run.
    pub(crate) fn new(
        args: &BenchArgs,
        system: Option<SystemUse>,
        engine: &Description,
        not_submittable: Option<String>,
        outcome: &Outcome,
    ) -> Self {
        let performance = outcome.performance.as_ref();
        let counts = |issued: regatta_loadgen::outcome::Issued| IssuedCounts {
            queries: issued.queries,
            samples: issued.samples,
        };
        Self {
            model: args.benchmark.clone(),
            scenario: args.scenario.to_string(),
            mode: outcome.requested.mode.to_string(),
            engine: engine.to_string(),
            loadgen: format!(
                "{} {} ({})",
                outcome.identity.name, outcome.identity.version, outcome.identity.rng_abi
            ),
            system,
            duration: args.duration.map(|length| length.to_string()),
            verdict: match outcome.valid {
                Some(true) => "VALID",
                None if outcome.faults.is_empty() => "ENDED",
                _ => "INVALID",
            },
            reasons: outcome.reasons.clone(),
            judged: performance.and_then(|result| Judged::of(args.scenario, result)),
            metric: performance.map(|result| MetricLine {
                name: result.metric.name.clone(),
                text: result.metric.text.clone(),
                value: result.metric.value,
                unit: result.metric.unit,
            }),
            early_stopping: performance
                .map(|result| result.early_stopping.lines().map(str::to_owned).collect())
                .unwrap_or_default(),
            accuracy: outcome.accuracy.map(counts),
            performance: performance.map(|result| counts(result.issued)),
            warnings: outcome.warnings.clone(),
            not_a_measurement: not_a_measurement(args, not_submittable),
            board: args.write_board.clone(),
            logs: outcome.log_files.clone(),
        }
    }

    /// Prints the report.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn print(&self, format: Format, to: &mut impl Write) -> io::Result<()> {
        match format {
            Format::Text => {
                let mut text = Vec::new();
                self.print_text(&mut EscapedText(&mut text))?;
                to.write_all(fit(&String::from_utf8_lossy(&text), &io::stdout()).as_bytes())
            }
            Format::Json => writeln!(to, "{}", escape_json(&serde_json::to_string_pretty(self)?)),
        }
    }

    /// Prints the figure that counts, and LoadGen's own line below it.
    fn print_figure(&self, to: &mut impl Write) -> io::Result<()> {
        let Some(metric) = &self.metric else { return Ok(()) };
        match &self.judged {
            Some(judged) => {
                let of = if judged.is_estimate {
                    ", estimated by early stopping"
                } else {
                    ""
                };
                writeln!(to, "  figure        {}{of}", figure(judged.value, judged.unit))?;
            }
            None => writeln!(
                to,
                "  figure        none: early stopping needs more queries for an estimate"
            )?,
        }
        writeln!(to, "  {}: {}", metric.name, metric.text)
    }

    fn print_text(&self, to: &mut impl Write) -> io::Result<()> {
        writeln!(
            to,
            "{} {} {}: {}",
            self.model, self.scenario, self.mode, self.verdict
        )?;
        lines(to, "  reason        ", self.reasons.iter())?;
        self.print_figure(to)?;
        lines(to, "  ", self.early_stopping.iter())?;
        for (part, counts) in [("accuracy", &self.accuracy), ("performance", &self.performance)] {
            if let Some(counts) = counts {
                writeln!(
                    to,
                    "  {part:<13} {} queries, {} samples",
                    counts.queries, counts.samples
                )?;
            }
        }
        if let Some(length) = &self.duration {
            writeln!(
                to,
                "  duration      {length} by --duration, instead of the conf files'"
            )?;
        }
        writeln!(to, "  engine        {}", self.engine)?;
        writeln!(to, "  loadgen       {}", self.loadgen)?;
        if let Some(system) = &self.system {
            let derived = if system.derived { "derived, " } else { "" };
            writeln!(
                to,
                "  system        {} ({derived}{}), from {}",
                system.system, system.source, system.file
            )?;
        }
        lines(to, "  warning       ", self.warnings.iter())?;
        lines(to, "  not measured  ", self.not_a_measurement.iter())?;
        lines(
            to,
            "  board         ",
            self.board.iter().map(|path| path.display()),
        )?;
        lines(
            to,
            "  log           ",
            self.logs.iter().map(|path| path.display()),
        )
    }
}

fn lines(
    to: &mut impl Write,
    label: &str,
    texts: impl Iterator<Item = impl std::fmt::Display>,
) -> io::Result<()> {
    for text in texts {
        writeln!(to, "{label}{text}")?;
    }
    Ok(())
}

/// Returns the reasons why the run is not a valid measurement. `benchmark` is the reason why its
/// results cannot be submitted, if any.
fn not_a_measurement(args: &BenchArgs, benchmark: Option<String>) -> Vec<String> {
    let engine = (!args.engine.computes()).then(|| format!("the {} engine computes nothing", args.engine));
    let loadgen = (args.loadgen == LoadgenChoice::Native).then(|| "LoadGen is Regatta's own".to_owned());
    engine.into_iter().chain(loadgen).chain(benchmark).collect()
}
