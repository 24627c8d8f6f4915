//! Tests of evidence that cannot be read: a disk that lost a file's bytes, and a document that is too large.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
};

use regatta_types::documents::{RunPhase, RunState};

use regatta_fsutil::hash::{sha256_hex, sha256_of_file};

use super::{super::missing::Missing, *};
use regatta_lab_store::{examples::example_draft, workspace::Workspace};

/// A run whose device reported `done`, with one delivered stream.
struct Bench {
    _directory: tempfile::TempDir,
    dir: RunDir,
    run: RunRow,
    stream: StreamRow,
}

impl Bench {
    fn new(name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(directory.path(), "schema = 1\n").unwrap();
        let store = workspace.store().unwrap();
        let draft = example_draft("a".repeat(32).parse().unwrap());
        store.runs().add(&draft).unwrap();
        let mut run = store.runs().get(draft.spec.run).unwrap().unwrap();
        run.state = RunState {
            phase: RunPhase::Done,
            reason: None,
            revision: 1,
        };
        let dir = workspace.run(run.id);
        fs::create_dir_all(dir.files()).unwrap();
        let stream = StreamRow {
            name: name.parse().unwrap(),
            listed: true,
            committed: 3,
            stated_length: Some(3),
            stated_sha256: Some(sha256_hex(b"abc")),
            is_complete: true,
        };
        Self {
            _directory: directory,
            dir,
            run,
            stream,
        }
    }
}

#[test]
fn a_stream_that_the_disk_no_longer_reads_is_missing() {
    for name in ["run.log", EVIDENCE] {
        let bench = Bench::new(name);
        // The first page of a process's memory is not mapped: reading it fails with EIO.
        symlink("/proc/self/mem", bench.dir.file(&bench.stream.name)).unwrap();
        let streams = [bench.stream];
        let proven = prove(&bench.dir, &bench.run, None, &streams).unwrap();
        assert_eq!(proven.delivery.streams[0].sha256, None);
        assert!(!Missing::of(&proven, &streams).is_nothing(), "{name}");
    }
}

#[test]
fn an_error_that_says_nothing_about_the_bytes_is_no_damage() {
    let bench = Bench::new("run.log");
    fs::create_dir(bench.dir.file(&bench.stream.name)).unwrap();
    let refused = prove(&bench.dir, &bench.run, None, &[bench.stream]).unwrap_err();
    assert_eq!(refused.to_string(), "it is a directory, not a regular file");
}

#[test]
fn a_run_with_oversized_evidence_fails_with_the_reason() {
    let mut bench = Bench::new(EVIDENCE);
    let file = File::create(bench.dir.file(&bench.stream.name)).unwrap();
    file.set_len(MAX_DOCUMENT + 1).unwrap();
    let hash = sha256_of_file(&bench.dir.file(&bench.stream.name)).unwrap();
    bench.stream.stated_sha256 = Some(hash.hex());
    let streams = [bench.stream];
    let mut proven = prove(&bench.dir, &bench.run, None, &streams).unwrap();
    assert!(Missing::of(&proven, &streams).is_nothing());
    let reason = "evidence.json is larger than 64 MiB".to_owned();
    assert_eq!(proven.contradictions, [reason.as_str()]);
    let state = proven.final_state(&bench.run);
    assert_eq!((state.phase, state.reason), (RunPhase::Failed, Some(reason)));
}
