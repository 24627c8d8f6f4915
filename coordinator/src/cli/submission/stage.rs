//! `regatta submission stage`: the tree of a submission out of finished runs. Here are its flags, which runs are offered,
//! the questions on a terminal and the report; the work is `crates/submission-stage`'s.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, BufRead as _, IsTerminal as _},
    path::{Path, PathBuf},
};

use regatta_catalogue::{catalogue::Catalogue, round::Round};
use regatta_fsutil::regular_file;
use regatta_submission_stage::{
    proof::PublicKey,
    stage::{self, Answers, Kind, Question, StageError, Staged, StagingFinding, StagingRequest},
};
use regatta_text::{escape, quote_for_shell_if_needed};
use regatta_types::{DeviceId, Division, ExitCode, documents::document_name};
use serde_json::{Value, json};

use super::{
    super::{Context, context::notify},
    power_sessions,
};
use crate::exit::{CommandResult, Failure};
use regatta_lab_runs as runs;
use regatta_lab_store::workspace::Workspace;
use regatta_lab_views::lookup::{self, RunDevices};

/// Flags of `submission stage`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta submission stage --division closed --answers answers.toml --output submission
      stage the workspace's runs of the newest round
  regatta submission stage --rehearsal --output rehearsal
      rehearse with whatever runs there are")]
pub(crate) struct Args {
    /// The round [default: the newest]
    #[arg(long, alias = "version", value_name = "vX.Y")]
    round: Option<String>,
    /// The division [default for a rehearsal: open]
    #[arg(
        long,
        value_name = "closed|open|network",
        required_unless_present = "rehearsal",
        default_value_if("rehearsal", "true", "open")
    )]
    division: Option<Division>,
    /// File with submitter, system and model details (see configs/examples/submission-answers.toml)
    #[arg(long, value_name = "ANSWERS.toml")]
    answers: Option<PathBuf>,
    /// The new directory for the tree
    #[arg(long, value_name = "NEWTREE")]
    output: PathBuf,
    /// A run's id, or a directory that `runs export` wrote; can be repeated [default: the workspace's runs of the round]
    #[arg(long = "run", value_name = "RUN|DIR", conflicts_with_all = ["device", "device_label"])]
    runs: Vec<String>,
    #[command(flatten)]
    devices: RunDevices,
    /// A power session's id, or the power client's directory with power/, ranging/ and run_1/; can be repeated
    #[arg(long = "power", value_name = "SESSION|DIR")]
    power: Vec<String>,
    /// Include runs that are not measurements; the tree is marked as a rehearsal
    #[arg(long)]
    rehearsal: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let workspace = context.open_if_there()?;
    let catalogue =
        Catalogue::read(workspace.as_ref().map(Workspace::configs).as_deref()).map_err(Failure::usage)?;
    let round = catalogue.round(args.round.as_deref()).map_err(Failure::usage)?;
    let (runs, keys) = offered(args, round, context, workspace.as_ref())?;
    let mut answers = read_answers(args.answers.as_deref())?;
    let kind = if args.rehearsal {
        Kind::Rehearsal
    } else {
        Kind::Submission
    };
    let division = args.division.unwrap_or(Division::Open);
    let power = power_sessions::directories(&args.power, workspace.as_ref(), context)?;
    let attempt = |answers: &Answers| {
        stage::stage(&StagingRequest {
            round,
            division,
            kind,
            answers,
            runs: &runs,
            keys: &keys,
            power: &power,
            output: &args.output,
        })
    };
    let mut outcome = attempt(&answers);
    if let Err(StageError::Refused { findings }) = &outcome
        && prompt_for_answers(findings, &mut answers)?
    {
        outcome = attempt(&answers);
    }
    match outcome {
        Ok(staged) => {
            if let Some(workspace) = &workspace {
                keep_staged(&staged, args, context, workspace)?;
            }
            context.print(&document(&staged, &args.output), || {
                text(&staged, args, round, context)
            })?;
            Ok(ExitCode::Success)
        }
        Err(StageError::Refused { findings }) => refused(&findings, context),
        Err(error) => Err(failure(error)),
    }
}

