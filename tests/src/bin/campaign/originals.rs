//! What a run's files were on the device: read from its disk or, where a released run has made room there, from the evidence
//! that the device signed. Compares nothing; that is `verdict`'s.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::lab::{Lab, ListedRun};

/// SHA-256 (hexadecimal) and length of files by name.
pub(crate) type Hashes = BTreeMap<String, (String, u64)>;

/// Written last and covered by the signature, so not in the evidence's own list.
const SEALING: [&str; 2] = ["evidence.json", "evidence.sig"];

/// The device's files of a run.
pub(crate) struct Originals {
    /// Hash and length of each.
    pub(crate) files: Hashes,
    /// Where they, or those that can stand for them, can still be read.
    pub(crate) directory: PathBuf,
    /// Whether the run is off the device's disk and its signed evidence stands for it.
    pub(crate) freed_space: bool,
}

#[derive(Deserialize)]
struct Evidence {
    files: Vec<FileProof>,
}

#[derive(Deserialize)]
struct FileProof {
    name: String,
    bytes: u64,
    sha256: String,
}

/// The originals of a run. A run that is not on the device any more counts only where the device says that it was released
/// and made room, and where `runs verify` finds its evidence signed: hashes are then those that the device signed.
///
/// # Errors
/// When files cannot be read, or evidence is not what it must be.
pub(crate) fn of_run(lab: &mut Lab, run: &ListedRun) -> anyhow::Result<Originals> {
    let id = &run.run;
    let [device, coordinator] = lab.run_dirs(id);
    let note = format!("run {id}: released by the coordinator, and makes room for another");
    if device.exists() || !lab.agent.log().contains(&note) {
        let directory = device.join("files");
        return Ok(Originals {
            files: hashes(&directory)?,
            directory,
            freed_space: false,
        });
    }
    let verified = lab.regatta()?.args(["runs", "verify", id]).output()?;
    anyhow::ensure!(
        verified.status.success(),
        "run {id} has made room on the device, and what the coordinator has is not what the device signed: {}",
        String::from_utf8_lossy(&verified.stdout)
    );
    let directory = coordinator.join("files");
    let mut files = signed_hashes(&directory).with_context(|| format!("the evidence of run {id}"))?;
    // The signature, which is verified, covers these two.
    let unlisted = hashes(&directory)?;
    files.extend(
        unlisted
            .into_iter()
            .filter(|(name, _)| SEALING.contains(&name.as_str())),
    );
    Ok(Originals {
        files,
        directory,
        freed_space: true,
    })
}

fn signed_hashes(directory: &Path) -> anyhow::Result<Hashes> {
    let evidence: Evidence = serde_json::from_slice(&fs::read(directory.join("evidence.json"))?)?;
    let files = evidence.files.into_iter();
    Ok(files.map(|file| (file.name, (file.sha256, file.bytes))).collect())
}

/// Name to SHA-256 and length of every file in a directory; of none, where there is no directory.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn hashes(directory: &Path) -> io::Result<Hashes> {
    let mut found = BTreeMap::new();
    let Ok(entries) = fs::read_dir(directory) else {
        return Ok(found);
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            let bytes = fs::read(entry.path())?;
            found.insert(name, (hexadecimal(&Sha256::digest(&bytes)), bytes.len() as u64));
        }
    }
    Ok(found)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
