//! Tests of `regatta submission` and `regatta audit` as users call them: output, files and exit codes. The tests of
//! `crates/submission-check` verify the verdicts.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Output},
};

use regatta_catalogue::known;
use regatta_test_requirements::program;
use regatta_test_support::{published_results, synthetic_endpoints, synthetic_submission, tree};
use tempfile::TempDir;

const SCENARIO: &str = "closed/Team/results/board/whisper/Offline";

/// A directory with the submission `tree/`, in order for v6.0, where `regatta` runs.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        let rounds = known::rounds().unwrap();
        let round = rounds.iter().find(|round| round.name == "v6.0").unwrap();
        synthetic_submission::write(&desk.at("tree"), round);
        desk
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn regatta(&self, words: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_regatta"))
            .current_dir(self.0.path())
            .env_remove("REGATTA_WORKSPACE")
            .args(words.split_whitespace())
            .output()
            .unwrap()
    }

    /// Returns exit code and standard output.
    fn answer(&self, words: &str) -> (i32, String) {
        let output = self.regatta(words);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{words}");
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )
    }

    /// Returns exit code and the sentence on standard error.
    fn refusal(&self, words: &str) -> (i32, String) {
        let output = self.regatta(words);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{words}");
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(!printed.contains("panicked"), "{printed}");
        (output.status.code().unwrap(), printed)
    }
}

#[test]
fn a_sound_tree_passes_in_every_format_and_spelling() {
    let desk = Desk::new();
    let mut reported = String::new();
    for words in [
        "--input tree --version v6.0",
        "--round v6.0 tree --format csv",
        "--input tree --version v6.0 --as-official",
        "tree --version v6.0 --as-official --format csv",
    ] {
        let (code, printed) = desk.answer(&format!("submission check {words}"));
        assert_eq!(code, 0, "{words}: {printed}");
        reported.push_str(&format!("$ regatta submission check {words}\n{printed}\n"));
    }
    insta::assert_snapshot!(reported);
    let check = |round| desk.answer(&format!("submission check tree --version {round}"));
    assert_eq!(check("V6.0"), check("v6.0"));
    for official in ["", "--as-official"] {
        let (code, page) = desk.answer(&format!(
            "submission check tree --version v6.0 --format html {official}"
        ));
        assert_eq!(code, 0);
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        assert!(page.contains("<td>whisper<td>Offline"), "{page}");
    }
}

#[test]
fn a_tree_of_the_endpoints_harness_is_judged_in_its_round_alone() {
    let desk = Desk::new();
    let rounds = known::rounds().unwrap();
    let round = rounds.iter().find(|round| round.name == "v6.1").unwrap();
    synthetic_endpoints::write(&desk.at("endpoints"), round);
    for official in ["", "--as-official"] {
        let (code, printed) = desk.answer(&format!("submission check endpoints --round v6.1 {official}"));
        assert_eq!(code, 0, "{printed}");
    }
    let (code, printed) = desk.answer("submission check endpoints --round v6.0 --format csv");
    assert_eq!(code, 1, "{printed}");
}

#[test]
fn the_round_is_found_by_the_seeds_of_the_runs() {
    let desk = Desk::new();
    let (code, printed) = desk.answer("--quiet submission check tree");
    assert_eq!(code, 0, "{printed}");
    let (code, printed) = desk.answer("submission check tree --version v5.1 --format json");
    assert_eq!(code, 1, "{printed}");
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let first = &document["findings"][0];
    assert_eq!(
        first["message"], "the runs have the seeds of v6.0, not of v5.1",
        "{first}"
    );
    assert_eq!(first["fix"], "check the tree with --round v6.0");
    let notice = desk.regatta("submission check tree").stderr;
    assert_eq!(
        String::from_utf8(notice).unwrap(),
        "The rules of v6.0 apply: the runs have its seeds.\n"
    );
    // Runs of the endpoints harness have seeds, too.
    let rounds = known::rounds().unwrap();
    let round = rounds.iter().find(|round| round.name == "v6.1").unwrap();
    synthetic_endpoints::write(&desk.at("endpoints"), round);
    let (code, printed) = desk.answer("--quiet submission check endpoints");
    assert_eq!(code, 0, "{printed}");
    fs::create_dir_all(desk.at("empty/closed/Team/results")).unwrap();
    let (code, printed) = desk.refusal("submission check empty");
    assert_eq!(code, 2, "{printed}");
    assert!(
        printed.contains("no run has the seeds of a known round"),
        "{printed}"
    );
}

