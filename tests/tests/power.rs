//! Rehearsals of power sessions: the official client, server and checker of mlcommons/power-dev, with a simulated PTDaemon and the agent
//! as workload. The official waits are not shortened, because the checker refuses that; so all sessions go on at once.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, path::Path, process::Command, thread};

use regatta_tests::{agent, power_dev, regatta};

/// A rehearsal: what is different about it, its exit code, and what it must say.
struct Case {
    name: &'static str,
    options: &'static [&'static str],
    code: i32,
    expected: &'static [&'static str],
}

/// The sentence about a session of our programs.
const OWN_PROGRAMS: &str =
    "this session is not valid for submission: Regatta's own power client or server made it";

/// The case whose workload must outlast the wait for a sample.
const LONG: &str = "a meter that stops";

const CASES: [Case; 11] = [
    Case {
        name: "a good session",
        options: &["--fault", "slow-start=2"],
        code: 0,
        expected: &["official checker: 11 of 11 checks passed", "REHEARSAL"],
    },
    Case {
        name: "two channels",
        options: &["--model", "YokogawaWT330_multichannel"],
        code: 0,
        expected: &["official checker: 11 of 11 checks passed"],
    },
    Case {
        name: "our client with the official server",
        options: &["--own-client"],
        code: 0,
        expected: &[
            "[ ] Check client sources checksum",
            "official checker: 10 of 11",
            OWN_PROGRAMS,
        ],
    },
    Case {
        name: "the official client with our server",
        options: &["--own-server"],
        code: 0,
        expected: &[
            "[ ] Check server sources checksum",
            "official checker: 10 of 11",
            OWN_PROGRAMS,
        ],
    },
    Case {
        name: "our client and our server",
        options: &[
            "--own-client",
            "--own-server",
            "--model",
            "YokogawaWT330_multichannel",
        ],
        code: 0,
        expected: &[
            "[ ] Check client sources checksum",
            "[ ] Check server sources checksum",
            "official checker: 9 of 11",
            OWN_PROGRAMS,
        ],
    },
    Case {
        name: "testing with less power than ranging",
        options: &["--ranging-watts", "100", "--testing-watts", "94", "--noise", "0"],
        code: 1,
        expected: &["[ ] Check time difference", "official checker: 10 of 11"],
    },
    Case {
        name: "an error of the meter",
        options: &["--fault", "error=testing:3"],
        code: 1,
        expected: &["[ ] Check errors and warnings from PTD logs"],
    },
    Case {
        name: "a crash in the middle",
        options: &["--fault", "crash=ranging:2"],
        code: 3,
        expected: &["PTDaemon has ended", "check the meter's cable"],
    },
    Case {
        name: LONG,
        options: &["--fault", "stall=ranging:1"],
        code: 3,
        expected: &[
            "while ranging: the workload runs",
            "no sample from the meter for 45 s",
        ],
    },
    Case {
        name: "a range that the meter does not have",
        options: &["--fault", "refused-range"],
        code: 3,
        expected: &["the meter refused a range of the testing run"],
    },
    Case {
        name: "a meter that is off",
        options: &["--fault", "slow-start=60"],
        code: 3,
        expected: &["PTDaemon did not listen within 30 s", "switch the meter on"],
    },
];

#[test]
fn rehearsals_pass_the_official_checker_or_say_why_not() {
    let Some(power_dev) = power_dev() else { return };
    // The rehearsal starts the agent that lies beside it.
    assert!(agent().exists());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let failures: Vec<String> = thread::scope(|scope| {
        let rehearse = |number: usize, case: &'static Case| {
            let directory = directory.path().join(number.to_string());
            let power_dev = power_dev.clone();
            scope.spawn(move || rehearsal(case, &power_dev, &directory))
        };
        let running: Vec<_> = CASES
            .iter()
            .enumerate()
            .map(|(number, case)| rehearse(number, case))
            .collect();
        let results = running.into_iter().map(|one| one.join().expect("no panic"));
        results.filter_map(Result::err).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn rehearsal(case: &Case, power_dev: &Path, directory: &Path) -> Result<(), String> {
    let output = Command::new(regatta())
        .args(["power", "simulate", "--dir"])
        .arg(directory)
        .arg("--power-dev")
        .arg(power_dev)
        .args(["--duration", if case.name == LONG { "60s" } else { "4s" }])
        .args(case.options)
        // Under cargo the agent would be built anew; the debug switch would shorten the waits and fail the checker.
        .env_remove("CARGO")
        .env("MLPP_DEBUG", "1")
        .output()
        .map_err(|error| error.to_string())?;
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let missing = case.expected.iter().find(|words| !printed.contains(**words));
    if output.status.code() != Some(case.code) || missing.is_some() {
        let server = fs::read_to_string(directory.join("server-output.txt")).unwrap_or_default();
        return Err(format!(
            "{}: {}, has no {missing:?}\n{printed}\n{server}",
            case.name, output.status
        ));
    }
    if case.code == 0 {
        let is_own = case.expected.contains(&OWN_PROGRAMS);
        refused_by_strict_check(&directory.join("session"), is_own)?;
    }
    match left_over(directory) {
        processes if processes.is_empty() => Ok(()),
        processes => Err(format!("{}: still running: {processes:?}", case.name)),
    }
}

/// The official checker accepts the session, unless our programs made it; Regatta's says what it is.
fn refused_by_strict_check(session: &Path, is_own: bool) -> Result<(), String> {
    for (options, code) in [(&["--as-official"][..], i32::from(is_own)), (&[], 1)] {
        let check = Command::new(regatta())
            .args(["power", "check"])
            .args(options)
            .arg(session)
            .output();
        let output = check.map_err(|error| error.to_string())?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let is_strict = options.is_empty();
        let is_named = printed.contains("FAKEPTD") == is_strict
            && printed.contains(OWN_PROGRAMS) == (is_strict && is_own);
        if output.status.code() != Some(code) || !is_named {
            return Err(format!("power check {options:?}: {}\n{printed}", output.status));
        }
    }
    Ok(())
}

/// The processes with this directory on their command line.
fn left_over(directory: &Path) -> Vec<String> {
    let name = directory.display().to_string();
    let lines = fs::read_dir("/proc")
        .expect("/proc is there")
        .flatten()
        .filter_map(|entry| {
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).replace('\0', " "))
        });
    lines.filter(|line| line.contains(&name)).collect()
}
