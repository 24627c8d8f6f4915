//! Tests against the official scripts, where they are installed. `REGATTA_OFFICIAL_TOOLS` names a directory with a checkout of
//! mlcommons/inference per tag (`v2.1` ... `v5.1`, `HEAD`), `REGATTA_PYTHON` a Python with NumPy.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use regatta_submission_stage::audit::{
    AuditRequest, Audited, Dtype, Test, compare_accuracy, compare_performance, verify, write_baseline,
};
use regatta_test_requirements::official_tools;
use regatta_test_support::{
    round,
    tree::{files, put},
};

use crate::logs::{Numbers, Run, put_accuracy};

/// Our round, the tag of its scripts.
const ROUNDS: [(&str, &str); 9] = [
    ("v2.1", "v2.1"),
    ("v3.0", "v3.0"),
    ("v3.1", "v3.1"),
    ("v4.0", "v4.0"),
    ("v4.1", "v4.1"),
    ("v5.0", "v5.0"),
    ("v5.1", "v5.1"),
    ("v6.0", "HEAD"),
    ("v6.1", "HEAD"),
];

struct Official {
    tools: PathBuf,
    python: PathBuf,
}

impl Official {
    fn find() -> Option<Self> {
        let tools = official_tools("")?;
        let python = env::var_os("REGATTA_PYTHON").unwrap_or_else(|| "python3".into());
        Some(Self {
            tools,
            python: python.into(),
        })
    }

    /// Returns the script of an audit, which until v5.1 was one directory deeper.
    fn script(&self, tag: &str, test: &str, name: &str) -> PathBuf {
        let place = |root: &str| self.tools.join(tag).join(root).join(test).join(name);
        let old = place("compliance/nvidia");
        if old.is_file() { old } else { place("compliance") }
    }

    fn run(&self, script: &Path, arguments: &[&str], directory: &Path) -> Output {
        let mut path = self.python.parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(env::var_os("PATH").unwrap());
        Command::new(&self.python)
            .arg(script)
            .args(arguments)
            .current_dir(directory)
            .env("PATH", path)
            .output()
            .unwrap()
    }
}

#[test]
fn verify_accuracy_txt_is_the_scripts_to_the_byte() {
    let Some(official) = Official::find() else { return };
    let (mut numbers, mut failed, mut crashed) = (Numbers::new(0x5eed), 0, 0);
    for case in 0..60_u64 {
        let dir = tempfile::tempdir().unwrap();
        let (reference, audited) = (dir.path().join("a.json"), dir.path().join("p.json"));
        put_case(case, &mut numbers, &reference, &audited);
        let (name, tag) = ROUNDS[case as usize % ROUNDS.len()];
        let dtype = ["byte", "float32", "int32", "int64"][(case / 3) as usize % 4];
        let theirs = official.run(
            &official.script(tag, "TEST01", "verify_accuracy.py"),
            &[
                "--dtype",
                dtype,
                "-r",
                reference.to_str().unwrap(),
                "-t",
                audited.to_str().unwrap(),
            ],
            dir.path(),
        );
        let needs_a_match = round(name).audits["TEST01"].needs_a_match;
        let ours = compare_accuracy(&reference, &audited, dtype.parse().unwrap(), needs_a_match);
        match ours {
            Ok(ours) => {
                failed += u32::from(!ours.counts.passed);
                assert_eq!(
                    ours.counts.text(),
                    String::from_utf8(theirs.stdout).unwrap(),
                    "{case} {dtype}"
                );
            }
            Err(error) => {
                crashed += 1;
                let traceback = String::from_utf8(theirs.stderr).unwrap();
                assert!(
                    traceback.contains("buffer size must be a multiple"),
                    "{error}: {traceback}"
                );
            }
        }
    }
    assert!(
        failed > 10 && crashed > 2,
        "{failed} {crashed}: the cases show too little"
    );
}

