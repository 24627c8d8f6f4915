//! `regatta power simulate`: a complete session on this machine with the official programs, a simulated PTDaemon, a separate clock server and the
//! agent as workload. It tests everything except the meter, and measures nothing.

use std::{
    ffi::OsString,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use regatta_catalogue::round::PowerRules;
use regatta_power::{
    ntp,
    power_dev::PowerDev,
    server_conf::{AnalyzerConf, ServerConf},
    session::{LocalDirector, LocalSystem, SessionHosts, SessionPlan},
};
use regatta_submission_check::{check::power as check, tree::Tree};
use regatta_text::HumanDuration;
use regatta_types::ExitCode;
use serde_json::json;

use super::{
    super::{Context, context::tell, quickstart, submission::inputs::rounds},
    session_report::{SessionPrinter, failure},
    simulate_ptd::SimulationArgs,
};
use crate::exit::{CommandResult, Failure};
use regatta_lab_power::{
    AgentBench, OfficialVerdict, SessionProgress as _, SessionTracker, free_port, network_namespace,
    write_ptd_program,
};

/// Flags of `power simulate`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SimulateArgs {
    /// A copy of mlcommons/power-dev
    #[arg(long, value_name = "DIR", env = "REGATTA_POWER_DEV")]
    power_dev: PathBuf,
    /// A new directory for the session
    #[arg(long, value_name = "DIR", default_value = "power-rehearsal")]
    dir: PathBuf,
    /// The length of each of the two runs
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    duration: HumanDuration,
    /// The Python interpreter of the official programs
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
    /// Use `regatta power server` instead of the official server
    #[arg(long)]
    own_server: bool,
    /// Use `regatta power client` instead of the official client
    #[arg(long)]
    own_client: bool,
    /// The round whose checker judges [default: the newest]
    #[arg(long, alias = "version", value_name = "vX.Y")]
    round: Option<String>,
    /// Set by Regatta itself: this process is in its network namespace
    #[arg(long, hide = true)]
    in_namespace: bool,
    #[command(flatten)]
    simulation: SimulationArgs,
}

pub(super) fn simulate(args: &SimulateArgs, context: &Context) -> CommandResult {
    let rounds = rounds(context)?;
    let round = rounds.named(args.round.as_deref()).map_err(Failure::usage)?;
    let rules = round.power.as_ref().ok_or_else(|| {
        Failure::misuse(format!("round {} has no rules for power", round.name))
            .hint("name another round with --version")
    })?;
    let power_dev = PowerDev::open(&args.power_dev).map_err(Failure::usage)?;
    let device_type = rules.meters.get(args.simulation.model()).copied();
    let device_type = device_type.ok_or_else(|| {
        let known: Vec<_> = rules.meters.keys().map(String::as_str).collect();
        let model = args.simulation.model();
        Failure::misuse(format!("round {} accepts no meter {model}", round.name))
            .hint(format!("accepted are {}", known.join(", ")))
    })?;
    if !args.in_namespace && network_namespace::is_possible() {
        return Err(network_namespace::enter().into());
    }
    let agent = quickstart::find_or_build(tell)?;
    let directory = new_directory(&args.dir)?;
    // One of the many loopback addresses, so that several rehearsals can run at once.
    let [.., high, low] = std::process::id().to_be_bytes();
    let ntp_address = SocketAddr::from(([127, 83, high, low], ntp::PORT));
    ntp::answer_requests(ntp_address).with_context(|| format!("cannot answer NTP requests at {ntp_address}"))
        .map_err(|error| Failure::from(error).hint(
            "the official programs use port 123 only: allow user namespaces with iproute2 installed, or run this command as root",
        ))?;
    let program = write_ptd_program(&directory, &args.simulation.words())?;
    let mut conf = ServerConf::new(
        &ntp_address.ip().to_string(),
        &program.display().to_string(),
        AnalyzerConf {
            device_type,
            device_port: "simulated".to_owned(),
            network_port: free_port()?,
            channel: simulated_channels(device_type),
            ..AnalyzerConf::default()
        },
    );
    conf.listen = ([127, 0, 0, 1].into(), free_port()?);
    let plan = SessionPlan {
        directory,
        director_address: conf.listen.0.to_string(),
        conf,
        label: "simulated".to_owned(),
    };
    let mlperf_conf = round.render_mlperf_conf(&Default::default());
    let mut workload =
        AgentBench::lay_out(&plan.directory, &agent, &mlperf_conf, &args.duration.to_string())?;
    tell("REHEARSAL: PTDaemon is simulated (FAKEPTD). Nothing here is a measurement.");
    let mut printer = SessionPrinter::new("(simulated)");
    let mut tracker = SessionTracker::new(Duration::from_millis(args.duration.millis()));
    let here = &plan.directory;
    let server = command_of(
        args.own_server.then_some("server"),
        &args.python,
        &power_dev.server(),
    )?;
    let client = command_of(
        args.own_client.then_some("client"),
        &args.python,
        &power_dev.client(),
    )?;
    let mut director = LocalDirector::new(&args.python, &server, here).map_err(failure)?;
    let logs = workload.logs().to_owned();
    let mut system = LocalSystem::new(&args.python, &client, here, &logs).map_err(failure)?;
    let mut hosts = SessionHosts {
        director: &mut director,
        system: &mut system,
    };
    let session = plan
        .execute(&mut hosts, &mut workload, &mut |event| {
            tracker.take(event, &mut |news| printer.report(news));
        })
        .map_err(failure)?;
    judge(args, context, &power_dev, rules, &session)
}

