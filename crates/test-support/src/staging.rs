//! Synthetic runs of a benchmark with one required scenario, in the coordinator's directory layout, and the operator's files that staging
//! needs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use regatta_catalogue::{known, round::Round};
use regatta_loadgen::effective::LibraryCounts;
use regatta_loadgen_conf::{Conf, ConfKind};
use regatta_submission_stage::stage::{self, Answers, Kind, Preview, StageError, Staged, StagingRequest};
use regatta_types::{
    DeviceId, Division, Mode, Scenario,
    benchmark::Response,
    documents::{
        AuditOf, ConfTexts, Delivery, EngineKind, EngineSpec, LoadgenChoice, RunLength, RunSpec, RunTask,
    },
    engine_settings::EngineSettings,
};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{
    rounds::round,
    synthetic_run::{SyntheticRun, log_line},
    tree::put,
};

/// The official `mlperf.conf`. A run of the official LoadGen does not have it among its files.
pub const MLPERF_CONF: &str = "# the official conf\n*.Offline.min_duration = 600000\n";

/// The operator's answers.
pub const ANSWERS: &str = r#"
schema = 1
submitter = "ACME"

[[system]]
name = "Orin"
devices = ["boat-1"]

[system.description]
status = "available"
system_type = "edge"
system_name = "Orin developer kit"
host_processors_per_node = 1
host_processor_model_name = "Cortex-A78AE"
host_memory_configuration = "LPDDR5"
host_storage_capacity = "64 GB"
host_storage_type = "eMMC"
host_networking = "Ethernet"
host_network_card_count = "1 integrated"
host_networking_topology = "N/A"
accelerators_per_node = 1
accelerator_model_name = "Orin"
accelerator_memory_capacity = "shared"
accelerator_memory_configuration = "LPDDR5"
accelerator_host_interconnect = "N/A"
accelerator_interconnect = "N/A"
cooling = "air"

[benchmark.whisper]
implementation = "tensorrt"
code = "code"
input_data_types = "fp16"
retraining = "No"
starting_weights_filename = "whisper.safetensors"
weight_data_types = "fp16"
weight_transformations = "none"

[documents]
calibration = "calibration.md"
mlperf_confs = ["other.conf", "mlperf.conf"]
"#;

/// The documents and files of a run before they are written.
#[derive(Debug)]
pub struct Parts {
    /// The run's spec.
    pub spec: RunSpec,
    /// `evidence.json`, without hashes.
    pub evidence: Value,
    /// `record.json`, without hashes.
    pub record: Value,
    /// The files by name.
    pub files: BTreeMap<&'static str, String>,
}

/// A temporary directory with runs, the operator's files in `desk/`, and the staged trees.
#[derive(Debug)]
pub struct StagingFixture {
    dir: TempDir,
    /// The round of the runs.
    pub round: Round,
}

