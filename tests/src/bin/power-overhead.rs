//! Measures the time of `regatta power run` on top of the official power programs: the time from the client's start to its end beside
//! LoadGen's measured windows, once with the official server and client alone and `regatta-agent bench` as their workload, and once with
//! the same programs in sessions of `regatta power run`. Both have the official waits of 40 s, a simulated PTDaemon and the simulated
//! engine. It needs root.
//!
//! `cargo run --release -p regatta-tests --bin power-overhead -- --sessions 5`

#![expect(clippy::print_stdout, reason = "a command line tool")]

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use clap::Parser;
use regatta_power::{
    ntp,
    server_conf::{AnalyzerConf, ServerConf},
};
use regatta_tests::{
    Broker, Lab, Process, agent, eventually, faults, free_port, power_dev,
    power_sessions::{add_meter, json, power_window, run_session, write_simulated_ptd},
    printed, regatta, shell,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The step of a session before the client starts.
const SERVER_STARTS: &str = "starting the server and PTDaemon";
/// The last step, which in a session of Regatta has the verdicts of both checkers.
const COLLECTING: &str = "collecting the session's files";

/// Sessions of the official programs alone beside those of `regatta power run`.
#[derive(Debug, Parser)]
#[command(name = "power-overhead")]
struct Cli {
    /// Sessions of each kind, in turns
    #[arg(long, default_value_t = 5)]
    sessions: usize,
    /// Measures in this process, which is in namespaces of its own; the command starts itself so
    #[arg(long, hide = true)]
    inside: bool,
}

/// Seconds of each session beside LoadGen's windows.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Measured {
    official: Vec<f64>,
    regatta: Vec<f64>,
    /// The part of these from the client's last command to the end.
    judging: Vec<f64>,
    /// The checks before the session, and the server's start.
    before: Vec<f64>,
}

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    if cli.inside {
        faults::end_with_the_parent();
        println!("{}", serde_json::to_string(&measure(cli.sessions)?)?);
        return Ok(ExitCode::SUCCESS);
    }
    if power_dev().is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    let sessions = cli.sessions.to_string();
    let arguments = ["--inside", "--sessions", &sessions].map(Into::into);
    let mut measured: Measured = faults::start_alone(arguments)?;
    let added = median(&mut measured.regatta) - median(&mut measured.official);
    for (name, seconds) in [
        ("official programs alone", &mut measured.official),
        ("regatta power run", &mut measured.regatta),
        ("of it, collecting and judging", &mut measured.judging),
        ("checks before it, and the server's start", &mut measured.before),
    ] {
        let middle = median(seconds);
        let (least, most) = (seconds.first().copied(), seconds.last().copied());
        let (least, most) = (least.unwrap_or_default(), most.unwrap_or_default());
        println!("{name}: {middle:.2} s ({least:.2} to {most:.2})");
    }
    println!(
        "added by Regatta: {added:.2} s (medians of {sessions} sessions each, beside LoadGen's windows)"
    );
    Ok(ExitCode::SUCCESS)
}

/// Sorts, and returns the middle value.
fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or_default()
}

fn measure(sessions: usize) -> anyhow::Result<Measured> {
    shell::run("ip link set lo up")?;
    ntp::answer_requests(SocketAddr::from(([127, 0, 0, 1], ntp::PORT)))?;
    let power_dev = power_dev().context("the official power programs are needed")?;
    let mut lab = Lab::new(Broker::Embedded).context("a lab")?;
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let ptd = lab.workspace().join("ptd");
    write_simulated_ptd(&ptd, &regatta(), "");
    let added = add_meter(&mut lab.regatta(), "meter", &power_dev, &ptd).output()?;
    ensure!(added.status.success(), "{}", printed(&added));
    let mut measured = Measured::default();
    for number in 0..sessions {
        let place = lab.workspace().join(format!("official-{number}"));
        measured.official.push(official(&place, &power_dev, &ptd)?);
        with_regatta(&lab, &mut measured)?;
    }
    Ok(measured)
}

/// Measures a session of the official server and client alone.
fn official(place: &Path, power_dev: &Path, ptd: &Path) -> anyhow::Result<f64> {
    fs::create_dir_all(place)?;
    let analyzer = AnalyzerConf {
        device_type: 49,
        device_port: "simulated".to_owned(),
        network_port: free_port(),
        ..AnalyzerConf::default()
    };
    let mut conf = ServerConf::new("127.0.0.1", &ptd.display().to_string(), analyzer);
    conf.listen = (Ipv4Addr::LOCALHOST.into(), free_port());
    let file = place.join("server.conf");
    fs::write(&file, conf.render()?)?;
    let programs = power_dev.join("ptd_client_server");
    let mut command = Command::new("python3");
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUNBUFFERED", "1");
    command.arg(programs.join("server.py")).arg("-c").arg(file);
    let server = Process::start(&mut command, &place.join("server.txt"));
    eventually("the server to be ready", 60, || {
        server.output().contains("Ready to accept connections")
    });
    let logs = place.join("loadgen");
    let workload = format!(
        "{} bench --engine sim --benchmark digits --scenario SingleStream --mode PerformanceOnly --duration 4s --log-dir {}",
        agent().display(),
        logs.display()
    );
    let begun = Instant::now();
    let output = Command::new("python3")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(programs.join("client.py"))
        .args([
            "-a",
            "127.0.0.1",
            "-n",
            "127.0.0.1",
            "-p",
            &conf.listen.1.to_string(),
        ])
        .args(["-w", &workload, "-T", "-L"])
        .arg(&logs)
        .arg("-o")
        .arg(place.join("session"))
        .output()?;
    let whole = begun.elapsed();
    ensure!(output.status.success(), "{}", printed(&output));
    Ok(whole.as_secs_f64() - windows(&place.join("session"))?)
}

/// Measures a session of `regatta power run`.
fn with_regatta(lab: &Lab, measured: &mut Measured) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut command = lab.regatta();
    let output = run_session(&mut command, "meter")
        .args(["--format", "json"])
        .output()?;
    let whole = begun.elapsed().as_secs_f64();
    ensure!(output.status.success(), "{}", printed(&output));
    let record: Value = json(&output)["sessions"][0].clone();
    let steps = record["steps"].as_array().context("steps")?;
    let seconds = |is_meant: &dyn Fn(&Value) -> bool| -> f64 {
        let steps = steps.iter().filter(|step| is_meant(&step["step"]));
        steps.filter_map(|step| step["seconds"].as_f64()).sum()
    };
    let session = seconds(&|step| step != SERVER_STARTS);
    let directory = PathBuf::from(record["directory"].as_str().context("a directory")?);
    measured.regatta.push(session - windows(&directory)?);
    measured.judging.push(seconds(&|step| step == COLLECTING));
    measured.before.push(whole - session);
    Ok(())
}

/// Returns the seconds of LoadGen's windows in both parts of a session.
fn windows(session: &Path) -> anyhow::Result<f64> {
    let mut seconds = 0.0;
    for part in ["ranging", "run_1"] {
        let log = fs::read_to_string(session.join(part).join("mlperf_log_detail.txt"))?;
        let (begin, end) = power_window(&log).context("power_begin and power_end")?;
        seconds += (end - begin).rem_euclid(Duration::from_hours(24).as_secs_f64());
    }
    Ok(seconds)
}