/// Judges the session with the official program, and prints the result.
fn judge(
    args: &SimulateArgs,
    context: &Context,
    power_dev: &PowerDev,
    rules: &PowerRules,
    session: &Path,
) -> CommandResult {
    let output = session.with_file_name("check-output.txt");
    let official = OfficialVerdict::of(&args.python, &power_dev.checker(), session, &output)?;
    let refusal = power_dev.refusal(rules);
    let own = check::check(&Tree::scan(session)?, "", rules);
    let accepted = official.passes() || official.refuses_only(&refused_sources(args));
    let document = json!({
        "rehearsal": true,
        "session": session.display().to_string(),
        "official_checks": official.checks,
        "official_pass": official.passes(),
        "own_server": args.own_server,
        "own_client": args.own_client,
        "checks": own.checks,
        "power_dev": refusal,
    });
    context.print(&document, || {
        let mut text = format!("session: {}\n", session.display());
        for check in &official.checks {
            text.push_str(&format!(
                "[{}] {}\n",
                if check.passed { 'x' } else { ' ' },
                check.name
            ));
        }
        text.push_str(&format!("official checker: {}\n", official.summary()));
        if own.passes() != official.passes() {
            text.push_str("`regatta power check` judges this session otherwise; report that as an error\n");
        }
        if args.own_server || args.own_client {
            text.push_str(&format!("INFORMATIVE: {}\n", check::OWN_PROGRAMS));
        }
        if let Some(refusal) = &refusal {
            text.push_str(&format!("{refusal}\n"));
        }
        text.push_str(
            "REHEARSAL: the figures come from a simulated PTDaemon; this session can never be submitted",
        );
        text
    })?;
    Ok(if accepted {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// A program's command: Regatta's own for this role, or Python with the official one.
fn command_of(own_role: Option<&str>, python: &Path, official: &Path) -> io::Result<Vec<OsString>> {
    Ok(match own_role {
        Some(role) => vec![
            regatta_fsutil::own_program::own_program()?.into(),
            "power".into(),
            role.into(),
        ],
        None => vec![python.into(), official.into()],
    })
}

/// The official checks that Regatta's own programs fail, as they must.
fn refused_sources(args: &SimulateArgs) -> Vec<&'static str> {
    let sides = [
        (args.own_client, check::SOURCES[0]),
        (args.own_server, check::SOURCES[1]),
    ];
    let own = sides.into_iter().filter(|(own, _)| *own);
    own.map(|(_, check)| check).collect()
}

/// The channels that the official server requires for a meter with several.
fn simulated_channels(device_type: i64) -> Vec<i64> {
    match device_type {
        regatta_power::ptd::WT500_MULTICHANNEL => vec![2],
        device if regatta_power::ptd::is_multichannel(device) => vec![1, 2],
        _ => Vec::new(),
    }
}

/// Makes the session's directory, which must be new or empty.
fn new_directory(directory: &Path) -> Result<PathBuf, Failure> {
    let directory = std::path::absolute(directory)?;
    match fs::read_dir(&directory) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(Failure::misuse(format!("{} is not empty", directory.display()))
                    .hint("name a new directory with --dir"));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = fs::create_dir_all(&directory);
            made.with_context(|| format!("cannot make {}", directory.display()))?;
        }
        Err(error) => {
            let error = anyhow::Error::new(error).context(format!("cannot use {}", directory.display()));
            return Err(Failure::from(error).hint("name a new directory with --dir"));
        }
    }
    Ok(directory)
}