#[test]
fn one_submitter_is_checked_alone() {
    let desk = Desk::new();
    tree::copy(&desk.at("tree/closed/Team"), &desk.at("tree/closed/Other"));
    fs::remove_file(
        desk.at("tree")
            .join(SCENARIO.replace("Team", "Other"))
            .join("user.conf"),
    )
    .unwrap();
    for official in ["", "--as-official"] {
        let check = |submitter: &str| {
            desk.answer(&format!(
                "submission check tree --version v6.0 {submitter} {official}"
            ))
        };
        assert_eq!(check("--submitter Team").0, 0);
        let (code, printed) = check("--submitter Other");
        assert_eq!(code, 1, "{printed}");
        assert_eq!(check("").0, 1);
    }
    let (code, printed) = desk.refusal("submission check tree --version v6.0 --submitter Nobody");
    assert_eq!(code, 2, "{printed}");
    assert!(printed.contains("no submitter `Nobody`"), "{printed}");
}

#[test]
fn a_published_power_session_passes_its_rounds_checks_and_no_later_ones() {
    let session = "v2.1/closed/NVIDIA/results/Orin_TRT_MaxQ/resnet50/Offline/performance";
    let Some(session) = published_results(session) else {
        return;
    };
    let desk = Desk::new();
    let (code, printed) = desk.answer(&format!("power check {} --round v2.1", session.display()));
    assert_eq!(code, 0, "{printed}");
    insta::assert_snapshot!(printed);
    let (code, printed) = desk.answer(&format!(
        "power check {} --version v6.1 --format json",
        session.display()
    ));
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, document["verdict"].as_str()), (1, Some("fail")));
    let (code, printed) = desk.refusal("power check tree --round v6.1");
    assert_eq!(code, 3, "{printed}");
    assert!(printed.contains("power/"), "{printed}");
}

#[test]
fn a_faulty_tree_fails_and_the_json_says_where() {
    let desk = Desk::new();
    let detail = desk
        .at("tree")
        .join(SCENARIO)
        .join("performance/run_1/mlperf_log_detail.txt");
    let text = fs::read_to_string(&detail).unwrap();
    fs::write(&detail, text.replace("600000", "60000")).unwrap();
    let (code, printed) = desk.answer("submission check --input tree --version v6.0 --format json");
    assert_eq!(code, 1, "{printed}");
    insta::assert_snapshot!(printed);
    // The global flag may also be here.
    let (_, again) = desk.answer("--format json submission check --input tree --version v6.0");
    assert_eq!(again, printed);
    let (code, printed) =
        desk.answer("submission check --input tree --version v6.0 --as-official --format json");
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, document["verdict"].as_str()), (1, Some("fail")));
}

#[test]
fn misuse_exits_2_and_missing_files_exit_3() {
    let desk = Desk::new();
    for (words, code, part) in [
        ("submission check tree --version v9.9", 2, "known are v2.0, v2.1"),
        ("submission check --version v6.0", 2, "--input"),
        (
            "submission check tree --version v6.0 --as-official=r7",
            2,
            "known are",
        ),
        ("submission check boat --version v6.0", 3, "boat cannot be listed"),
        ("--format csv device list", 2, "text, json"),
        ("submission truncate --input tree --submitter Team", 2, "--backup"),
        (
            "submission truncate --input tree --submitter Nobody --output new",
            2,
            "Nobody",
        ),
        (
            "submission truncate --input boat --submitter Team --output new",
            3,
            "boat cannot be listed",
        ),
        (
            "submission truncate --input tree --submitter Team --backup tree/old",
            2,
            "inside",
        ),
        (
            "submission pack --input boat --submitter Team --output out",
            3,
            "boat cannot be listed",
        ),
        (
            "submission unpack --input . --submitter Team --output tree",
            2,
            "exists already",
        ),
        (
            "audit verify TEST09 --results a --compliance b --output c",
            2,
            "TEST01, TEST04, TEST05",
        ),
        (
            "audit verify TEST01 --results a --compliance b --output c --dtype bit",
            2,
            "float32",
        ),
        (
            "audit verify TEST05 --results a --compliance b --output c --round v6.0",
            2,
            "--round",
        ),
        (
            "audit verify TEST04 --results a --compliance b --output c --round v5.1",
            3,
            "a/performance",
        ),
    ] {
        let (found, printed) = desk.refusal(words);
        assert_eq!(found, code, "{words}: {printed}");
        assert!(printed.contains(part), "{words}: {printed}");
    }
    assert!(!desk.at("new").exists() && !desk.at("out").exists());
}

