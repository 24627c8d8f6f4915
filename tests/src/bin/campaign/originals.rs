//! The original files of a run on the device, from its disk. If a released run was removed to free space, the signed evidence replaces
//! them. `verdict` compares them.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::lab::{Lab, ListedRun};

/// SHA-256 (hexadecimal) and length in bytes of files, by name.
pub(crate) type Hashes = BTreeMap<String, (String, u64)>;

/// Files that are written last and covered by the signature, so the evidence does not list them.
const SEALING: [&str; 2] = ["evidence.json", "evidence.sig"];

/// The device's files of a run.
pub(crate) struct Originals {
    /// Hash and length of each file.
    pub(crate) files: Hashes,
    /// The directory of the files, or of their replacement.
    pub(crate) directory: PathBuf,
    /// Whether the run was removed from the device's disk and its signed evidence replaces it.
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

/// Returns the originals of a run.
///
/// A run may be missing on the device only if the device's log says that it was released and removed. `runs verify` must also find its
/// evidence signed. The hashes are then those that the device signed.
///
/// # Errors
/// Returns an error when files cannot be read, or the evidence is not valid.
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
    // The verified signature covers these two files.
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

/// Returns SHA-256 and length of every file in a directory, by name. A missing directory has no files.
///
/// # Errors
/// Returns an error when a file cannot be read.
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
