//! `regatta benchmark`: the known benchmarks, their rules in each round, and which of their files are below the scratch directory.

mod prepare;

use clap::Subcommand;
use regatta_catalogue::{
    catalogue::{BenchmarkCatalogue, RoundCatalogue},
    round::{AccuracyBound, BenchmarkRules, Round},
};
use regatta_text::significant;
use regatta_types::{
    ExitCode, Scenario,
    benchmark::{Accuracy, AccuracyMetric, Benchmark, BoundSide, Response},
};
use serde_json::{Value, json};

use super::{
    Context,
    context::print,
    data::{FileState, LocalFiles},
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_store::workspace::Workspace;

/// The schema of a benchmark's file. A test of `regatta-catalogue` makes it from the types.
const SCHEMA: &str = include_str!("../../benchmark.schema.json");

/// The use of a benchmark without an engine.
const NO_ENGINE: &str = "`prep`, `data`, `accuracy` and staging know it, `run` does not";

/// The remedy when files cannot be looked for.
const NO_SCRATCH: &str =
    "no scratch directory is known: name a workspace with --workspace, or set MLPERF_SCRATCH_PATH";

/// `benchmark ...`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the benchmarks
    List,
    /// Show one benchmark: its rules in each round, its model and samples, and which of its files are missing here
    Show {
        /// The benchmark
        name: String,
    },
    /// Print the JSON schema of a benchmark's file, for editors
    Schema,
    /// Get and make all files that runs of benchmarks need, as far as they are freely available, and add them to the assets
    Prepare(prepare::PrepareArgs),
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    match command {
        Command::Prepare(args) => return prepare::run(args, context),
        Command::Schema => {
            print(SCHEMA.trim_end())?;
            return Ok(ExitCode::Success);
        }
        Command::List | Command::Show { .. } => {}
    }
    let workspace = context.open_if_there()?;
    let configs = workspace.as_ref().map(Workspace::configs);
    let benchmarks = BenchmarkCatalogue::read(configs.as_deref()).map_err(Failure::usage)?;
    let rounds = RoundCatalogue::read(configs.as_deref()).map_err(Failure::usage)?;
    let all_rounds = rounds.all().map_err(Failure::usage)?;
    let describe = |benchmark| Description::new(benchmark, &all_rounds, context, workspace.as_ref());
    match command {
        // These do not need the rounds of all benchmarks.
        Command::Prepare(_) | Command::Schema => {}
        Command::List => {
            let found: Vec<_> = benchmarks.all().into_iter().map(describe).collect();
            let documents: Vec<Value> = found.iter().map(Description::document).collect();
            context.print(&json!({ "benchmarks": documents }), || list(&found))?;
        }
        Command::Show { name } => {
            let description = describe(benchmarks.named(name).map_err(Failure::usage)?);
            context.print(&description.document(), || description.text())?;
        }
    }
    Ok(ExitCode::Success)
}

/// A benchmark with its rules and the state of its files.
struct Description<'a> {
    benchmark: &'a Benchmark,
    /// The rounds that have the benchmark, oldest first.
    rounds: Vec<RoundRules<'a>>,
    /// `None` when no scratch directory is known.
    files: Option<LocalFiles>,
}

/// A round's rules for a benchmark.
struct RoundRules<'a> {
    round: &'a str,
    official_name: &'a str,
    scenarios: &'a [Scenario],
    audits: &'a [String],
    bounds: Vec<String>,
    targets: Vec<f64>,
}

