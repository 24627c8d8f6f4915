//! Tests of the GPU kit: its archive is packed from the programs of this build, unpacked, and run with fakes of CUDA's driver and of TensorRT. Its
//! report cannot be mistaken for a report about hardware.

#![expect(clippy::expect_used, reason = "test code")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use regatta_tests::agent;
use serde_json::Value;
use tempfile::TempDir;

struct Kit(TempDir);

impl Kit {
    fn build() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("gpu/build.sh");
        let archive = directory.path().join("kit.tar.gz");
        let programs = agent();
        let built = Command::new(script)
            .arg("--without-speech")
            .arg("--programs")
            .arg(programs.parent().expect("a directory of programs"))
            .arg("--out")
            .arg(&archive)
            .output()
            .expect("the script starts");
        assert!(built.status.success(), "{built:?}");
        let bytes = fs::metadata(&archive).expect("an archive").len();
        assert!(bytes < 60_000_000, "the archive has {bytes} bytes");
        let unpacked = Command::new("tar")
            .arg("-xzf")
            .arg(&archive)
            .current_dir(directory.path())
            .status();
        assert!(unpacked.expect("tar starts").success());
        Self(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str], faults: Option<&str>) -> Output {
        let mut command = Command::new(self.path("regatta-gpu-kit/run"));
        command
            .args(arguments)
            .arg("--out")
            .arg(self.path("report"))
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()))
            .env_remove("FAKE_CUDA_FAULTS");
        if let Some(faults) = faults {
            command.env("FAKE_CUDA_FAULTS", faults);
        }
        command.output().expect("the kit starts")
    }

    /// Writes a fake `trtexec` that prints a latency.
    fn write_trtexec(&self) {
        fs::create_dir(self.path("bin")).expect("a directory");
        let program = self.path("bin/trtexec");
        let script = "#!/bin/sh\ncase \"$*\" in *--loadEngine=*engine.plan*--shapes=*) ;; *) exit 1 ;; esac\n\
                      echo '[I] Latency: min = 40 ms, max = 60 ms, percentile(90%) = 50 ms'\n";
        fs::write(&program, script).expect("a script");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_archive_passes_over_fakes_and_its_report_is_no_proof() {
    let kit = Kit::build();
    kit.write_trtexec();
    let ended = kit.run(&["--fakes"], None);
    let printed = stdout(&ended);
    assert_eq!(ended.status.code(), Some(0), "{printed}");
    assert!(
        printed.lines().all(|line| line.starts_with("FAKES ")),
        "{printed}"
    );

    let mut files: Vec<_> = fs::read_dir(kit.path("report"))
        .expect("a report")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["fakes-no-proof.json", "fakes-no-proof.md"]);
    let text = fs::read_to_string(kit.path("report/fakes-no-proof.md")).expect("a table");
    assert!(
        text.contains("It shows nothing about hardware.") && !text.contains("shown"),
        "{text}"
    );
    let report = fs::read(kit.path("report/fakes-no-proof.json")).expect("JSON");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(
        (&report["fakes"], &report["claims"]),
        (&true.into(), &Value::Array(Vec::new()))
    );
    let checks = report["checks"].as_array().expect("checks");
    let skipped: Vec<_> = checks
        .iter()
        .filter(|check| check["verdict"] != "pass")
        .filter_map(|check| check["key"].as_str())
        .collect();
    assert_eq!(skipped, ["engine-rnnt", "engine-whisper"], "{report:#}");
    let beside = checks
        .iter()
        .find(|check| check["key"] == "latency-trtexec")
        .expect("the check");
    assert_eq!(
        (&beside["figures"][1]["value"], &beside["figures"][1]["unit"]),
        (&50.0.into(), &"ms".into())
    );
}

#[test]
fn exit_codes_tell_failed_checks_wrong_use_and_unusable_machines_apart() {
    let kit = Kit::build();
    let only = ["--fakes", "--only", "driver-copies", "--only", "driver-context"];
    // Enough memory only for the threads' contexts.
    let failed = kit.run(&only, Some("memory=12000000"));
    let printed = stdout(&failed);
    assert_eq!(failed.status.code(), Some(1), "{printed}");
    assert!(printed.contains("driver-context         pass"), "{printed}");
    assert!(printed.contains("driver-copies          FAIL"), "{printed}");
    assert!(printed.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{printed}");

    for (faults, reason) in [
        ("no-device", "CUDA_ERROR_NO_DEVICE"),
        ("version=10020", "the CUDA driver is for CUDA 10.2"),
        ("crash", "crashed with signal 11"),
        ("quit", "ended without an outcome"),
    ] {
        let unusable = kit.run(&only, Some(faults));
        let reason_text = String::from_utf8_lossy(&unusable.stderr);
        assert_eq!(unusable.status.code(), Some(3), "{faults}: {reason_text}");
        assert!(
            reason_text.lines().count() == 1 && reason_text.contains(reason),
            "{faults}: {reason_text}"
        );
    }
    for wrong in [
        &["--fakes", "--tensorrt", "/"][..],
        &["--tensorrt", "/nowhere"],
        &["--fakes", "--only", "nothing"],
        &["--unknown"],
    ] {
        let refused = kit.run(wrong, None);
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}: {refused:?}");
    }
}

#[test]
fn a_gpu_with_memory_of_its_own_is_filled_and_recovers() {
    let kit = Kit::build();
    let only = ["--fakes", "--only", "out-of-memory"];
    let filled = kit.run(&only, Some("discrete,memory=536870912"));
    let printed = stdout(&filled);
    assert_eq!(filled.status.code(), Some(0), "{printed}");
    assert!(printed.contains("of 16 blocks"), "{printed}");
}
