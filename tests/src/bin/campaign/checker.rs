//! What must hold for one run after a campaign, by the account of what was written on the device, the files that arrived, and the device's
//! key. It trusts nothing that Regatta reports about itself but the run's state, and reads the disk only.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs, io,
    path::{Path, PathBuf},
};

use ring::signature::{ED25519, UnparsedPublicKey};
use serde::Deserialize;

use crate::write_log::{Content, RunWrites};

/// The device's statement about a run, and its signature. The statement does not list itself.
pub(crate) const EVIDENCE: &str = "evidence.json";
pub(crate) const SIGNATURE: &str = "evidence.sig";
pub(crate) const ACCURACY_LOG: &str = "mlperf_log_accuracy.json";
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

/// A run, and all that is known about it.
pub(crate) struct CheckedRun<'a> {
    pub(crate) id: &'a str,
    pub(crate) phase: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) is_recorded: bool,
    /// Whether the coordinator calls it complete.
    pub(crate) is_complete: bool,
    /// Its directory on the device, which may have been removed after its release.
    pub(crate) device: PathBuf,
    /// Its directory on the coordinator.
    pub(crate) coordinator: PathBuf,
    /// What was written on the device.
    pub(crate) writes: &'a RunWrites,
    /// Whether the device's disk was full at some time between the request and the record.
    pub(crate) disk_was_full: bool,
    /// The device's Ed25519 public key, from the device.
    pub(crate) key: &'a [u8],
    /// The number of answers that its accuracy log must have if it is done.
    pub(crate) answers: Option<usize>,
}

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    NotEnded,
    NoReason,
    NeverRan,
    NoEvidence,
    Forged,
    EvidenceOfAnother,
    Lost {
        name: String,
        bytes: u64,
    },
    Unequal {
        name: String,
        written: u64,
        arrived: u64,
    },
    ChangedOnDevice {
        name: String,
    },
    NotSigned {
        name: String,
    },
    SignedOtherwise {
        name: String,
    },
    Unwritten {
        name: String,
    },
    NoResult {
        name: &'static str,
    },
    Answers {
        found: usize,
        expected: usize,
    },
    Twice,
    CalledIncomplete,
    CalledComplete,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnded => f.write_str("it has not ended"),
            Self::NoReason => f.write_str("it failed without a reason"),
            Self::NeverRan => f.write_str("it is done, and nothing was written on the device"),
            Self::NoEvidence => {
                f.write_str("there is no signed evidence, although the device's disk was not full")
            }
            Self::Forged => f.write_str("the evidence is not signed with the device's key"),
            Self::EvidenceOfAnother => f.write_str("the evidence is of another run"),
            Self::Lost { name, bytes } => write!(f, "{name} was lost, {bytes} bytes"),
            Self::Unequal {
                name,
                written,
                arrived,
            } => {
                write!(
                    f,
                    "{name} differs: {written} bytes were written, {arrived} arrived"
                )
            }
            Self::ChangedOnDevice { name } => write!(f, "{name} on the device is not what was written"),
            Self::NotSigned { name } => write!(f, "{name} was written, and the evidence does not list it"),
            Self::SignedOtherwise { name } => write!(f, "{name} is not what the evidence lists"),
            Self::Unwritten { name } => write!(f, "{name} arrived, and nobody wrote it"),
            Self::NoResult { name } => write!(f, "it is done without {name}"),
            Self::Answers { found, expected } => {
                write!(f, "its accuracy log has {found} answers instead of {expected}")
            }
            Self::Twice => f.write_str("it was run twice"),
            Self::CalledIncomplete => f.write_str("everything is there, and it is called incomplete"),
            Self::CalledComplete => f.write_str("it is called complete without signed evidence"),
        }
    }
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
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// What was compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Files that did not arrive because a full disk prevented the evidence, which the run says.
    pub(crate) reported_incomplete: u64,
}

/// Checks a run.
///
/// # Errors
/// Returns an error when its files cannot be read.
pub(crate) fn check(run: &CheckedRun<'_>) -> io::Result<(Compared, Vec<Violation>)> {
    let arrived = read(&run.coordinator.join("files"))?;
    let mut found = state_violations(run);
    let is_signed = evidence_violations(run, &arrived, &mut found);
    let compared = compare_with_writes(run, &arrived, &mut found);
    if run.device.exists() {
        let kept = read(&run.device.join("files"))?;
        found.extend(changed_on_device(run, &kept));
    }
    if run.phase == "done" {
        found.extend(result_violations(run, &arrived));
    }
    if run.is_complete && !is_signed {
        found.push(Violation::CalledComplete);
    }
    if !run.is_complete && is_signed && run.is_recorded {
        found.push(Violation::CalledIncomplete);
    }
    Ok((compared, found))
}

