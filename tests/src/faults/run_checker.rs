//! What must hold for one run after a campaign, by the account of what was written on the device, the files that arrived, and the device's
//! key. It trusts nothing that Regatta reports about itself but the run's state, and reads the disk only.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use ring::signature::{ED25519, UnparsedPublicKey};
use serde::Deserialize;

use super::{
    Report,
    write_log::{Content, Writes},
};

/// The device's statement about a run, and its signature. The statement does not list itself.
pub const EVIDENCE: &str = "evidence.json";
pub const SIGNATURE: &str = "evidence.sig";
pub const ACCURACY_LOG: &str = "mlperf_log_accuracy.json";
const DETAIL_LOG: &str = "mlperf_log_detail.txt";
/// What a run with a result has.
const RESULT_FILES: [&str; 7] = [
    "attempt.json",
    "mlperf.conf",
    ACCURACY_LOG,
    DETAIL_LOG,
    "mlperf_log_summary.txt",
    "run.log",
    "user.conf",
];
/// The device's message for a run whose files it could not hash and sign.
const UNSEALED: &str = "could not be sealed";

/// A run as `regatta runs list` prints it.
#[derive(Debug, Clone, Deserialize)]
pub struct ListedRun {
    /// Its id.
    pub run: String,
    pub phase: String,
    /// The reason why it failed.
    pub reason: Option<String>,
    /// The time when its record was written.
    pub recorded: Option<String>,
    /// Whether everything was delivered, for a recorded run.
    pub complete: Option<bool>,
}

#[derive(Deserialize)]
struct ListedRuns {
    runs: Vec<ListedRun>,
}

/// Parses the JSON output of `regatta run` or `regatta runs list`.
///
/// # Errors
/// Returns an error when it is not such a document.
pub fn parse_runs(output: &[u8]) -> serde_json::Result<Vec<ListedRun>> {
    Ok(serde_json::from_slice::<ListedRuns>(output)?.runs)
}

/// A run, and all that is known about it.
pub struct CheckedRun<'a> {
    pub id: &'a str,
    pub phase: &'a str,
    pub reason: &'a str,
    pub is_recorded: bool,
    /// Whether the coordinator calls it complete.
    pub is_complete: bool,
    /// Its directory on the device, which may have been removed after its release.
    pub device: PathBuf,
    /// Its directory on the coordinator.
    pub coordinator: PathBuf,
    /// What was written on the device.
    pub writes: &'a Writes,
    /// Whether the device's disk was full at some time between the request and the record.
    pub disk_was_full: bool,
    /// The device's Ed25519 public key, from the device.
    pub key: &'a [u8],
    /// The number of answers that its accuracy log must have if it is done.
    pub answers: Option<usize>,
}

/// Something that must not be true for a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunViolation {
    #[error("it has not ended")]
    NotEnded,
    #[error("it failed without a reason")]
    NoReason,
    #[error("it is done, and nothing was written on the device")]
    NeverRan,
    #[error("there is no signed evidence, although the device's disk was not full")]
    NoEvidence,
    #[error("the evidence is not signed with the device's key")]
    Forged,
    #[error("the evidence is of another run")]
    EvidenceOfAnother,
    #[error("{name} was lost, {bytes} bytes")]
    Lost { name: String, bytes: u64 },
    #[error("{name} differs: {written} bytes were written, {arrived} arrived")]
    Unequal {
        name: String,
        written: u64,
        arrived: u64,
    },
    #[error("{name} on the device is not what was written")]
    ChangedOnDevice { name: String },
    #[error("{name} was written, and the evidence does not list it")]
    NotSigned { name: String },
    #[error("{name} is not what the evidence lists")]
    SignedOtherwise { name: String },
    #[error("{name} arrived, and nobody wrote it")]
    Unwritten { name: String },
    #[error("it is done without {name}")]
    NoResult { name: &'static str },
    #[error("its accuracy log has {found} answers instead of {expected}")]
    Answers { found: usize, expected: usize },
    #[error("it was run twice")]
    Twice,
    #[error("everything is there, and it is called incomplete")]
    CalledIncomplete,
    #[error("it is called complete without signed evidence")]
    CalledComplete,
}

#[derive(Deserialize)]
struct Evidence {
    run: String,
    attempts: Vec<serde_json::Value>,
    files: Vec<ListedFile>,
}

#[derive(Deserialize)]
struct ListedFile {
    name: String,
    bytes: u64,
    sha256: String,
}