/// A log that is long enough to be cut.
fn put_long_log(desk: &Desk) -> Vec<u8> {
    let line = "{ \"seq_id\" : 0, \"qsl_idx\" : 0, \"data\" : \"00000000\" },\n";
    let log = format!("[\n{}]\n", line.repeat(400)).into_bytes();
    let directory = desk.at("tree").join(SCENARIO).join("accuracy");
    fs::write(directory.join("mlperf_log_accuracy.json"), &log).unwrap();
    fs::write(directory.join("accuracy.txt"), "accuracy=97.9329%\n").unwrap();
    log
}

#[test]
fn truncation_cuts_keeps_and_proves() {
    let desk = Desk::new();
    let original = put_long_log(&desk);
    let log = |tree: &str| {
        fs::read(
            desk.at(tree)
                .join(SCENARIO)
                .join("accuracy/mlperf_log_accuracy.json"),
        )
        .unwrap()
    };
    let into = "submission truncate --input tree --submitter Team --version v6.0 --output cut --verify";
    let (code, printed) = desk.answer(into);
    assert_eq!(code, 0, "{printed}");
    insta::assert_snapshot!(printed);
    assert_eq!(log("tree"), original, "the input stays as it is");
    assert_eq!(log("cut").len(), 4096 + 7 + 4096);
    let (code, printed) = desk.refusal(into);
    assert!(code == 2 && printed.contains("exists already"), "{printed}");

    let in_place = "submission truncate --input tree --submitter Team --backup old --verify --format json";
    let (code, printed) = desk.answer(in_place);
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, document["cut"].as_u64()), (0, Some(2)), "{printed}");
    assert_eq!(log("tree"), log("cut"));
    assert_eq!(log("old"), original);
    // A changed truncated log is no longer proven.
    let touched = desk
        .at("tree")
        .join(SCENARIO)
        .join("accuracy/mlperf_log_accuracy.json");
    fs::write(&touched, &log("cut")[1..]).unwrap();
    let (code, printed) = desk.answer(in_place);
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(code, 1, "{printed}");
    assert!(
        document["proofs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|proof| proof["valid"] == false)
    );
    // A log without accuracy.txt is not truncated, and the exit code is 1.
    let skipped =
        "submission truncate --input tree --submitter Team --output skipped --scenarios-to-skip Offline";
    assert_eq!(desk.answer(skipped).0, 0);
    fs::remove_file(desk.at("tree").join(SCENARIO).join("accuracy/accuracy.txt")).unwrap();
    let (code, printed) = desk.answer("submission truncate --input tree --submitter Team --output left");
    assert!(
        code == 1 && printed.contains("accuracy.txt is missing"),
        "{printed}"
    );
}

#[test]
fn a_package_opens_again_and_an_unclean_tree_is_not_packed() {
    if program("openssl", "openssl").is_none() {
        return;
    }
    let desk = Desk::new();
    fs::write(desk.at("word"), "harbour\n").unwrap();
    let pack = "submission pack --input tree --submitter Team --output out --password-file word";
    let unpack = "submission unpack --input out --submitter Team --password-file word";
    let (code, printed) = desk.answer(pack);
    assert!(
        code == 0 && printed.contains("mlperf_submission_Team.tar.gz"),
        "{printed}"
    );
    let (code, printed) = desk.refusal(pack);
    assert!(
        code == 2 && printed.contains("replace it with --force"),
        "{printed}"
    );
    let pack = &format!("{pack} --force");
    let (code, printed) = desk.answer(&format!("{unpack} --output back --format json"));
    assert_eq!(code, 0, "{printed}");
    let system = "closed/Team/systems/board.json";
    assert_eq!(
        fs::read(desk.at("back").join(system)).unwrap(),
        fs::read(desk.at("tree").join(system)).unwrap()
    );
    fs::write(desk.at("word"), "pier\n").unwrap();
    let (code, printed) = desk.refusal(&format!("{unpack} --output again"));
    assert!(code == 3 && !desk.at("again").exists(), "{printed}");
    // A pipe without a writer would never end; with a writer it may be slow.
    fs::remove_file(desk.at("word")).unwrap();
    let pipe = desk.at("word");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (code, printed) = desk.refusal(pack);
    assert!(
        code == 3 && printed.contains("it is a pipe without a writer"),
        "{printed}"
    );
    let mut writer = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    writer.write_all(b"harbour\n").unwrap();
    let (code, printed) = desk.answer(pack);
    assert_eq!(code, 0, "{printed}");
    drop(writer);
    fs::remove_file(&pipe).unwrap();
    fs::write(&pipe, "harbour\n").unwrap();
    fs::write(desk.at("tree/closed/Team/.hidden"), "").unwrap();
    let (code, printed) = desk.answer(pack);
    assert!(code == 1 && printed.contains(".hidden is hidden"), "{printed}");
}

