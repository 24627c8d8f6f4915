//! Tests of damaged submissions: whatever happens to the files of a tree, both checks end with a verdict, never with a panic.

#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use regatta_catalogue::round::Round;
use regatta_submission_check::{
    check::{Verdict, as_official, csv, format, strict},
    tree::Tree,
};
use regatta_test_support::{round, synthetic_endpoints, synthetic_submission};

const ROUNDS: [&str; 5] = ["v2.1", "v4.0", "v5.1", "v6.0", "v6.1"];

/// Writes the round's submission, or with `odd` that of the endpoints harness if the round has one.
fn write(root: &Path, round: &Round, odd: bool) {
    if odd && round.submission.endpoints.is_some() {
        synthetic_endpoints::write(root, round);
    } else {
        synthetic_submission::write(root, round);
    }
}

/// Both checks of a tree, with all outputs; whether the strict one passes and what the official ones say.
fn judge(root: &Path, round: &Round) -> (bool, Vec<Verdict>) {
    let tree = Tree::scan(root).unwrap();
    let report = strict(&tree, round);
    let json: serde_json::Value = serde_json::from_str(&format::strict_json(&report).unwrap()).unwrap();
    assert_eq!(json["verdict"] == "pass", report.passes());
    let mut seen = HashSet::new();
    for finding in &report.findings {
        assert!(seen.insert(finding), "twice: {finding:?}");
        assert!(!finding.message.is_empty() && !finding.fix.is_empty() && finding.rule.contains(": "));
    }
    assert!(format::strict_text(&report).contains(" results, "));
    assert!(format::strict_html(&report, &round.name).ends_with("</html>\n"));
    let verdicts = round.submission.checkers.iter().map(|checker| {
        let official = as_official(&tree, round, Some(&checker.revision)).unwrap();
        assert!(csv(checker, &round.name, &official.rows).starts_with("Organization,"));
        format::official_json(&official).unwrap();
        assert!(
            format::official_text(&official).contains("SUMMARY")
                || matches!(official.verdict, Verdict::Crash(_))
        );
        official.verdict
    });
    let verdicts = verdicts.collect();
    (report.passes(), verdicts)
}

#[test]
fn the_undamaged_tree_is_in_order() {
    for (name, odd) in ROUNDS.iter().flat_map(|name| [(name, false), (name, true)]) {
        let round = round(name);
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &round, odd);
        let report = strict(&Tree::scan(root.path()).unwrap(), &round);
        assert!(report.passes(), "{name}: {:#?}", report.findings);
        let (_, verdicts) = judge(root.path(), &round);
        assert!(
            verdicts.iter().all(|verdict| *verdict == Verdict::Accept),
            "{name}: {verdicts:?}"
        );
    }
}

#[test]
fn a_log_that_is_absent_is_called_missing() {
    let round = round("v6.0");
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &round, false);
    let is_log = |path: &PathBuf| path.ends_with("performance/run_1/mlperf_log_detail.txt");
    let log = paths(root.path()).into_iter().find(is_log).unwrap();
    let output = |root: &Path| {
        let report = strict(&Tree::scan(root).unwrap(), &round);
        let mut findings = report.findings.into_iter();
        let found = findings.find(|finding| finding.rule.starts_with("file-set"));
        found.unwrap().message
    };
    fs::remove_file(&log).unwrap();
    assert_eq!(output(root.path()), "is missing");
    fs::create_dir(&log).unwrap();
    assert!(output(root.path()).starts_with("cannot be read"));
}

#[derive(Debug, Clone)]
enum Damage {
    Delete,
    Cut(prop::sample::Index),
    Flip(prop::sample::Index, u8),
    Swap(prop::sample::Index),
    Fill(Vec<u8>),
    LongLine,
    MakeDirectory,
    MakeFile,
    LinkTo(prop::sample::Index),
    LinkNowhere,
    LinkUpwards,
    OddName,
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        Just(Damage::Delete),
        index().prop_map(Damage::Cut),
        (index(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        index().prop_map(Damage::Swap),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Damage::Fill),
        Just(Damage::LongLine),
        Just(Damage::MakeDirectory),
        Just(Damage::MakeFile),
        index().prop_map(Damage::LinkTo),
        Just(Damage::LinkNowhere),
        Just(Damage::LinkUpwards),
        Just(Damage::OddName),
    ]
}

fn paths(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(directory) else {
            continue;
        };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Damages one of the paths, as far as the file system permits.
fn apply(paths: &[PathBuf], target: &prop::sample::Index, damage: &Damage) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = target.get(paths);
    match damage {
        Damage::Delete => remove(path),
        Damage::Cut(at) => {
            let bytes = fs::read(path)?;
            fs::write(path, &bytes[..at.index(bytes.len() + 1)])
        }
        Damage::Flip(at, byte) => {
            let mut bytes = fs::read(path)?;
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= byte;
            }
            fs::write(path, bytes)
        }
        Damage::Swap(other) => {
            let (one, two) = (fs::read(path)?, fs::read(other.get(paths))?);
            fs::write(path, two)?;
            fs::write(other.get(paths), one)
        }
        Damage::Fill(bytes) => fs::write(path, bytes),
        Damage::LongLine => fs::write(path, [b":::MLLOG ".as_slice(), &vec![b'{'; 1 << 20]].concat()),
        Damage::MakeDirectory => remove(path).and_then(|()| fs::create_dir(path)),
        Damage::MakeFile => remove(path).and_then(|()| fs::write(path, "x")),
        Damage::LinkTo(other) => remove(path).and_then(|()| symlink(other.get(paths), path)),
        Damage::LinkNowhere => remove(path).and_then(|()| symlink("nowhere", path)),
        Damage::LinkUpwards => remove(path).and_then(|()| symlink("..", path)),
        Damage::OddName => {
            let name = std::ffi::OsStr::from_bytes(b"odd \xff\xfe.json");
            fs::rename(path, path.with_file_name(name))
        }
    }
}

/// Returns the number of damaged submissions; `.ci/long` sets more.
fn cases() -> u32 {
    std::env::var("REGATTA_DAMAGE_CASES").map_or(150, |text| text.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn no_damage_makes_a_check_panic(
        name in prop::sample::select(&ROUNDS[..]),
        odd in any::<bool>(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), damage()), 1..6),
    ) {
        let round = round(name);
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &round, odd);
        for (target, damage) in &damages {
            let paths = paths(root.path());
            if paths.is_empty() {
                break;
            }
            // An impossible damage, such as cutting a directory, leaves the tree unchanged.
            drop(apply(&paths, target, damage));
        }
        let first = judge(root.path(), &round);
        prop_assert_eq!(first, judge(root.path(), &round));
    }
}

#[test]
fn pipes_are_never_opened() {
    let round = round("v6.0");
    let root = tempfile::tempdir().unwrap();
    synthetic_submission::write(root.path(), &round);
    let log = root
        .path()
        .join("closed/Team/results/board/whisper/Offline/performance/run_1/mlperf_log_detail.txt");
    fs::remove_file(&log).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&log).status().unwrap();
    assert!(made.success());
    let (passes, _) = judge(root.path(), &round);
    assert!(!passes);
}
