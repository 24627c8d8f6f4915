//! Damages to a good run, each of which the checker must report: what a loss looks like, also one that both sides agree on and that is
//! signed. Every lab ends with them on a real run, so that a checker that sees nothing fails its campaign.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ring::signature::Ed25519KeyPair;

use super::{
    run_checker::{self, ACCURACY_LOG, CheckedRun, EVIDENCE, SIGNATURE},
    write_log::{Content, FileWrites},
};

/// Copies of a run that a damage changes.
struct Copies<'a> {
    device: &'a Path,
    coordinator: &'a Path,
    /// The device's key.
    key: &'a Ed25519KeyPair,
}

impl Copies<'_> {
    fn arrived(&self, name: &str) -> PathBuf {
        self.coordinator.join("files").join(name)
    }

    /// Damages the accuracy log on both sides before the device signs: both have the same files, and the signature is right.
    fn before_sealing(&self, damage: fn(&Path) -> io::Result<()>) -> io::Result<()> {
        for side in [self.device, self.coordinator] {
            let files = side.join("files");
            if files.exists() {
                damage(&files.join(ACCURACY_LOG))?;
                seal_again(&files, self.key)?;
            }
        }
        Ok(())
    }
}

type Damage = fn(&Copies<'_>) -> io::Result<()>;

/// The damages by name.
const DAMAGES: [(&str, Damage); 11] = [
    (LOST_BEFORE_SEALING, |copies| {
        copies.before_sealing(|log| fs::remove_file(log))
    }),
    (SHORTENED_BEFORE_SEALING, |copies| copies.before_sealing(shorten)),
    ("a lost file", |copies| {
        fs::remove_file(copies.arrived(ACCURACY_LOG))
    }),
    ("a shortened file", |copies| {
        shorten(&copies.arrived(ACCURACY_LOG))
    }),
    ("a changed file", |copies| {
        change_middle(&copies.arrived(ACCURACY_LOG))
    }),
    ("an added file", |copies| {
        fs::write(copies.arrived("foreign.txt"), "x")
    }),
    ("lost evidence", |copies| {
        fs::remove_file(copies.arrived(SIGNATURE))?;
        fs::remove_file(copies.arrived(EVIDENCE))
    }),
    ("a forged signature", |copies| {
        fs::write(copies.arrived(SIGNATURE), "00".repeat(64) + "\n")
    }),
    ("changed evidence", |copies| {
        change_middle(&copies.arrived(EVIDENCE))
    }),
    ("a lost run", |copies| fs::remove_dir_all(copies.coordinator)),
    ("a run lost on both sides", |copies| {
        fs::remove_dir_all(copies.coordinator)?;
        match fs::remove_dir_all(copies.device) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }),
];
const LOST_BEFORE_SEALING: &str = "a file lost before the device signed";
const SHORTENED_BEFORE_SEALING: &str = "a file shortened before the device signed";

/// Returns the damages to a run with a result that the checker does not report. `scratch` is an existing directory for copies.
///
/// # Errors
/// Returns an error when the run cannot be copied, damaged or checked.
pub fn undetected(
    run: &CheckedRun<'_>,
    key: &Ed25519KeyPair,
    scratch: &Path,
) -> io::Result<Vec<&'static str>> {
    let mut undetected = Vec::new();
    for (number, (name, damage)) in DAMAGES.into_iter().enumerate() {
        let copy = scratch.join(number.to_string());
        let [device, coordinator] = ["device", "coordinator"].map(|side| copy.join(side));
        copy_files(&run.device.join("files"), &device.join("files"))?;
        copy_files(&run.coordinator.join("files"), &coordinator.join("files"))?;
        damage(&Copies {
            device: &device,
            coordinator: &coordinator,
            key,
        })?;
        let mut writes = run.writes.clone();
        if [LOST_BEFORE_SEALING, SHORTENED_BEFORE_SEALING].contains(&name) {
            // The device wrote this evidence, as the account says.
            let arrived = run_checker::read_files(&coordinator.join("files"))?;
            for name in [EVIDENCE, SIGNATURE] {
                let last = arrived.get(name).map(|bytes| Content::of(bytes));
                let replacements = Vec::new();
                writes.insert(name.to_owned(), FileWrites { last, replacements });
            }
        }
        let (_, found) = run_checker::check(&CheckedRun {
            device,
            coordinator,
            writes: &writes,
            ..*run
        })?;
        if found.is_empty() {
            undetected.push(name);
        }
        fs::remove_dir_all(&copy)?;
    }
    Ok(undetected)
}

/// Copies the files below a directory that are not temporary. A missing directory has none.
///
/// # Errors
/// Returns an error when a file cannot be copied.
pub fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for (name, bytes) in run_checker::read_files(from)? {
        let copy = to.join(name);
        if let Some(directory) = copy.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(copy, bytes)?;
    }
    Ok(())
}

/// Removes the second half of a file.
///
/// # Errors
/// Returns an error when it cannot be read or written.
pub fn shorten(path: &Path) -> io::Result<()> {
    let bytes = fs::read(path)?;
    fs::write(path, bytes.get(..bytes.len() / 2).unwrap_or_default())
}

/// Changes a bit in the middle of a file.
///
/// # Errors
/// Returns an error when it cannot be read or written.
pub fn change_middle(path: &Path) -> io::Result<()> {
    let mut bytes = fs::read(path)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes)
}

/// Makes evidence state the present files, and signs it as the device would.
///
/// # Errors
/// Returns an error when a file cannot be read or written.
pub fn seal_again(files: &Path, key: &Ed25519KeyPair) -> io::Result<()> {
    let evidence = files.join(EVIDENCE);
    if !evidence.exists() {
        return Ok(());
    }
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&evidence)?)?;
    let present = run_checker::read_files(files)?;
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
