//! The systems file that a search writes: a `[[run]]` for each benchmark and scenario, followed by all trials as
//! comments. It is rewritten after every trial, so that it always contains the best result so far.

use std::{fmt::Write as _, fs, io, path::Path};

use regatta_catalogue::system::System;
use regatta_text::significant;
use regatta_types::{
    Scenario,
    documents::{DeviceFacts, EngineKind, PowerSetting},
    engine_settings::SettingValue,
};

use super::{
    compare::median,
    search::{Found, Part, Trial},
    space::Space,
};

/// The head of the file, which describes the board.
pub(super) struct Head {
    /// The system's name.
    pub(super) name: String,
    /// The board.
    pub(super) facts: DeviceFacts,
}

/// The section of one benchmark and scenario.
pub(super) struct Section<'a> {
    pub(super) benchmark: &'a str,
    pub(super) scenario: Scenario,
    pub(super) power: PowerSetting,
    pub(super) engine: EngineKind,
    /// The program that measured, the machine and the time.
    pub(super) measured: &'a str,
    pub(super) space: &'a Space,
    pub(super) trials: &'a [Trial],
    pub(super) found: Option<&'a Found>,
    /// The builds of engines, one per line.
    pub(super) built: Vec<String>,
}

/// Returns the unit of a scenario's figure.
pub(super) const fn unit(scenario: Scenario) -> &'static str {
    match scenario {
        Scenario::SingleStream => "ms (90th percentile)",
        Scenario::MultiStream => "ms (99th percentile)",
        Scenario::Offline => "samples/s",
        Scenario::Server => "queries/s",
    }
}

impl Head {
    /// Returns the file's text up to its first run. `partial` states what is missing.
    pub(super) fn text(&self, partial: Option<&str>) -> String {
        let facts = &self.facts;
        let mut text = format!(
            "# Found by `regatta-agent tune` on this board. Each run's trials follow it.\nschema = {}\nname = {}\ntitle = {}\n",
            System::SCHEMA,
            quoted(&self.name),
            quoted(
                &format!("{} {}", facts.hostname, facts.model)
                    .trim()
                    .replace("  ", " ")
            )
        );
        if let Some(partial) = partial {
            text.push_str(&format!("partial = {}\n", quoted(partial)));
        }
        text.push_str("\n[board]\n");
        if let Some(module) = &facts.module {
            text.push_str(&format!("modules = [{}]\n", quoted(module)));
        }
        if let Some(gpu) = facts.gpus.first() {
            let _ = writeln!(text, "sms = {}", gpu.multiprocessors);
        }
        let _ = writeln!(text, "dla_cores = {}", facts.dla_cores);
        let _ = writeln!(text, "memory_gib = {}", facts.memory_bytes.div_ceil(1 << 30));
        text
    }
}

impl Section<'_> {
    /// Returns the section's `[[run]]`, if a choice was found, and its trials.
    pub(super) fn text(&self) -> String {
        let mut text = String::from("\n");
        if let Some(found) = self.found {
            self.run(found, &mut text);
        }
        let _ = writeln!(
            text,
            "# {} {}: {} trials of {} choices, {}",
            self.benchmark,
            self.scenario,
            self.trials.len(),
            self.space.size(),
            unit(self.scenario)
        );
        if let Some(found) = self.found {
            let _ = writeln!(text, "# chosen: {}", found.reason);
        }
        for (number, trial) in self.trials.iter().enumerate() {
            let part = match trial.part {
                Part::Coarse => "coarse",
                Part::Near => "near",
                Part::Final => "turns",
            };
            let outcome = match &trial.outcome {
                Ok(figure) => format!("{figure:.4}"),
                Err(failure) => format!("failed: {}", failure.0.replace(['\n', '\r'], " ")),
            };
            let settings = self.settings(trial);
            let seconds = trial.length.as_secs_f64();
            let _ = writeln!(
                text,
                "# {:>4}  {part:<6} {seconds:>5.1} s  {settings}  {outcome}",
                number + 1
            );
        }
        for line in &self.built {
            let _ = writeln!(text, "# engine built: {line}");
        }
        text
    }

    fn run(&self, found: &Found, text: &mut String) {
        let (benchmark, measured) = (quoted(self.benchmark), quoted(self.measured));
        let _ = write!(
            text,
            "[[run]]\nbenchmark = {benchmark}\nscenario = \"{}\"\npower = \"{}\"\nengine = \"{}\"\nsource = {{ measured = {measured} }}\nresult = {:?}\n[run.settings]\n",
            self.scenario,
            self.power.as_str(),
            self.engine,
            rounded(found.figure)
        );
        let settings = self.space.settings(&found.candidate);
        let mut lines: Vec<String> = settings
            .iter()
            .map(|(setting, value)| match value {
                SettingValue::Text(value) => format!("{} = {}\n", setting.name, quoted(&value)),
                value => format!("{} = {value}\n", setting.name),
            })
            .collect();
        lines.sort_unstable();
        text.extend(lines);
        let _ = writeln!(text, "[run.expected]\n{}", self.expected(found.figure));
    }

    /// Returns the expected rate or latency for LoadGen. LoadGen prepares 10 % more Offline samples than the rate
    /// needs. For queries, half the latency is stated, so that LoadGen prepares enough of them.
    fn expected(&self, figure: f64) -> String {
        let half_ns = (figure * 1e6 / 2.0).max(1.0);
        match self.scenario {
            Scenario::Offline => format!("offline_expected_qps = {:?}", rounded(figure)),
            Scenario::Server => format!("server_target_qps = {:?}", rounded(figure)),
            Scenario::SingleStream => format!("single_stream_expected_latency_ns = {half_ns:.0}"),
            Scenario::MultiStream => format!("multi_stream_expected_latency_ns = {half_ns:.0}"),
        }
    }

    /// Returns a trial's settings in one line.
    pub(super) fn settings(&self, trial: &Trial) -> String {
        self.space.settings(&trial.candidate).assignments().join(" ")
    }
}

/// Writes the file atomically.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    fs::write(&beside, text)
        .and_then(|()| fs::rename(&beside, path))
        .inspect_err(|_| {
            // A partial file would only take space on a full disk.
            let _ = fs::remove_file(&beside);
        })
}

/// Rounds to six significant digits. More would exceed the precision of the measurement.
fn rounded(value: f64) -> f64 {
    let scale = 10f64.powf(5.0 - value.abs().max(f64::MIN_POSITIVE).log10().floor());
    (value * scale).round() / scale
}

/// Returns a TOML string. JSON's escapes are valid in TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the summary of the choice for the terminal.
pub(super) fn summary(part: &Section<'_>) -> String {
    let name = format!("{} {}", part.benchmark, part.scenario);
    let Some(found) = part.found else {
        let failed = part.trials.iter().find_map(|trial| trial.outcome.as_ref().err());
        let why = failed.map_or("no time for any trial", |failure| failure.0.as_str());
        return format!("{name}: nothing ran: {why}\n");
    };
    let settings = part.space.settings(&found.candidate);
    let first: Vec<f64> = part
        .trials
        .iter()
        .filter_map(|trial| trial.outcome.as_ref().ok().copied())
        .collect();
    format!(
        "{name}: {}\n  {} {} (median of all trials {})\n  {}\n",
        settings.assignments().join(" "),
        significant(found.figure, 4),
        unit(part.scenario),
        significant(median(&first), 4),
        found.reason
    )
}