/// A run's files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What was compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    pub files: u64,
    pub bytes: u64,
    /// Files that did not arrive because a full disk prevented the evidence, which the run says.
    pub reported_incomplete: u64,
}

/// Checks a run.
///
/// # Errors
/// Returns an error when its files cannot be read.
pub fn check(run: &CheckedRun<'_>) -> io::Result<(Compared, Vec<RunViolation>)> {
    let arrived = read_files(&run.coordinator.join("files"))?;
    let mut found = state_violations(run);
    let is_signed = evidence_violations(run, &arrived, &mut found);
    let compared = compare_with_writes(run, &arrived, &mut found);
    if run.device.exists() {
        let kept = read_files(&run.device.join("files"))?;
        found.extend(changed_on_device(run, &kept));
    }
    if run.phase == "done" {
        found.extend(result_violations(run, &arrived));
    }
    if run.is_complete && !is_signed {
        found.push(RunViolation::CalledComplete);
    }
    if !run.is_complete && is_signed && run.is_recorded {
        found.push(RunViolation::CalledIncomplete);
    }
    Ok((compared, found))
}

/// Checks a run, and adds what was compared and the violations to a report. Returns whether there are none.
///
/// # Errors
/// Returns an error when its files cannot be read.
pub fn check_and_report(run: &CheckedRun<'_>, report: &mut Report) -> io::Result<bool> {
    let (compared, found) = check(run)?;
    report.sum("files compared with what was written", compared.files);
    report.sum("bytes in them", compared.bytes);
    report.sum(
        "files that a full disk prevented, as the run says",
        compared.reported_incomplete,
    );
    let (id, phase, reason) = (run.id, run.phase, run.reason);
    let lines = found
        .iter()
        .map(|violation| format!("run {id} ({phase}: {reason}): {violation}"));
    report.wrong.extend(lines);
    Ok(found.is_empty())
}

fn state_violations(run: &CheckedRun<'_>) -> Vec<RunViolation> {
    let mut found = Vec::new();
    if !["done", "failed", "aborted"].contains(&run.phase) || !run.is_recorded {
        found.push(RunViolation::NotEnded);
    }
    if run.phase == "failed" && run.reason.is_empty() {
        found.push(RunViolation::NoReason);
    }
    if run.phase == "done" && run.writes.is_empty() {
        found.push(RunViolation::NeverRan);
    }
    found
}

/// Checks the evidence, and returns whether there is signed evidence.
fn evidence_violations(run: &CheckedRun<'_>, arrived: &Files, found: &mut Vec<RunViolation>) -> bool {
    let (Some(bytes), Some(signature)) = (arrived.get(EVIDENCE), arrived.get(SIGNATURE)) else {
        // A run that was aborted before the device began it has nothing to state. Otherwise only a full disk prevents evidence, which the run
        // says.
        let has_begun = run.phase != "aborted" || !run.writes.is_empty();
        if has_begun && (run.phase == "done" || !run.disk_was_full) {
            found.push(RunViolation::NoEvidence);
        }
        return false;
    };
    let is_signed = is_signed(bytes, signature, run.key);
    if !is_signed {
        found.push(RunViolation::Forged);
    }
    let Ok(evidence) = serde_json::from_slice::<Evidence>(bytes) else {
        found.push(RunViolation::EvidenceOfAnother);
        return is_signed;
    };
    if evidence.run != run.id {
        found.push(RunViolation::EvidenceOfAnother);
    }
    if evidence.attempts.len() > 1 {
        found.push(RunViolation::Twice);
    }
    let listed: BTreeMap<&str, &ListedFile> = evidence
        .files
        .iter()
        .map(|file| (file.name.as_str(), file))
        .collect();
    let required = run.writes.iter().filter(|(_, writes)| writes.is_required());
    let names: BTreeSet<&str> = required
        .map(|(name, _)| name.as_str())
        .chain(arrived.keys().map(String::as_str))
        .filter(|name| ![EVIDENCE, SIGNATURE].contains(name))
        .collect();
    for name in names {
        if !listed.contains_key(name) {
            found.push(RunViolation::NotSigned {
                name: name.to_owned(),
            });
        }
    }
    for (name, file) in listed {
        let is_same = arrived
            .get(name)
            .map(|bytes| Content::of(bytes))
            .is_some_and(|content| content.sha256 == file.sha256 && content.bytes == file.bytes);
        if !is_same {
            found.push(RunViolation::SignedOtherwise {
                name: name.to_owned(),
            });
        }
    }
    is_signed
}

