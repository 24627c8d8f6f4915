//! Proves that a cut log comes from the kept original: same hash, same beginning and same end.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use super::{
    Manifest, TruncateError, TruncationRequest, accuracy_text,
    cut::cut_file,
    step::{LOG, TEXT},
    targets::{self, Target},
};
use regatta_submission_check::files::{At, read, read_small, sha256};

/// The proof of one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The log's directory, relative to the root.
    pub directory: PathBuf,
    /// The reasons why it is not proven; empty if it is.
    pub findings: Vec<ProofFinding>,
}

/// A reason why a cut log is not proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofFinding {
    /// The original does not exist.
    NoOriginal { expected: PathBuf },
    /// The tree no longer has the log.
    NoLog,
    /// The file `accuracy.txt` has no hash line.
    NoHash,
    /// The first hash in `accuracy.txt`, which counts, is another one.
    OtherHash {
        /// The hash in `accuracy.txt`.
        stated: String,
        /// The original's hash.
        original: String,
    },
    /// There is more than one hash line.
    SeveralHashes {
        /// The number of hash lines.
        count: usize,
    },
    /// The log differs from the cut original.
    OtherContent,
    /// The original differs from the one in the manifest.
    OtherThanManifest,
}

impl fmt::Display for ProofFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOriginal { expected } => {
                write!(
                    f,
                    "there is no original at {}: it cannot be proven",
                    expected.display()
                )
            }
            Self::NoLog => write!(f, "the backup has an original, the submission has no {LOG}"),
            Self::NoHash => write!(f, "{TEXT} has no hash line: truncate this log"),
            Self::OtherHash { stated, original } => write!(
                f,
                "{TEXT} states the hash {stated}, the original has {original}: restore both files from one run"
            ),
            Self::SeveralHashes { count } => {
                write!(f, "{TEXT} has {count} hash lines: remove those of other logs")
            }
            Self::OtherContent => write!(
                f,
                "{LOG} is not a cut of the original: restore the original and truncate it"
            ),
            Self::OtherThanManifest => write!(f, "the original was changed after it was put into the backup"),
        }
    }
}

/// Compares every accuracy log of a cut tree with its original.
///
/// `request.input` is the cut tree. `originals` is the backup or, after a truncation into a new directory, the tree that was its
/// input.
///
/// # Errors
/// Returns an error if a file cannot be read. A log that is not proven is a result and not an error.
pub fn verify(request: &TruncationRequest<'_>, originals: &Path) -> Result<Vec<Proof>, TruncateError> {
    let targets = targets::find(request)?;
    let manifest = Manifest::open(originals)?;
    let mut proofs = Vec::new();
    for target in &targets {
        let here = request.input.join(&target.directory).join(LOG).is_file();
        let kept = originals.join(&target.directory).join(LOG).is_file();
        if here || kept {
            proofs.push(Proof {
                directory: target.directory.clone(),
                findings: findings(target, request.input, originals, &manifest)?,
            });
        }
    }
    let known = |path: &str| {
        targets
            .iter()
            .any(|target| target.directory.join(LOG) == Path::new(path))
    };
    for path in manifest.originals.keys().filter(|path| !known(path)) {
        proofs.push(Proof {
            directory: Path::new(path).parent().unwrap_or(Path::new("")).to_owned(),
            findings: vec![ProofFinding::NoLog],
        });
    }
    Ok(proofs)
}

fn findings(
    target: &Target,
    input: &Path,
    originals: &Path,
    manifest: &Manifest,
) -> Result<Vec<ProofFinding>, TruncateError> {
    let (here, path) = (input.join(&target.directory), target.directory.join(LOG));
    let (log, original) = (here.join(LOG), originals.join(&path));
    if !log.is_file() {
        return Ok(vec![ProofFinding::NoLog]);
    }
    if !original.is_file() {
        return Ok(vec![ProofFinding::NoOriginal { expected: original }]);
    }
    let mut findings = Vec::new();
    let (hash, bytes) = sha256(&original)?;
    if let Some(listed) = manifest.originals.get(path.to_string_lossy().as_ref())
        && (listed.sha256 != hash || listed.bytes != bytes)
    {
        findings.push(ProofFinding::OtherThanManifest);
    }
    let text_path = here.join(TEXT);
    let text = if text_path.is_file() {
        read_small(&text_path, accuracy_text::MAX)?
    } else {
        Vec::new()
    };
    let stated: Vec<_> = accuracy_text::hashes(&text).collect();
    match stated.as_slice() {
        [] => findings.push(ProofFinding::NoHash),
        [first, ..] if *first != hash => findings.push(ProofFinding::OtherHash {
            stated: (*first).to_owned(),
            original: hash,
        }),
        _ => {}
    }
    if stated.len() > 1 {
        findings.push(ProofFinding::SeveralHashes { count: stated.len() });
    }
    if !is_cut_of(&log, &original)? {
        findings.push(ProofFinding::OtherContent);
    }
    Ok(findings)
}

fn is_cut_of(log: &Path, original: &Path) -> Result<bool, TruncateError> {
    let expected = match cut_file(original).at("read", original)? {
        Some(cut) => cut,
        None => read(original).at("read", original)?,
    };
    if fs::metadata(log).at("look at", log)?.len() != expected.len() as u64 {
        return Ok(false);
    }
    Ok(read(log).at("read", log)? == expected)
}

impl Proof {
    /// Returns whether the log is proven.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.findings.is_empty()
    }
}
