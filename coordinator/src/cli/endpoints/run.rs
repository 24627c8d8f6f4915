//! `regatta endpoints run`: its flags, progress and report.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use regatta_catalogue::{catalogue::Catalogue, round::PrescribedRun};
use regatta_endpoints::{
    ClientEnvironment, ClientPhase, ConfigChange, EndpointsOutcome, EndpointsProgress, EndpointsRequest,
    EndpointsSession, ServerTarget, SessionEnd,
};
use regatta_lab_store::workspace::Workspace;
use regatta_types::ExitCode;
use serde_json::{Value, json};

use super::{
    ClientArgs,
    collect::{LabHandles, collect},
    device_server::DeviceServerArgs,
    failure,
};
use crate::{
    cli::{Context, context::tell, interrupts::end_requested, runtime},
    exit::{CommandResult, Failure},
};

/// How often a line of progress is printed where it cannot be drawn.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// Flags of `endpoints run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta endpoints run --benchmark qwen3.6-27b --client endpoints --device thor-1 --server llama-cpp \\
      --server-model models/qwen3.6-27b/Qwen3.6-27B-Q4_K_M.gguf --tokenizer models/qwen3.6-27b --output thor-1-qwen
      let a board serve the model, and measure it
  regatta endpoints run --benchmark qwen3.6-27b --client endpoints --url http://thor-1:8080 \\
      --tokenizer models/qwen3.6-27b --output thor-1-qwen
      measure a server that runs
  regatta endpoints run --benchmark qwen3.6-27b --client endpoints --url http://thor-1:8080 \\
      --output try --rehearsal --set datasets.0.agentic_inference.num_trajectories_to_issue=1
      rehearse with one of the 20 conversations")]
pub(in crate::cli) struct Args {
    /// The benchmark
    #[arg(long, value_name = "NAME")]
    benchmark: String,
    #[command(flatten)]
    client: ClientArgs,
    /// The address of a server that runs, without /v1
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "device",
        conflicts_with = "device"
    )]
    url: Option<String>,
    #[command(flatten)]
    device: DeviceServerArgs,
    /// The model's name on the server [default: its only model]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The directory of the model's tokenizer [default: none, and the client counts no tokens]
    #[arg(long, value_name = "DIR")]
    tokenizer: Option<PathBuf>,
    /// The round [default: the newest]
    #[arg(long, alias = "version", value_name = "vX.Y")]
    round: Option<String>,
    /// The new directory for the run
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// How long the client keeps idle connections, in seconds [default: the client's; for llama.cpp, which closes them, 0.000001]
    #[arg(long, value_name = "SECONDS")]
    max_idle_time: Option<f64>,
    /// Run a rehearsal, whose configuration may be changed; it is never a result
    #[arg(long)]
    rehearsal: bool,
    /// Change a value of the client's configuration; can be repeated
    #[arg(long = "set", value_name = "PATH=VALUE", requires = "rehearsal", value_parser = change)]
    changes: Vec<ConfigChange>,
}

/// Parses a change. A value that is not JSON is a text.
fn change(text: &str) -> Result<ConfigChange, String> {
    let (path, value) = text.split_once('=').ok_or("it has no `=`")?;
    Ok(ConfigChange {
        path: path.to_owned(),
        value: serde_json::from_str(value).unwrap_or_else(|_| json!(value)),
    })
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let workspace = context.open_if_there()?;
    let catalogue =
        Catalogue::read(workspace.as_ref().map(Workspace::configs).as_deref()).map_err(Failure::usage)?;
    let round = catalogue.round(args.round.as_deref()).map_err(Failure::usage)?;
    let checkout = args.client.checkout()?;
    let directory = args.client.environment_directory(context)?;
    let environment = ClientEnvironment::open(&directory).map_err(failure)?;
    let tokenizer = args.tokenizer.as_ref().map(std::path::absolute).transpose()?;
    if let Some(directory) = tokenizer
        .as_ref()
        .filter(|path| !path.join("tokenizer.json").is_file())
    {
        return Err(
            Failure::misuse(format!("{} has no tokenizer.json", directory.display()))
                .hint("name the directory with the tokenizer of the model's weights"),
        );
    }
    let mut request = EndpointsRequest {
        round,
        benchmark: &args.benchmark,
        checkout: &checkout,
        environment: &environment,
        target: ServerTarget {
            url: args
                .url
                .as_deref()
                .unwrap_or_default()
                .trim_end_matches('/')
                .to_owned(),
            model: args.model.clone(),
            tokenizer: tokenizer.map(|path| path.to_string_lossy().into_owned()),
            max_idle_time: args.max_idle_time,
        },
        device_run: None,
        changes: args.changes.clone(),
        is_rehearsal: args.rehearsal,
        output: args.output.clone(),
    };
    request.check().map_err(failure)?;
    let runtime = runtime()?;
    let end = end_requested(&runtime)?;
    let session = if args.device.is_used() {
        let (workspace, store) = context.open_store()?;
        let lab = LabHandles {
            context,
            workspace: &workspace,
            store: &store,
        };
        let mut server = args
            .device
            .start(&args.benchmark, args.round.as_deref(), &catalogue, lab, &end)?;
        request.target.url.clone_from(&server.url);
        let device_run = server.document();
        request.device_run = Some(device_run.clone());
        let mut session = measure(&request, context, &end)?;
        server.stop()?;
        // The user may end this wait too.
        let end = end_requested(&runtime)?;
        collect(&mut session, &device_run, &args.output, lab, &end)?;
        session
    } else {
        measure(&request, context, &end)?
    };
    context.print(&document(&session, args), || text(&session, &args.output))?;
    match &session.end {
        SessionEnd::Interrupted => Err(Failure::interrupted("the run was ended")),
        SessionEnd::ClientFailed(reason) => Err(Failure::could_not(format!("the client failed: {reason}"))
            .hint(format!("its output is in {}/client.log", args.output.display()))),
        _ if session.is_result()
            || (args.rehearsal && session.end == SessionEnd::Completed && session.is_served()) =>
        {
            Ok(ExitCode::Success)
        }
        _ => Ok(ExitCode::Negative),
    }
}