impl<'a> Description<'a> {
    fn new(
        benchmark: &'a Benchmark,
        rounds: &[&'a Round],
        context: &Context,
        workspace: Option<&Workspace>,
    ) -> Self {
        let rules = rounds.iter().filter_map(|round| {
            let (official_name, rules) = round.rules_of(benchmark)?;
            Some(RoundRules {
                round: &round.name,
                official_name,
                scenarios: &rules.edge,
                audits: &rules.tests,
                bounds: bounds(rules),
                targets: rules.accuracy.iter().map(|bound| bound.value()).collect(),
            })
        });
        Self {
            benchmark,
            rounds: rules.collect(),
            files: LocalFiles::of(benchmark, context, workspace),
        }
    }

    fn document(&self) -> Value {
        let Benchmark { model, dataset, .. } = self.benchmark;
        let rounds = self.rounds.iter().map(|rules| {
            json!({
                "round": rules.round,
                "official_name": rules.official_name,
                "edge_scenarios": rules.scenarios.iter().map(|scenario| scenario.as_str()).collect::<Vec<_>>(),
                "audits": rules.audits,
                "targets": rules.targets,
                "bounds": rules.bounds,
            })
        });
        json!({
            "name": self.benchmark.name,
            "aliases": self.benchmark.aliases,
            "title": self.benchmark.title,
            "not_submittable": self.benchmark.not_submittable,
            "metric": metric(self.benchmark.accuracy.metric),
            "reference": self.benchmark.accuracy.reference,
            "factor": self.benchmark.accuracy.factor,
            "target": self.benchmark.accuracy.target(),
            "samples": dataset.total_samples,
            "performance_samples": dataset.performance_samples,
            "inputs": model.inputs().map(|input| input.to_string()).collect::<Vec<_>>(),
            "response": self.benchmark.model.response,
            "outputs": model.outputs,
            "has_engine": self.benchmark.model.has_engine(),
            "class_offset": model.class_offset,
            "model_sha256": model.sha256,
            "rounds": rounds.collect::<Vec<_>>(),
            "files": self.files.as_ref().map(LocalFiles::documents),
        })
    }

    fn text(&self) -> String {
        let benchmark = self.benchmark;
        let Benchmark {
            model,
            dataset,
            accuracy,
            ..
        } = benchmark;
        let names: Vec<&str> = std::iter::once(benchmark.name.as_str())
            .chain(benchmark.aliases.iter().map(String::as_str))
            .collect();
        let inputs: Vec<String> = model.inputs().map(|input| input.to_string()).collect();
        let mut lines = vec![
            format!("{}: {}", names.join(", "), benchmark.title),
            format!(
                "target     {} of at least {} ({} of {})",
                metric(accuracy.metric),
                target(accuracy, &rounded(accuracy.target())),
                percent(accuracy.factor),
                accuracy.reference
            ),
            format!(
                "samples    {}, of which {} are loaded for a performance run",
                dataset.total_samples, dataset.performance_samples
            ),
            format!("inputs     {}", inputs.join("; ")),
            format!("response   {}", response(model.response, model.class_offset)),
        ];
        if !model.outputs.is_empty() {
            lines.push(format!("outputs    {}", model.outputs.join(", ")));
        }
        if !model.has_engine() {
            lines.push(format!("engine     none yet: {NO_ENGINE}"));
        }
        if let Some(reason) = &benchmark.not_submittable {
            lines.push(format!("submission not possible: {reason}"));
        }
        if !self.rounds.is_empty() {
            let rows = self.rounds.iter().map(|rules| {
                [
                    rules.round.to_owned(),
                    rules.official_name.to_owned(),
                    scenarios(rules.scenarios),
                    rules.bounds.join(", "),
                    rules.audits.join(", "),
                ]
            });
            lines.push(String::new());
            lines.push(tables::plain(
                ["round", "name", "edge scenarios", "target", "audits"],
                rows,
            ));
        }
        lines.push(String::new());
        lines.push(match &self.files {
            Some(files) => files.text(),
            None => NO_SCRATCH.to_owned(),
        });
        lines.join("\n")
    }
}

fn list(found: &[Description<'_>]) -> String {
    let rows = found.iter().map(|description| {
        let benchmark = description.benchmark;
        // A round may have it for the datacenter only.
        let edge: Vec<_> = description
            .rounds
            .iter()
            .filter(|rules| !rules.scenarios.is_empty())
            .collect();
        let rounds = match &edge[..] {
            [] => "none".to_owned(),
            [only] => only.round.to_owned(),
            [first, .., last] => format!("{}–{}", first.round, last.round),
        };
        let newest = edge.last();
        let files = description.files.as_ref();
        let state = |state: Option<FileState>| state.map_or("?", FileState::word);
        let (model, samples) = (files.map(LocalFiles::model), files.map(LocalFiles::samples));
        let files = match (state(model), state(samples)) {
            (model, samples) if model == samples => model.to_owned(),
            (model, samples) => format!("model {model}, samples {samples}"),
        };
        [
            benchmark.name.clone(),
            files,
            rounds,
            tables::unbroken(&format!(
                "{} {}",
                metric(benchmark.accuracy.metric),
                target(&benchmark.accuracy, &significant(benchmark.accuracy.target(), 5))
            )),
            newest.map_or_else(|| "any".to_owned(), |rules| scenarios(rules.scenarios)),
        ]
    });
    let mut text = tables::plain(["benchmark", "files", "rounds", "target", "edge scenarios"], rows);
    let without_engine: Vec<&str> = found
        .iter()
        .filter(|description| !description.benchmark.model.has_engine())
        .map(|description| description.benchmark.name.as_str())
        .collect();
    if !without_engine.is_empty() {
        text.push_str(&format!(
            "\nno engine yet for {}: {NO_ENGINE}",
            without_engine.join(", ")
        ));
    }
    if found.iter().any(|description| description.files.is_none()) {
        text.push_str(&format!("\n{NO_SCRATCH}"));
    }
    text
}

/// Formats a round's bounds on the accuracy: the value of a single one, otherwise each with its figure.
fn bounds(rules: &BenchmarkRules) -> Vec<String> {
    if let ([only], []) = (&rules.accuracy[..], &rules.accuracy_at_most[..]) {
        return vec![rounded(only.value())];
    }
    let bound = |sign: &'static str| {
        move |bound: &AccuracyBound| format!("{} {sign} {}", bound.metric, rounded(bound.value()))
    };
    let at_least = rules.accuracy.iter().map(bound("≥"));
    at_least
        .chain(rules.accuracy_at_most.iter().map(bound("≤")))
        .collect()
}

const fn metric(metric: AccuracyMetric) -> &'static str {
    match metric {
        AccuracyMetric::Top1 => "top-1",
        AccuracyMetric::SquadF1 => "F1",
        AccuracyMetric::CocoMap => "mAP",
        AccuracyMetric::Dice => "DICE",
        AccuracyMetric::Wer | AccuracyMetric::EnglishWer => "1-WER",
        AccuracyMetric::Rouge => "ROUGE-1",
        AccuracyMetric::ClipFid => "CLIP",
        AccuracyMetric::Top5 => "top-5",
        AccuracyMetric::Auc => "AUC",
        AccuracyMetric::MeanSquaredError => "MSE",
        AccuracyMetric::ExactMatch => "exact match",
        AccuracyMetric::Script => "script",
    }
}