fn is_signed(evidence: &[u8], signature: &[u8], key: &[u8]) -> bool {
    let key = UnparsedPublicKey::new(&ED25519, key);
    from_hexadecimal(signature.trim_ascii_end())
        .is_some_and(|signature| key.verify(evidence, &signature).is_ok())
}

/// Returns the files that the evidence of a run lists. `None` without evidence of this run that is signed with the key.
#[must_use]
pub fn signed_files(run: &str, arrived: &Files, key: &[u8]) -> Option<BTreeMap<String, Content>> {
    let (bytes, signature) = (arrived.get(EVIDENCE)?, arrived.get(SIGNATURE)?);
    let evidence: Evidence = serde_json::from_slice(bytes).ok()?;
    if evidence.run != run || !is_signed(bytes, signature, key) {
        return None;
    }
    let content = |file: ListedFile| {
        let (sha256, bytes) = (file.sha256, file.bytes);
        (file.name, Content { sha256, bytes })
    };
    Some(evidence.files.into_iter().map(content).collect())
}

/// Compares what arrived with what was written.
fn compare_with_writes(run: &CheckedRun<'_>, arrived: &Files, found: &mut Vec<RunViolation>) -> Compared {
    let mut compared = Compared::default();
    let may_lack = run.disk_was_full && run.phase != "done" && run.reason.contains(UNSEALED);
    for (name, writes) in run.writes {
        let written = writes.last.as_ref().map_or(0, |content| content.bytes);
        match arrived.get(name).map(|bytes| Content::of(bytes)) {
            Some(content) => {
                compared.files += 1;
                compared.bytes += content.bytes;
                if !writes.allow(&content) {
                    let (name, arrived) = (name.clone(), content.bytes);
                    found.push(RunViolation::Unequal {
                        name,
                        written,
                        arrived,
                    });
                }
            }
            None if !writes.is_required() => {}
            None if may_lack => compared.reported_incomplete += 1,
            None => found.push(RunViolation::Lost {
                name: name.clone(),
                bytes: written,
            }),
        }
    }
    let unwritten = arrived.keys().filter(|name| !run.writes.contains_key(*name));
    found.extend(unwritten.map(|name| RunViolation::Unwritten { name: name.clone() }));
    compared
}

fn changed_on_device<'a>(
    run: &'a CheckedRun<'_>,
    kept: &'a Files,
) -> impl Iterator<Item = RunViolation> + 'a {
    let required = run.writes.iter().filter(|(name, writes)| {
        let content = kept.get(*name).map(|bytes| Content::of(bytes));
        content.map_or(writes.is_required(), |content| !writes.allow(&content))
    });
    required.map(|(name, _)| RunViolation::ChangedOnDevice { name: name.clone() })
}

fn result_violations(run: &CheckedRun<'_>, arrived: &Files) -> Vec<RunViolation> {
    let missing = RESULT_FILES
        .into_iter()
        .filter(|name| !arrived.contains_key(*name));
    let mut found: Vec<RunViolation> = missing.map(|name| RunViolation::NoResult { name }).collect();
    let count = |name: &str, word: &str| {
        let text = arrived.get(name).map(|bytes| String::from_utf8_lossy(bytes));
        text.map_or(0, |text| text.matches(word).count())
    };
    if count(DETAIL_LOG, "\"loadgen_version\"") > 1 {
        found.push(RunViolation::Twice);
    }
    if let Some(expected) = run.answers {
        let answers = count(ACCURACY_LOG, "\"qsl_idx\"");
        if answers != expected {
            found.push(RunViolation::Answers {
                found: answers,
                expected,
            });
        }
    }
    found
}

/// Reads the files below a directory that are not temporary, by their paths in it. A missing directory has none.
///
/// # Errors
/// Returns an error when a file cannot be read.
pub fn read_files(directory: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    let mut open = vec![directory.to_owned()];
    while let Some(place) = open.pop() {
        let entries = match fs::read_dir(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let (path, entry) = {
                let entry = entry?;
                (entry.path(), entry)
            };
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap_or(&path);
                files.insert(name.display().to_string(), fs::read(&path)?);
            }
        }
    }
    Ok(files)
}

fn from_hexadecimal(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.chunks_exact(2).map(|digits| {
        let digits = std::str::from_utf8(digits).ok()?;
        u8::from_str_radix(digits, 16).ok()
    });
    (text.len().is_multiple_of(2)).then(|| digits.collect()).flatten()
}