/// Runs the client, and shows its progress.
fn measure(
    request: &EndpointsRequest<'_>,
    context: &Context,
    end: &AtomicBool,
) -> Result<EndpointsSession, Failure> {
    let prescribed = request.round.prescribed_endpoints_run(request.benchmark);
    let mut display = Display::new(context, prescribed);
    let session = regatta_endpoints::run(request, &mut |progress| {
        display.show(progress);
        !end.load(Ordering::Relaxed)
    });
    display.bar.finish_and_clear();
    session.map_err(failure)
}

/// Shows the progress: a bar on a terminal, and a line a minute elsewhere.
struct Display {
    bar: ProgressBar,
    is_lively: bool,
    /// The requests of both phases.
    total: u64,
    begun: Instant,
    last: Option<(ClientPhase, Instant)>,
}

impl Display {
    fn new(context: &Context, prescribed: Option<&PrescribedRun>) -> Self {
        let is_lively = context.is_lively();
        let bar = if is_lively {
            ProgressBar::new(0).with_style(
                ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            )
        } else {
            ProgressBar::hidden()
        };
        Self {
            bar,
            is_lively,
            total: prescribed.map_or(0, |run| run.requests + run.accuracy_samples()),
            begun: Instant::now(),
            last: None,
        }
    }

    fn show(&mut self, progress: &EndpointsProgress) {
        let words = match progress.phase {
            ClientPhase::Starting => "the client starts",
            ClientPhase::Performance => "performance",
            ClientPhase::Accuracy => "accuracy",
            ClientPhase::Ended => "the client scores the answers",
        };
        let is_new = self.last.is_none_or(|(phase, _)| phase != progress.phase);
        if self.is_lively {
            if is_new {
                self.bar.set_message(words);
                self.bar.reset_eta();
            }
            self.bar.set_length(self.total);
            self.bar.set_position(progress.completed);
        } else if is_new || self.last.is_some_and(|(_, at)| at.elapsed() >= LINE_EVERY) {
            tell(&format!(
                "{words}: {} of {} requests, {} min since the start",
                progress.completed,
                self.total,
                self.begun.elapsed().as_secs() / 60
            ));
        } else {
            return;
        }
        if is_new || !self.is_lively {
            self.last = Some((progress.phase, Instant::now()));
        }
    }
}

fn document(session: &EndpointsSession, args: &Args) -> Value {
    json!({ "run": args.output, "is_result": session.is_result(), "session": session })
}

/// Describes a run in `directory`.
pub(super) fn text(session: &EndpointsSession, directory: &Path) -> String {
    let mut lines = vec![match &session.end {
        SessionEnd::Completed if session.is_result() => "The run is complete.".to_owned(),
        SessionEnd::Completed if session.is_rehearsal => {
            "The rehearsal is complete. It is not a result.".to_owned()
        }
        SessionEnd::Completed => "The client ended, but the run is not a result.".to_owned(),
        SessionEnd::LostRequest(reason) => {
            format!("The run was ended, because a request was lost: {reason}")
        }
        SessionEnd::Interrupted => "The run was ended.".to_owned(),
        SessionEnd::ClientFailed(_) => "The client failed.".to_owned(),
    }];
    lines.extend(figures(&session.outcome));
    if let Some(failure) = session.device_failure() {
        lines.push(format!("  the device: {failure}"));
    }
    if session.end == SessionEnd::Completed {
        let problems = session.outcome.problems.iter();
        lines.extend(problems.map(|problem| format!("  {}: {}", problem.file, problem.text)));
    }
    let output = directory.display();
    lines.push(format!("files: {output}"));
    if session.is_result() {
        lines.push(format!(
            "next: regatta endpoints stage {output} --division closed --submitter NAME --system NAME --description FILE --measurements FILE --output DIR (or --add-to TREE)"
        ));
    }
    lines.join("\n")
}

fn figures(outcome: &EndpointsOutcome) -> Vec<String> {
    let milliseconds = |ns: f64| format!("{:.1} ms", ns / 1e6);
    let rows = [
        ("mean latency", outcome.mean_latency_ns.map(milliseconds)),
        (
            "mean time to first token",
            outcome.mean_first_token_ns.map(milliseconds),
        ),
        (
            "tokens per second",
            outcome.tokens_per_second.map(|rate| format!("{rate:.1}")),
        ),
        (
            "accuracy",
            outcome.accuracy.map(|percent| format!("{percent:.2} %")),
        ),
        (
            "normalized accuracy",
            outcome
                .normalized_accuracy
                .map(|percent| format!("{percent:.2} %")),
        ),
    ];
    rows.into_iter()
        .filter_map(|(name, value)| Some(format!("  {name:<26}{:>12}", value?)))
        .collect()
}
