//! Damages to a good run, each of which the checker must report: what a loss looks like, also one that both sides agree on and that is
//! signed. Every lab ends with them on a real run, so that a checker that sees nothing fails its campaign.

use std::{fs, io, path::Path};

use ring::signature::Ed25519KeyPair;

use crate::{
    checker::{self, ACCURACY_LOG, CheckedRun, EVIDENCE, SIGNATURE},
    write_log::{Content, FileWrites},
};

/// A damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    DropFile,
    TruncateFile,
    FlipByte,
    AddFile,
    DropEvidence,
    ForgeSignature,
    ChangeEvidence,
    LoseRun,
    /// The file is lost before the device signs: both sides have the same files, and the signature is right.
    DropBeforeSealing,
    TruncateBeforeSealing,
    /// Both sides lost the run.
    LoseRunOnBothSides,
}

impl Mutation {
    pub(crate) const ALL: [Self; 11] = [
        Self::DropFile,
        Self::TruncateFile,
        Self::FlipByte,
        Self::AddFile,
        Self::DropEvidence,
        Self::ForgeSignature,
        Self::ChangeEvidence,
        Self::LoseRun,
        Self::DropBeforeSealing,
        Self::TruncateBeforeSealing,
        Self::LoseRunOnBothSides,
    ];

    const fn is_before_sealing(self) -> bool {
        matches!(self, Self::DropBeforeSealing | Self::TruncateBeforeSealing)
    }

    /// Damages a run in copies of its directories. `key` is the device's.
    fn apply(self, device: &Path, coordinator: &Path, key: &Ed25519KeyPair) -> io::Result<()> {
        let (original, arrived) = (device.join("files"), coordinator.join("files"));
        let log = arrived.join(ACCURACY_LOG);
        match self {
            Self::DropFile => fs::remove_file(log),
            Self::TruncateFile => shorten(&log),
            Self::FlipByte => change_middle(&log),
            Self::AddFile => fs::write(arrived.join("foreign.txt"), "x"),
            Self::DropEvidence => {
                fs::remove_file(arrived.join(SIGNATURE))?;
                fs::remove_file(arrived.join(EVIDENCE))
            }
            Self::ForgeSignature => fs::write(arrived.join(SIGNATURE), "00".repeat(64) + "\n"),
            Self::ChangeEvidence => change_middle(&arrived.join(EVIDENCE)),
            Self::LoseRun => fs::remove_dir_all(coordinator),
            Self::DropBeforeSealing => {
                for side in [&original, &arrived] {
                    remove_if_present(&side.join(ACCURACY_LOG))?;
                    seal_again(side, key)?;
                }
                Ok(())
            }
            Self::TruncateBeforeSealing => {
                for side in [&original, &arrived] {
                    if side.exists() {
                        shorten(&side.join(ACCURACY_LOG))?;
                        seal_again(side, key)?;
                    }
                }
                Ok(())
            }
            Self::LoseRunOnBothSides => {
                fs::remove_dir_all(coordinator)?;
                match fs::remove_dir_all(device) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Returns the damages to a run with a result that the checker does not report. `scratch` is an existing directory for copies.
///
/// # Errors
/// Returns an error when the run cannot be copied, damaged or checked.
pub(crate) fn undetected(
    run: &CheckedRun<'_>,
    key: &Ed25519KeyPair,
    scratch: &Path,
) -> io::Result<Vec<Mutation>> {
    let mut undetected = Vec::new();
    for mutation in Mutation::ALL {
        let copy = scratch.join(format!("{mutation:?}"));
        let [device, coordinator] = ["device", "coordinator"].map(|side| copy.join(side));
        copy_run(&run.device, &device)?;
        copy_run(&run.coordinator, &coordinator)?;
        mutation.apply(&device, &coordinator, key)?;
        let mut writes = run.writes.clone();
        if mutation.is_before_sealing() {
            // The device wrote this evidence, as the account says.
            let arrived = checker::read(&coordinator.join("files"))?;
            for name in [EVIDENCE, SIGNATURE] {
                let last = arrived.get(name).map(|bytes| Content::of(bytes));
                let replacements = Vec::new();
                writes.insert(name.to_owned(), FileWrites { last, replacements });
            }
        }
        let (_, found) = checker::check(&CheckedRun {
            device,
            coordinator,
            writes: &writes,
            ..*run
        })?;
        if found.is_empty() {
            undetected.push(mutation);
        }
        fs::remove_dir_all(&copy)?;
    }
    Ok(undetected)
}

fn copy_run(from: &Path, to: &Path) -> io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    let files = to.join("files");
    fs::create_dir_all(&files)?;
    for (name, bytes) in checker::read(&from.join("files"))? {
        fs::write(files.join(name), bytes)?;
    }
    Ok(())
}

fn shorten(path: &Path) -> io::Result<()> {
    let bytes = fs::read(path)?;
    fs::write(path, bytes.get(..bytes.len() / 2).unwrap_or_default())
}

fn change_middle(path: &Path) -> io::Result<()> {
    let mut bytes = fs::read(path)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes)
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes evidence state the present files, and signs it as the device would.
fn seal_again(files: &Path, key: &Ed25519KeyPair) -> io::Result<()> {
    let evidence = files.join(EVIDENCE);
    if !evidence.exists() {
        return Ok(());
    }
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&evidence)?)?;
    let present = checker::read(files)?;
    let listed = present
        .iter()
        .filter(|(name, _)| ![EVIDENCE, SIGNATURE].contains(&name.as_str()));
    document["files"] = listed
        .map(|(name, bytes)| {
            let content = Content::of(bytes);
            serde_json::json!({ "name": name, "bytes": content.bytes, "sha256": content.sha256 })
        })
        .collect();
    let bytes = serde_json::to_vec(&document)?;
    let signature: String = key
        .sign(&bytes)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    fs::write(evidence, bytes)?;
    fs::write(files.join(SIGNATURE), signature + "\n")
}