/// Logs with duplicates, empty and odd responses, differing ones and unknown samples, the more the higher the case.
fn put_case(case: u64, numbers: &mut Numbers, reference: &Path, audited: &Path) {
    let size = case % 7 * 20;
    let mut entries = Vec::new();
    for qsl_idx in 0..size {
        let mut data = numbers.elements(2);
        match numbers.below(60) {
            0 => data.clear(),
            1 if case.is_multiple_of(5) => data.truncate(3),
            _ => {}
        }
        entries.push((qsl_idx as usize, data));
        if numbers.below(12) == 0 {
            let sample = numbers.below(qsl_idx + 1) as usize;
            let data = if numbers.below(2) == 0 {
                entries[0].1.clone()
            } else {
                numbers.elements(2)
            };
            entries.push((sample, data));
        }
    }
    put_accuracy(reference, &entries);
    let mut answers = Vec::new();
    for _ in 0..entries.len() / 2 {
        let (qsl_idx, mut data) = entries[numbers.below(entries.len() as u64) as usize].clone();
        match numbers.below(30) {
            0 if case.is_multiple_of(2) => data = numbers.elements(2),
            1 if case.is_multiple_of(2) => data.clear(),
            2 => data.truncate(data.len() & !3),
            _ => {}
        }
        let unknown = numbers.below(20) == 0;
        answers.push((if unknown { 1_000_000 + qsl_idx } else { qsl_idx }, data));
    }
    put_accuracy(audited, &answers);
}

fn runs() -> Vec<(Run, Run)> {
    let mut pairs = Vec::new();
    let scores: [(&str, &[(&str, &str)]); 4] = [
        (
            "SingleStream",
            &[
                ("646245", "645766"),
                ("646245", "711000"),
                ("100000", "115000"),
                ("100000", "130000"),
                ("200000", "240000"),
                ("1000000", "1100000"),
                ("1000000", "900000"),
                ("1000000", "1050000"),
                ("1000000", "950001"),
                ("1000000", "5"),
            ],
        ),
        (
            "MultiStream",
            &[
                ("1600000", "1900000"),
                ("29964648", "29979023"),
                ("29964648", "1"),
                ("1700000", "1900000"),
            ],
        ),
        (
            "Offline",
            &[
                ("258.352", "260.655"),
                ("100", "110"),
                ("100", "90"),
                ("100.5", "89"),
                ("100", "96"),
                ("0.328932", "3e-05"),
            ],
        ),
        ("Server", &[("1000.5", "1001"), ("1000", "900.01")]),
    ];
    for (scenario, scores) in scores {
        for (reference, test) in scores {
            pairs.push((Run::new(scenario, reference), Run::new(scenario, test)));
        }
    }
    let base = Run::new("Offline", "10");
    let invalid = Run {
        valid: false,
        ..base.clone()
    };
    pairs.push((invalid.clone(), base.clone()));
    pairs.push((base.clone(), invalid));
    pairs.push((base.clone(), Run::new("SingleStream", "10")));
    pairs
}

#[test]
fn verify_performance_txt_is_the_scripts_to_the_byte() {
    let Some(official) = Official::find() else { return };
    let (mut passed, mut failed) = (0, 0);
    for (name, tag) in ROUNDS {
        for (test, rule) in &round(name).audits {
            for (reference, audit) in runs() {
                let dir = tempfile::tempdir().unwrap();
                let (r, t) = (dir.path().join("r"), dir.path().join("t"));
                reference.put(&r);
                audit.put(&t);
                let detail = test == "TEST01" && ["v5.1", "HEAD"].contains(&tag);
                let log = if detail {
                    "mlperf_log_detail.txt"
                } else {
                    "mlperf_log_summary.txt"
                };
                let (r_log, t_log) = (r.join(log), t.join(log));
                let arguments = ["-r", r_log.to_str().unwrap(), "-t", t_log.to_str().unwrap()];
                let script = official.script(tag, test, "verify_performance.py");
                let theirs = official.run(&script, &arguments, dir.path());
                let ours = compare_performance(rule, &r, &t).unwrap();
                let case = format!("{name} {test} {reference:?} {audit:?}");
                assert_eq!(ours.printed, String::from_utf8(theirs.stdout).unwrap(), "{case}");
                let complaints = String::from_utf8(theirs.stderr).unwrap();
                match &ours.refusal {
                    Some(refusal) => assert!(
                        complaints.ends_with(&format!("{refusal}\n")),
                        "{case}: {complaints}"
                    ),
                    None => assert!(
                        !complaints.contains("FAIL") && !complaints.contains("Traceback"),
                        "{case}: {complaints}"
                    ),
                }
                if ours.passed { passed += 1 } else { failed += 1 }
            }
        }
    }
    assert!(
        passed > 100 && failed > 100,
        "{passed} {failed}: the cases show too little"
    );
}