fn state_violations(run: &CheckedRun<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    if !["done", "failed", "aborted"].contains(&run.phase) || !run.is_recorded {
        found.push(Violation::NotEnded);
    }
    if run.phase == "failed" && run.reason.is_empty() {
        found.push(Violation::NoReason);
    }
    if run.phase == "done" && run.writes.is_empty() {
        found.push(Violation::NeverRan);
    }
    found
}

/// Checks the evidence, and returns whether there is signed evidence.
fn evidence_violations(run: &CheckedRun<'_>, arrived: &Files, found: &mut Vec<Violation>) -> bool {
    let (Some(bytes), Some(signature)) = (arrived.get(EVIDENCE), arrived.get(SIGNATURE)) else {
        // A full disk prevents evidence, which the run says. Nothing else does.
        if run.phase == "done" || !run.disk_was_full {
            found.push(Violation::NoEvidence);
        }
        return false;
    };
    let key = UnparsedPublicKey::new(&ED25519, run.key);
    let is_signed = from_hexadecimal(signature.trim_ascii_end())
        .is_some_and(|signature| key.verify(bytes, &signature).is_ok());
    if !is_signed {
        found.push(Violation::Forged);
    }
    let Ok(evidence) = serde_json::from_slice::<Evidence>(bytes) else {
        found.push(Violation::EvidenceOfAnother);
        return is_signed;
    };
    if evidence.run != run.id {
        found.push(Violation::EvidenceOfAnother);
    }
    if evidence.attempts.len() > 1 {
        found.push(Violation::Twice);
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
            found.push(Violation::NotSigned {
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
            found.push(Violation::SignedOtherwise {
                name: name.to_owned(),
            });
        }
    }
    is_signed
}

/// Compares what arrived with what was written.
fn compare_with_writes(run: &CheckedRun<'_>, arrived: &Files, found: &mut Vec<Violation>) -> Compared {
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
                    found.push(Violation::Unequal {
                        name,
                        written,
                        arrived,
                    });
                }
            }
            None if !writes.is_required() => {}
            None if may_lack => compared.reported_incomplete += 1,
            None => found.push(Violation::Lost {
                name: name.clone(),
                bytes: written,
            }),
        }
    }
    let unwritten = arrived.keys().filter(|name| !run.writes.contains_key(*name));
    found.extend(unwritten.map(|name| Violation::Unwritten { name: name.clone() }));
    compared
}

fn changed_on_device<'a>(run: &'a CheckedRun<'_>, kept: &'a Files) -> impl Iterator<Item = Violation> + 'a {
    let required = run.writes.iter().filter(|(name, writes)| {
        let content = kept.get(*name).map(|bytes| Content::of(bytes));
        content.map_or(writes.is_required(), |content| !writes.allow(&content))
    });
    required.map(|(name, _)| Violation::ChangedOnDevice { name: name.clone() })
}

fn result_violations(run: &CheckedRun<'_>, arrived: &Files) -> Vec<Violation> {
    let missing = RESULT_FILES
        .into_iter()
        .filter(|name| !arrived.contains_key(*name));
    let mut found: Vec<Violation> = missing.map(|name| Violation::NoResult { name }).collect();
    let count = |name: &str, word: &str| {
        let text = arrived.get(name).map(|bytes| String::from_utf8_lossy(bytes));
        text.map_or(0, |text| text.matches(word).count())
    };
    if count(DETAIL_LOG, "\"loadgen_version\"") > 1 {
        found.push(Violation::Twice);
    }
    if let Some(expected) = run.answers {
        let answers = count(ACCURACY_LOG, "\"qsl_idx\"");
        if answers != expected {
            found.push(Violation::Answers {
                found: answers,
                expected,
            });
        }
    }
    found
}

/// Reads the files of a directory that are not temporary. A missing directory has none.
///
/// # Errors
/// Returns an error when a file cannot be read.
pub(crate) fn read(directory: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            files.insert(name, fs::read(entry.path())?);
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