/// Returns the SHA-256 in hexadecimal.
pub fn hash(bytes: impl AsRef<[u8]>) -> String {
    hexadecimal(&Sha256::digest(bytes.as_ref()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the key of the device of all runs.
fn device_key() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

/// Returns the id of the `number`th run; ids sort by time.
#[must_use]
pub fn id(number: u32) -> String {
    format!("01930000-0000-7000-8000-{number:012}")
}

/// Samples of the data set; the accuracy run has a response for each.
const SAMPLES: u32 = 1633;

/// Number of responses that TEST01 logs.
const LOGGED: u32 = 4096;

/// Formats an accuracy log. A sample always has the same response.
fn answers_log(entries: u32) -> String {
    let entries: Vec<_> = (0..entries)
        .map(|index| {
            let sample = index % SAMPLES;
            format!(
                "{{ \"seq_id\" : {index}, \"qsl_idx\" : {sample}, \"data\" : \"0{}00000000000000\" }}",
                sample % 10
            )
        })
        .collect();
    format!("[\n{}\n]\n", entries.join(",\n"))
}

/// Formats a detail log with these keys and values.
#[must_use]
pub fn log(facts: &[(&str, Value)]) -> String {
    let line = |(key, value): &(&str, Value)| log_line(key, &value.to_string(), 0.1);
    facts.iter().map(line).collect()
}

/// Formats the detail log and the summary of a run with this number, under an audit's conf.
#[must_use]
pub fn loadgen_logs(
    round: &Round,
    mode: Mode,
    number: u32,
    audit_config: &str,
) -> [(&'static str, String); 2] {
    let samples = u64::from(SAMPLES);
    let library = LibraryCounts {
        total: samples,
        performance: samples,
    };
    let mut run = SyntheticRun::new(Scenario::Offline, mode, round.seeds().unwrap(), library);
    run.number = number.into();
    run.sut = "tensorrt".to_owned();
    run.loadgen_version = format!("{}.0 @ 0123456789", round.name.trim_start_matches('v'));
    run.settings.sample_concatenate_permutation = true;
    run.settings.use_token_latencies = true;
    let conf = Conf::parse("audit.config", audit_config).unwrap();
    run.settings.apply(&conf, ConfKind::Audit, "whisper").unwrap();
    let figures = run.figures();
    [
        ("mlperf_log_detail.txt", run.detail_log(&figures)),
        ("mlperf_log_summary.txt", run.summary(&figures)),
    ]
}

impl StagingFixture {
    /// Creates the directory with the operator's files.
    #[must_use]
    pub fn new(round_name: &str) -> Self {
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
            round: round(round_name),
        };
        fixture.put("desk/code/main.cc", "int main() {}\n");
        fixture.put("desk/code/.git/HEAD", "ref\n");
        fixture.put("desk/calibration.md", "There is none.\n");
        fixture.put("desk/mlperf.conf", MLPERF_CONF);
        fixture.put("desk/other.conf", "# another LoadGen's\n");
        fixture
    }

    /// Returns the path of a file in the directory.
    #[must_use]
    pub fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Writes a file.
    pub fn put(&self, path: &str, text: &str) {
        put(&self.at(path), text);
    }

    /// Parses [`ANSWERS`] after `change`.
    pub fn answers(&self, change: impl FnOnce(String) -> String) -> Answers {
        Answers::from_toml(&change(ANSWERS.to_owned()), &self.at("desk")).unwrap()
    }

    /// Lists the names besides the operator's files and the runs, in the directory where trees are staged.
    #[must_use]
    pub fn left_behind(&self) -> Vec<String> {
        let names = fs::read_dir(self.dir.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != "desk" && name != "runs").collect();
        names.sort();
        names
    }

    /// Writes the runs that a result needs: performance, accuracy with the reference script's output, and TEST01.
    #[must_use]
    pub fn all_runs(&self) -> Vec<PathBuf> {
        let runs = vec![
            self.run(1, Mode::PerformanceOnly, |_| {}),
            self.accuracy_run(2),
            self.run(3, Mode::PerformanceOnly, |parts| {
                parts.spec.audit = Some(AuditOf {
                    test: "TEST01".to_owned(),
                    performance: id(1).parse().unwrap(),
                    accuracy: Some(id(2).parse().unwrap()),
                });
                let audit = self.round.audits["TEST01"].config.clone();
                parts
                    .files
                    .extend(loadgen_logs(&self.round, Mode::PerformanceOnly, 3, &audit));
                parts.spec.conf.audit_config = Some(audit);
                parts
                    .files
                    .insert("mlperf_log_accuracy.json", answers_log(LOGGED));
            }),
        ];
        runs
    }

    /// Writes an accuracy run with the reference script's output.
    #[must_use]
    pub fn accuracy_run(&self, number: u32) -> PathBuf {
        self.changed_accuracy_run(number, |_| {})
    }

    /// Writes an accuracy run after `change`, with the reference script's output.
    pub fn changed_accuracy_run(&self, number: u32, change: impl FnOnce(&mut Parts)) -> PathBuf {
        let run = self.run(number, Mode::AccuracyOnly, change);
        self.put("desk/reference.py", "print()\n");
        let log = run.join("files/mlperf_log_accuracy.json");
        let output = b"Word Error Rate: 2.0671%, accuracy=97.9329%\n";
        stage::official::keep(&run.join("accuracy"), &self.at("desk/reference.py"), &log, output).unwrap();
        run
    }

    /// Writes a run, after `change`.
    pub fn run(&self, number: u32, mode: Mode, change: impl FnOnce(&mut Parts)) -> PathBuf {
        let mut parts = self.parts(number, mode);
        change(&mut parts);
        let Parts {
            spec,
            mut evidence,
            mut record,
            files,
        } = parts;
        let directory = format!("runs/{}", id(number));
        let spec_text = serde_json::to_string(&spec).unwrap();
        let proofs: Vec<_> = files
            .iter()
            .map(|(name, text)| json!({ "name": name, "bytes": text.len(), "sha256": hash(text) }))
            .collect();
        for (name, text) in &files {
            self.put(&format!("{directory}/files/{name}"), text);
        }
        evidence["spec_sha256"] = hash(&spec_text).into();
        evidence["files"] = proofs.into();
        let evidence_text = evidence.to_string();
        let key = device_key();
        let signature = hexadecimal(key.sign(evidence_text.as_bytes()).as_ref());
        self.put(
            &format!("{directory}/files/evidence.sig"),
            &format!("{signature}\n"),
        );
        let public_key = hexadecimal(key.public_key().as_ref());
        self.put(&format!("{directory}/device.pub"), &format!("{public_key}\n"));
        record["spec_sha256"] = hash(&spec_text).into();
        record["evidence_sha256"] = hash(&evidence_text).into();
        self.put(&format!("{directory}/spec.json"), &spec_text);
        self.put(&format!("{directory}/files/evidence.json"), &evidence_text);
        self.put(&format!("{directory}/record.json"), &record.to_string());
        self.at(&directory)
    }

    fn parts(&self, number: u32, mode: Mode) -> Parts {
        let mut benchmark = known::benchmarks().unwrap().remove(0);
        benchmark.name = "whisper".to_owned();
        benchmark.title = "Speech to text".to_owned();
        benchmark.not_submittable = None;
        benchmark.model.response = Response::Raw;
        let device = DeviceId::of_public_key(device_key().public_key().as_ref().try_into().unwrap());
        let state = json!({ "phase": "done", "reason": null, "revision": 7 });
        let facts = json!({
            "hostname": "boat", "model": "Jetson AGX Orin", "arch": "aarch64", "kernel": "5.15.148-tegra",
            "os": "Ubuntu 22.04", "cpus": 12, "memory_bytes": 65_871_544_320_u64,
        });
        let spec = RunSpec {
            schema: 1,
            run: id(number).parse().unwrap(),
            device: device.clone(),
            created: "2026-08-01T10:00:00Z".to_owned(),
            round: self.round.name.clone(),
            benchmark,
            scenario: Scenario::Offline,
            mode,
            engine: EngineSpec {
                kind: EngineKind::Tensorrt,
                settings: EngineSettings {
                    batch_size: Some(16),
                    ..EngineSettings::default()
                },
            },
            loadgen: LoadgenChoice::Official { revision: None },
            length: RunLength::Full,
            conf: ConfTexts {
                mlperf_conf: String::new(),
                user_conf: String::new(),
                audit_config: None,
            },
            delivery: Delivery::After,
            audit: None,
            system: None,
            state: None,
            gate: None,
            task: RunTask::Measurement,
            assets: None,
        };
        let evidence = json!({
            "schema": 1, "run": id(number), "device": device, "agent": "regatta-agent 0.1.0", "outcome": state,
            "not_a_measurement": [], "before": facts, "after": facts,
            "attempts": [{
                "name": "run", "requested_loadgen": { "official": { "revision": null } },
                "loadgen": {
                    "implementation": "mlcommons-loadgen", "version": "6.0.17", "revision": &self.round.accepted_loadgens[0][..8],
                    "rng_abi": "libstdc++-11", "mlperf_conf_sha256": hash(MLPERF_CONF),
                },
                "engine": "TensorRT 10.3 on the GPU", "valid": true, "invalid_reasons": [],
                "started": null, "ended": null, "window": { "bytes_sent": 0, "daemon_cpu_ns": 0 },
            }],
        });
        let record = json!({
            "schema": 1, "run": id(number), "device": device, "device_name": "boat-1", "coordinator": "regatta 0.1.0",
            "written": "2026-08-01T10:20:00Z", "evidence_signature_valid": true, "state": state,
            "delivery": { "complete": true, "bytes": 1, "streams": [] }, "accuracy": null,
        });
        let mut files = BTreeMap::from([
            ("user.conf", "whisper.Offline.target_qps = 90\n".to_owned()),
            ("mlperf.conf", "# rendered for our own LoadGen\n".to_owned()),
        ]);
        let entries = if mode == Mode::AccuracyOnly { SAMPLES } else { 0 };
        files.insert("mlperf_log_accuracy.json", answers_log(entries));
        files.extend(loadgen_logs(&self.round, mode, number, ""));
        Parts {
            spec,
            evidence,
            record,
            files,
        }
    }

    /// Lists the power sessions in `desk/power`.
    fn sessions(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.at("desk/power")).into_iter().flatten();
        found.map(|entry| entry.unwrap().path()).collect()
    }

    /// Stages runs into `tree`.
    ///
    /// # Errors
    /// The error of staging.
    pub fn stage(
        &self,
        division: Division,
        kind: Kind,
        answers: &Answers,
        runs: &[PathBuf],
    ) -> Result<Staged, StageError> {
        self.stage_to("tree", division, kind, answers, runs)
    }

    /// Stages runs into the directory `output`.
    ///
    /// # Errors
    /// The error of staging.
    pub fn stage_to(
        &self,
        output: &str,
        division: Division,
        kind: Kind,
        answers: &Answers,
        runs: &[PathBuf],
    ) -> Result<Staged, StageError> {
        stage::stage(&StagingRequest {
            round: &self.round,
            division,
            kind,
            answers,
            runs,
            keys: &BTreeMap::new(),
            power: &self.sessions(),
            output: &self.at(output),
        })
    }

    /// Returns what a closed submission of runs would have.
    ///
    /// # Errors
    /// The error of the preview.
    pub fn preview(&self, answers: &Answers, runs: &[PathBuf]) -> Result<Preview, StageError> {
        stage::preview(&StagingRequest {
            round: &self.round,
            division: Division::Closed,
            kind: Kind::Submission,
            answers,
            runs,
            keys: &BTreeMap::new(),
            power: &[],
            output: Path::new(""),
        })
    }
}