#[test]
fn run_verification_leaves_the_same_directory() {
    let Some(official) = Official::find() else { return };
    for (name, tag) in ROUNDS {
        let round = round(name);
        for (test, refused) in [
            (Test::Test01, false),
            (Test::Test04, false),
            (Test::Test04, true),
            (Test::Test05, false),
        ] {
            if !round.audits.contains_key(test.name()) {
                continue;
            }
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            let run = Run {
                valid: !refused,
                ..Run::new("SingleStream", "1000000")
            };
            run.put(&at("results/performance/run_1"));
            run.put(&at("audit"));
            let entries = [(0, vec![1, 0, 0, 0]), (1, vec![2, 0, 0, 0])];
            put_accuracy(&at("results/accuracy/mlperf_log_accuracy.json"), &entries);
            put_accuracy(&at("audit/mlperf_log_accuracy.json"), &entries[1..]);
            put(&at("theirs/x"), "");
            let mut arguments = vec!["-r", "results", "-c", "audit", "-o", "theirs"];
            if test == Test::Test01 {
                arguments.extend(["--dtype", "int32"]);
            }
            let script = official.script(tag, test.name(), "run_verification.py");
            let output = official.run(&script, &arguments, dir.path());
            assert!(output.status.success(), "{output:?}");
            fs::remove_file(at("theirs/x")).unwrap();
            let request = AuditRequest {
                test,
                audited: &Audited::in_results(&at("results")),
                compliance: &at("audit"),
                output: &at("ours"),
                dtype: Dtype::Int32,
                round: &round,
            };
            let report = verify(&request).unwrap();
            assert_eq!(report.passed(), !refused);
            let (ours, mut theirs) = (files(&at("ours")), files(&at("theirs")));
            for (path, bytes) in &mut theirs {
                if path.ends_with("verify_performance.txt") {
                    *bytes = without_logging(bytes);
                }
            }
            assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
            for (path, bytes) in &theirs {
                let texts = [bytes, &ours[path]].map(|bytes| String::from_utf8_lossy(bytes));
                assert_eq!(texts[0], texts[1], "{name} {path}");
            }
        }
    }
}

#[test]
fn the_baseline_is_the_scripts() {
    let Some(official) = Official::find() else { return };
    let mut numbers = Numbers::new(0xba5e);
    for tag in ["v2.1", "v5.1", "HEAD"] {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let entries: Vec<_> = (0..500)
            .map(|sample| (sample * 7 % 500, numbers.elements(3)))
            .collect();
        put_accuracy(&at("mlperf_log_accuracy.json"), &entries);
        // The script takes whole lines that hold an index and its response's first digits, so it finds equal ones only.
        let audited: Vec<_> = entries.iter().step_by(9).cloned().collect();
        put_accuracy(&at("audit.json"), &audited);
        let script = official.script(tag, "TEST01", "create_accuracy_baseline.sh");
        let status = Command::new("bash")
            .args([&script, &at("mlperf_log_accuracy.json"), &at("audit.json")])
            .current_dir(dir.path())
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success());
        let theirs = fs::read_to_string(at("mlperf_log_accuracy_baseline.json")).unwrap();
        let baseline = write_baseline(
            &at("mlperf_log_accuracy.json"),
            &at("audit.json"),
            &at("ours.json"),
        );
        assert_eq!(baseline.unwrap().entries, audited.len() as u64);
        assert_eq!(fs::read_to_string(at("ours.json")).unwrap(), theirs, "{tag}");
    }
}

/// The log lines with time and absolute paths, which we leave out.
fn without_logging(text: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(text).unwrap();
    text.split_inclusive('\n')
        .filter(|line| !(line.starts_with('[') && line.contains(" log_parser.py:")))
        .collect::<String>()
        .into_bytes()
}