/// Returns the directories of the runs that may be staged, and the public keys of the workspace's devices.
fn offered(
    args: &Args,
    round: &Round,
    context: &Context,
    workspace: Option<&Workspace>,
) -> Result<(Vec<PathBuf>, BTreeMap<DeviceId, PublicKey>), Failure> {
    let exported = |word: &String| Path::new(word).join(document_name::SPEC).is_file();
    if !args.runs.is_empty() && args.runs.iter().all(exported) {
        return Ok((args.runs.iter().map(PathBuf::from).collect(), BTreeMap::new()));
    }
    let Some(workspace) = workspace else {
        // The error says how to name one.
        return context.open().map(|_| Default::default());
    };
    let (_, store) = context.open_store()?;
    let keys = store.devices().public_keys()?;
    if args.runs.is_empty() {
        let rows = store.runs().all()?.into_iter();
        let devices = args.devices.find(&store)?;
        let of_devices = rows.filter(|row| devices.is_empty() || devices.contains(&row.device));
        let of_round = of_devices.filter(|row| runs::is_offered_for_staging(row, &round.name));
        let directories = of_round.map(|row| workspace.run(row.id).path().to_owned());
        return Ok((directories.collect(), keys));
    }
    let named = args
        .runs
        .iter()
        .map(|word| {
            if exported(word) {
                return Ok(PathBuf::from(word));
            }
            let row = lookup::run(&store, word)?;
            Ok(workspace.run(row.id).path().to_owned())
        })
        .collect::<Result<_, Failure>>()?;
    Ok((named, keys))
}

/// Stores which of the workspace's runs are in the tree, so that they are not removed unnoticed.
fn keep_staged(
    staged: &Staged,
    args: &Args,
    context: &Context,
    workspace: &Workspace,
) -> Result<(), Failure> {
    let (_, store) = context.open_store()?;
    let results = staged.results.iter();
    let runs = results.flat_map(|result| {
        let own = [result.performance, result.accuracy];
        own.into_iter().chain(result.audits.values().copied())
    });
    let tree = std::path::absolute(&args.output)?;
    Ok(runs::staged::keep(workspace, &store, &runs.collect(), &tree)?)
}

fn read_answers(path: Option<&Path>) -> Result<Answers, Failure> {
    let Some(path) = path else {
        return Ok(Answers::default());
    };
    let text = regular_file::read_text(path).map_err(|error| {
        anyhow::Error::new(error).context(format!("cannot read the answers {}", path.display()))
    })?;
    let base = path.parent().unwrap_or(Path::new(""));
    Answers::from_toml(&text, base).map_err(|error| {
        Failure::usage(anyhow::Error::new(error).context(format!("{} cannot be used", path.display())))
    })
}

/// Prompts for the operator's answers, at a terminal where only answers are missing. Returns whether anything was answered. An empty line
/// leaves a question open.
fn prompt_for_answers(findings: &[StagingFinding], answers: &mut Answers) -> Result<bool, Failure> {
    let questions: Option<Vec<&Question>> =
        findings.iter().map(|finding| finding.question.as_ref()).collect();
    let Some(questions) = questions.filter(|_| io::stdin().is_terminal() && io::stderr().is_terminal())
    else {
        return Ok(false);
    };
    notify("The runs do not contain these values. Press Enter to skip one.");
    let mut lines = io::stdin().lock().lines();
    let mut new_answers = Vec::new();
    for question in questions {
        notify(&format!("{}:", words(question)));
        let Some(line) = lines.next().transpose()? else {
            break;
        };
        let line = line.trim();
        if !line.is_empty() {
            answers.answer(question, line);
            new_answers.push((question, line.to_owned()));
        }
    }
    if !new_answers.is_empty() {
        let kept = as_file(&new_answers);
        notify(&format!(
            "Keep these in the answers file for the next time:\n\n{kept}"
        ));
    }
    Ok(!new_answers.is_empty())
}

/// Returns the text of a question.
fn words(question: &Question) -> String {
    match question {
        Question::Submitter => "submitter".to_owned(),
        Question::System { system, field } => format!("system {system}, {field}"),
        Question::Measurement { benchmark, field } => format!("benchmark {benchmark}, {field}"),
    }
}

/// Answers as they are in the file. A TOML text has JSON's escapes.
fn as_file(new_answers: &[(&Question, String)]) -> String {
    let (mut top, mut systems) = (String::new(), BTreeMap::<&str, String>::new());
    // Writing to a String cannot fail.
    for (question, answer) in new_answers {
        let _ = match question {
            Question::Submitter => writeln!(top, "submitter = {}", json!(answer)),
            Question::Measurement { benchmark, field } => {
                writeln!(top, "benchmark.{}.{field} = {}", json!(benchmark), json!(answer))
            }
            Question::System { system, field } => {
                let text = systems.entry(system).or_default();
                writeln!(text, "description.{field} = {}", json!(answer))
            }
        };
    }
    for (system, text) in systems {
        let _ = write!(top, "\n[[system]]\nname = {}\n{text}", json!(system));
    }
    top
}