fn response(response: Response, offset: i32) -> String {
    match (response, offset) {
        (Response::ArgmaxInt32, 0) => "the class with the largest score, as int32".to_owned(),
        (Response::ArgmaxInt32, offset) => {
            format!("the class with the largest score, {offset:+}, as int32")
        }
        (Response::Raw, _) => "the first output, unchanged".to_owned(),
        (Response::Stacked, _) => "all outputs, interleaved".to_owned(),
        (Response::Detections, _) => "7 floats for each detection".to_owned(),
        (Response::Tokens, _) => "the generated tokens, as int32".to_owned(),
        (Response::Image, _) => "the bytes of an RGB image".to_owned(),
        (Response::Segmentation, _) => "the class of each voxel, as a byte".to_owned(),
        (Response::AllOutputs, _) => "all outputs, one after the other".to_owned(),
        (Response::Transcript, _) => "a byte for each symbol of the transcript".to_owned(),
    }
}

fn scenarios(scenarios: &[Scenario]) -> String {
    if scenarios.is_empty() {
        return "none".to_owned();
    }
    let words: Vec<&str> = scenarios.iter().map(|scenario| scenario.as_str()).collect();
    words.join(", ")
}

/// Formats a benchmark's target, whose number is formatted already, with its unit.
fn target(accuracy: &Accuracy, number: &str) -> String {
    let sign = match accuracy.side() {
        BoundSide::AtLeast => "",
        BoundSide::AtMost => "≤ ",
    };
    let unit = if accuracy.metric.is_percentage() { " %" } else { "" };
    format!("{sign}{number}{unit}")
}

/// Formats a target without the noise of its product.
fn rounded(target: f64) -> String {
    let text = format!("{target:.7}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn percent(factor: f64) -> String {
    format!("{} %", rounded(factor * 100.0))
}