#[test]
fn an_audit_is_verified_and_its_directory_written() {
    let desk = Desk::new();
    let scenario = format!("tree/{SCENARIO}");
    let audit = format!("{scenario}/TEST01/performance/run_1");
    let entries =
        |data: &str| format!("[\n{{ \"seq_id\" : 0, \"qsl_idx\" : 3, \"data\" : \"{data}\" }}\n]\n");
    let answered = |path: &str, data: &str| {
        fs::write(desk.at(path).join("mlperf_log_accuracy.json"), entries(data)).unwrap();
    };
    answered(&format!("{scenario}/accuracy"), "0700");
    answered(&audit, "0700");
    let verify =
        format!("audit verify test01 --results {scenario} --compliance {audit} --output out --round V6.0");
    let (code, printed) = desk.answer(&verify);
    assert_eq!(code, 0, "{printed}");
    insta::assert_snapshot!(printed);
    let written = fs::read_to_string(desk.at("out/TEST01/verify_performance.txt")).unwrap();
    assert!(written.contains("TEST PASS"), "{written}");

    answered(&audit, "0900");
    let (code, printed) = desk.answer(&format!("{verify} --format json"));
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (code, document["verdict"].as_str()),
        (1, Some("fail")),
        "{printed}"
    );
    let explanation = document["accuracy"]["explanation"].as_str().unwrap();
    assert!(
        explanation.starts_with("1 of 1 compared responses differ"),
        "{printed}"
    );

    // Part III: accuracies in place of responses, by the user's script.
    let (code, printed) = desk.refusal(&format!("{verify} --benchmark resnet50"));
    assert!(code == 2 && printed.contains("--accuracy-script"), "{printed}");
    let script = |accuracy: &str| {
        let text = format!(
            "#!/bin/sh\ntest -f \"$1\" || exit 9\ncase $1 in *baseline*) echo accuracy=76.0 ;; *) echo accuracy={accuracy} ;; esac\n"
        );
        fs::write(desk.at("script"), text).unwrap();
        fs::set_permissions(desk.at("script"), fs::Permissions::from_mode(0o755)).unwrap();
        desk.answer(&format!(
            "{verify} --benchmark resnet50 --accuracy-script ./script"
        ))
    };
    let (code, printed) = script("75.5");
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("part III PASS: acc of the same samples is 76.0000 in the accuracy run and 75.5000 in the audit, 0.658 % apart; 1 % allowed"),
        "{printed}"
    );
    for (name, text) in [("baseline", "accuracy=76.0\n"), ("compliance", "accuracy=75.5\n")] {
        let written =
            fs::read_to_string(desk.at(&format!("out/TEST01/accuracy/{name}_accuracy.txt"))).unwrap();
        assert_eq!(written, text);
    }
    let beside: Vec<_> = fs::read_dir(desk.at("out")).unwrap().collect();
    assert_eq!(beside.len(), 1, "nothing is left beside the audit: {beside:?}");
    assert_eq!(script("75.0").0, 1);
}

/// The published trees, as the official checker of their round judged them.
#[test]
fn published_trees_are_accepted_as_official() {
    let desk = Desk::new();
    for (round, results) in [("v2.1", 48), ("v5.1", 5), ("v6.0", 8)] {
        let Some(published) = published_results(round) else {
            continue;
        };
        fs::create_dir(desk.at(round)).unwrap();
        std::os::unix::fs::symlink(published.join("closed"), desk.at(round).join("closed")).unwrap();
        let (code, printed) = desk.answer(&format!(
            "submission check --input {round} --version {round} --as-official --format csv"
        ));
        assert_eq!(
            (code, printed.lines().count()),
            (0, results + 1),
            "{round}: {printed}"
        );
        let (code, printed) = desk.answer(&format!(
            "submission check --input {round} --round {round} --format json"
        ));
        let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
        let verdict = if code == 0 { "pass" } else { "fail" };
        assert_eq!(document["verdict"], verdict, "{round}");
        assert_eq!(
            document["results"].as_array().map(Vec::len),
            Some(results),
            "{round}"
        );
    }
}