/// Refuses to stage, and prints everything that is missing.
fn refused(findings: &[StagingFinding], context: &Context) -> CommandResult {
    let listed: Vec<Value> = findings
        .iter()
        .map(|finding| json!({ "place": finding.place, "what": finding.what, "fix": finding.fix }))
        .collect();
    context.print(&json!({ "tree": null, "missing": listed }), || {
        format!(
            "nothing was staged; missing or not allowed ({}):{}",
            findings.len(),
            grouped(findings)
        )
    })?;
    Ok(ExitCode::Negative)
}

/// Lists findings; those that differ only in their places are one.
fn grouped(findings: &[StagingFinding]) -> String {
    /// The places that are listed on the line of a finding.
    const MAX_PLACES: usize = 4;
    let mut places: Vec<(&StagingFinding, Vec<&str>)> = Vec::new();
    for finding in findings {
        let alike = |(known, _): &&mut (&StagingFinding, Vec<&str>)| {
            known.what == finding.what && known.fix == finding.fix
        };
        match places.iter_mut().find(alike) {
            Some((_, places)) => places.push(&finding.place),
            None => places.push((finding, vec![&finding.place])),
        }
    }
    let mut text = String::new();
    for (finding, places) in places {
        let [what, fix] = [&finding.what, &finding.fix].map(|text| escape(text));
        // Writing to a String cannot fail.
        let _ = match places.as_slice() {
            [place] => write!(text, "\n  {}: {what}", escape(place)),
            several => {
                let shown: Vec<_> = several
                    .iter()
                    .take(MAX_PLACES)
                    .map(|place| escape(place))
                    .collect();
                let more = several.len().saturating_sub(MAX_PLACES);
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                write!(
                    text,
                    "\n  {what}: {} places\n      in {}{more}",
                    several.len(),
                    shown.join(", ")
                )
            }
        };
        let _ = write!(text, "\n      {fix}");
    }
    text
}

fn failure(error: StageError) -> Failure {
    let hint = matches!(error, StageError::InformativePower { .. })
        .then_some("measure with the official client and server of the round");
    Failure::of_kind(error.kind(), error).optional_hint(hint)
}

fn document(staged: &Staged, tree: &Path) -> Value {
    let results: Vec<Value> = staged
        .results
        .iter()
        .map(|result| {
            json!({
                "directory": result.directory, "system": result.system, "model": result.model,
                "scenario": result.scenario, "performance": result.performance, "accuracy": result.accuracy,
                "audits": result.audits,
            })
        })
        .collect();
    json!({
        "tree": tree, "submitter": staged.submitter, "files": staged.files, "results": results,
        "notes": staged.notes, "missing": [],
    })
}

fn text(staged: &Staged, args: &Args, round: &Round, context: &Context) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    for result in &staged.results {
        let audits: Vec<&str> = result.audits.keys().map(String::as_str).collect();
        let audits = if audits.is_empty() {
            String::new()
        } else {
            format!(", {}", audits.join(", "))
        };
        let _ = writeln!(
            text,
            "{}: performance {}, accuracy {}{audits}",
            escape(&result.directory),
            result.performance,
            result.accuracy
        );
    }
    for note in &staged.notes {
        let _ = writeln!(text, "note: {}", escape(note));
    }
    let (tree, name) = (
        quote_for_shell_if_needed(&args.output.to_string_lossy()).into_owned(),
        &round.name,
    );
    let submitter = quote_for_shell_if_needed(&staged.submitter);
    let suffixed = |suffix: &str| {
        let path = format!("{}{suffix}", args.output.display());
        quote_for_shell_if_needed(&path).into_owned()
    };
    let _ = write!(
        text,
        "{} files in {}\n\nnext:",
        staged.files,
        args.output.display()
    );
    for words in [
        format!(
            "truncate --input {tree} --submitter {submitter} --round {name} --backup {} --verify",
            suffixed("-originals")
        ),
        format!("check --input {tree} --round {name}"),
        format!(
            "pack --input {tree} --submitter {submitter} --output {}",
            suffixed("-package")
        ),
    ] {
        let _ = write!(text, "\n  {}", context.command(&format!("submission {words}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompted_answers_read_back_as_a_file() {
        let system = Question::System {
            system: "board".to_owned(),
            field: "cooling".to_owned(),
        };
        let benchmark = Question::Measurement {
            benchmark: "my net".to_owned(),
            field: "retraining".to_owned(),
        };
        let new_answers = [
            (&system, "a \"fan\"".to_owned()),
            (&Question::Submitter, "ACME".to_owned()),
            (&benchmark, "No".to_owned()),
        ];
        let mut answers = Answers::default();
        for (question, answer) in &new_answers {
            answers.answer(question, answer);
        }
        let read = Answers::from_toml(&as_file(&new_answers), Path::new("")).unwrap();
        assert_eq!(read, answers);
    }
}
