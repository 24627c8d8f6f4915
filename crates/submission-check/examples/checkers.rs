//! Times the checker beside the official one on the same submission, in turns, each in its own process with warm files.
//!
//! ```text
//! tests/oracles/inference/checkouts.sh CLONE DIR          checkouts of mlcommons/inference, out of a clone of it
//! cargo run --release -p regatta-submission-check --example checkers -- TREE v2.1 DIR      a line for docs/METHODOLOGY.md
//! cargo run --release -p regatta-submission-check --example checkers -- one TREE v2.1 official|strict
//! ```
//! The tests compare their results.

use std::{
    env,
    error::Error,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use regatta_catalogue::{known, round::Round};
use regatta_submission_check::{
    check::{as_official, csv, format, strict},
    tree::Tree,
};

/// Rounds of turns; the medians count.
const TURNS: usize = 7;

type ExampleResult<T> = Result<T, Box<dyn Error>>;

fn main() -> ExampleResult<()> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match *arguments.as_slice() {
        ["one", tree, name, mode] => one(Path::new(tree), name, mode),
        [tree, name, tools] => compare(tree, name, Path::new(tools)),
        _ => Err("give: TREE vX.Y DIRECTORY_OF_CHECKOUTS | one TREE vX.Y official|strict".into()),
    }
}

fn round(name: &str) -> ExampleResult<&'static Round> {
    Ok(known::round(name)?.ok_or("no such round")?)
}

/// Runs one check as the command does, without its output. Prints the largest resident size in KiB.
fn one(tree: &Path, name: &str, mode: &str) -> ExampleResult<()> {
    let round = round(name)?;
    let tree = Tree::scan(tree)?;
    let text = if mode == "official" {
        let official = as_official(&tree, round, None)?;
        csv(&official.checker, &round.name, &official.rows) + &format::official_text(&official)
    } else {
        format::strict_text(&strict(&tree, round))
    };
    std::hint::black_box(text);
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let size = line.and_then(|line| line.split_whitespace().next());
    println!("{}", size.unwrap_or("0"));
    Ok(())
}

fn compare(tree: &str, name: &str, tools: &Path) -> ExampleResult<()> {
    let round = round(name)?;
    let revision = &round
        .submission
        .checkers
        .first()
        .ok_or("the round has no checker")?
        .revision;
    let tools = tools.join(revision).join("tools/submission");
    let python = env::var("REGATTA_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let scripts = ["submission-checker.py", "submission_checker.py"].map(|name| tools.join(name));
    let csv = env::temp_dir().join(format!("regatta-checkers-{}.csv", std::process::id()));
    let official = || {
        let mut command = Command::new(&python);
        match scripts.iter().find(|script| script.is_file()) {
            Some(script) => command.arg(script),
            None => command.args(["-m", "submission_checker.main"]),
        };
        command.current_dir(&tools).env("PYTHONDONTWRITEBYTECODE", "1");
        command
            .args(["--input", tree, "--version", name, "--csv"])
            .arg(&csv);
        command
    };
    let program = env::current_exe()?;
    let ours = |mode: &str| {
        let mut command = Command::new(&program);
        command.args(["one", tree, name, mode]);
        command
    };
    let mut times = [const { Vec::new() }; 3];
    let mut sizes = [0, 0, 0];
    // The first turn warms the files.
    for turn in 0..=TURNS {
        for (index, mut command) in [official(), ours("official"), ours("strict")]
            .into_iter()
            .enumerate()
        {
            let (time, size) = timed(&mut command)?;
            if turn > 0 {
                times[index].push(time);
            }
            sizes[index] = size;
        }
    }
    drop(fs::remove_file(csv));
    let [official, ours, strict] = times.map(median);
    println!(
        "| tree | official, s | as official, s | times | strict, s | strict / as official | MiB, as official | MiB, strict |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    println!(
        "| {name}, checker {revision} | {official:.3} | {ours:.4} | {:.1} | {strict:.4} | {:.2} | {:.1} | {:.1} |",
        official / ours,
        strict / ours,
        sizes[1] as f64 / 1024.0,
        sizes[2] as f64 / 1024.0
    );
    Ok(())
}

/// How long a command takes, and the number that it prints.
fn timed(command: &mut Command) -> ExampleResult<(Duration, u64)> {
    let began = Instant::now();
    let done = command.stderr(Stdio::null()).output()?;
    let time = began.elapsed();
    let text = String::from_utf8_lossy(&done.stdout);
    Ok((time, text.trim().parse().unwrap_or(0)))
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64)
}
