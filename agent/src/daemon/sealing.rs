//! Sealing a run that has ended: flushes and hashes its files, writes `evidence.json` and the signature over its exact
//! bytes. Runs on a thread of its own, since it reads everything that was logged. Judges nothing but what can never be a
//! measurement.

use std::{fs, io, sync::Arc};

use regatta_fsutil::atomic_file::AtomicFile;
use regatta_fsutil::hash::{hex, sha256_hex, sha256_of_file};
use regatta_types::{
    DeviceId, RunId, StreamName,
    documents::{
        Attempt, DeviceFacts, Document as _, Evidence, FileProof, RunSpec, RunState, StateProof, WindowCost,
    },
};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

use super::run_dir::{RunDir, RunDirError, Unflushed};
use crate::{build_info::AGENT_VERSION, identity::DeviceIdentity};

/// The evidence's name among the run's files.
pub(crate) const EVIDENCE: &str = "evidence.json";
/// The signature's name among the run's files: hexadecimal, Ed25519 over the evidence's exact bytes.
pub(crate) const SIGNATURE: &str = "evidence.sig";
/// What the run process reports of itself.
const ATTEMPT: &str = "attempt.json";

/// Everything that sealing needs and the directory does not hold.
#[derive(Clone)]
pub(crate) struct SealRequest {
    /// The run.
    pub(crate) run: RunId,
    /// Its directory.
    pub(crate) dir: RunDir,
    /// Who signs.
    pub(crate) identity: Arc<DeviceIdentity>,
    /// Whether the run owes nothing and the evidence is written: then the files are hashed again, and nothing else is done.
    pub(crate) already_sealed: bool,
    /// SHA-256 of the evidence that was listed before, if any: the coordinator may have it, so that its bytes stay as they are.
    pub(crate) listed_evidence: Option<[u8; 32]>,
    /// How the run ended, as the evidence says it.
    pub(crate) outcome: RunState,
    /// The device before the run; as after, when the run never began.
    pub(crate) before: Option<DeviceFacts>,
    /// The device now.
    pub(crate) after: DeviceFacts,
    /// What the daemon cost in the timed window.
    pub(crate) window: WindowCost,
    /// The proof of the device's state.
    pub(crate) device_state: Option<StateProof>,
    /// Why the device's state was not this machine's own, if so.
    pub(crate) foreign_root: Option<String>,
}

/// A stream that will not change any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedStream {
    /// Its name.
    pub(crate) name: StreamName,
    /// Its length in bytes.
    pub(crate) length: u64,
    /// Its hash.
    pub(crate) sha256: [u8; 32],
}

/// What sealing came to.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// Every stream that could be hashed, the evidence and its signature among them.
    pub(crate) streams: Vec<SealedStream>,
    /// Those that could not be flushed or hashed.
    pub(crate) unread: Vec<StreamName>,
    /// Whether the streams are all that the run has logged.
    pub(crate) all_hashed: bool,
    /// Why the evidence is missing, if it is.
    pub(crate) incomplete: Option<SealError>,
}

impl Sealed {
    /// What the run still owes: the evidence, and what must be hashed for it. Nothing where another attempt could not help.
    pub(crate) fn owed(&self) -> Vec<StreamName> {
        match self.incomplete {
            None | Some(SealError::Spec(_)) => Vec::new(),
            Some(_) => {
                let evidence = [EVIDENCE, SIGNATURE]
                    .into_iter()
                    .filter_map(|own| own.parse().ok());
                self.unread.iter().cloned().chain(evidence).collect()
            }
        }
    }
}

/// A run that could not be sealed completely. Its files are kept and delivered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    /// A file cannot be read, hashed or written.
    #[error("{what} cannot be sealed")]
    File {
        /// Which.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file's bytes may not be on this disk.
    #[error(transparent)]
    Unflushed(#[from] Unflushed),
    /// The spec is gone.
    #[error("the run's spec is gone")]
    Spec(#[source] RunDirError),
    /// The sealing thread panicked or could not be started.
    #[error("the sealing thread ended early")]
    Thread,
}

/// Files that are on this disk, and their lengths.
pub(crate) type OnDisk = Vec<(StreamName, u64)>;

/// Seals a run. What can be hashed is returned even when the evidence cannot be written, as on a full disk. `flushed` hears what is
/// on this disk: from then on those bytes may leave the device, while they are hashed.
pub(crate) fn seal(request: &SealRequest, flushed: oneshot::Sender<OnDisk>) -> Sealed {
    let mut sealed = Sealed {
        streams: Vec::new(),
        unread: Vec::new(),
        all_hashed: false,
        incomplete: None,
    };
    sealed.incomplete = seal_into(request, flushed, &mut sealed).err();
    sealed
}

fn seal_into(
    request: &SealRequest,
    flushed: oneshot::Sender<OnDisk>,
    sealed: &mut Sealed,
) -> Result<(), SealError> {
    let files = request.dir.files();
    let file_error = |what: &str| {
        let what = what.to_owned();
        move |source| SealError::File { what, source }
    };
    // Half an attempt.json of a run process that was killed while it wrote: the last whole one counts.
    let _ = fs::remove_file(request.dir.unfinished_attempt());
    let settled_evidence = settled_evidence(request)?;
    // Leftovers of a sealing that a power cut or a full disk ended.
    let leftovers: &[&str] = match &settled_evidence {
        _ if request.already_sealed => &[],
        Some(_) => &[SIGNATURE],
        None => &[EVIDENCE, SIGNATURE],
    };
    for own in leftovers {
        match fs::remove_file(files.join(own)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(file_error(own)(e)),
            _ => {}
        }
    }
    let (names, undeliverable) = request.dir.streams().map_err(file_error("the run's directory"))?;
    let mut first_error: Option<SealError> = None;
    let mut owe = |name: StreamName, error: SealError| {
        sealed.unread.push(name);
        first_error.get_or_insert(error);
    };
    let mut on_disk = OnDisk::new();
    for name in names {
        match flush(&request.dir, &name) {
            Ok(length) => on_disk.push((name, length)),
            // Not hashed either: the next flush may say nothing of it, and the disk may hold something else.
            Err(source) => owe(name.clone(), Unflushed { stream: name, source }.into()),
        }
    }
    // A daemon that ends hears nothing any more.
    let _ = flushed.send(on_disk.clone());
    for (name, _) in on_disk {
        match hash_stream(&request.dir, &name) {
            Ok(stream) => sealed.streams.push(stream),
            Err(e) => owe(name.clone(), file_error(name.as_str())(e)),
        }
    }
    if let Some(first_error) = first_error {
        return Err(first_error);
    }
    sealed.all_hashed = true;
    let streams = &mut sealed.streams;
    if request.already_sealed {
        return Ok(());
    }
    let is_new = settled_evidence.is_none();
    let bytes = match settled_evidence {
        Some(bytes) => bytes,
        None => {
            let spec = request.dir.read_spec().map_err(SealError::Spec)?;
            let reported = read_own(&request.dir, ATTEMPT)?;
            let evidence = evidence(request, &spec, streams, undeliverable, reported);
            let mut bytes =
                serde_json::to_vec_pretty(&evidence).map_err(|e| file_error(EVIDENCE)(e.into()))?;
            bytes.push(b'\n');
            bytes
        }
    };
    let mut signature = hex(&request.identity.sign(&bytes));
    signature.push('\n');
    let mut own = vec![(SIGNATURE, signature.as_bytes())];
    if is_new {
        own.insert(0, (EVIDENCE, bytes.as_slice()));
    }
    for (name, content) in &own {
        AtomicFile::new(&files.join(name))
            .mode(0o644)
            .write(content)
            .map_err(file_error(name))?;
    }
    // Listed once both are written: evidence without its signature may yet become another, and must not leave the device.
    for (name, content) in own {
        if let Ok(name) = name.parse() {
            streams.push(SealedStream {
                name,
                length: content.len() as u64,
                sha256: Sha256::digest(content).into(),
            });
        }
    }
    Ok(())
}

/// The evidence on the disk, where its bytes are settled: it was listed before, or carries this device's signature.
fn settled_evidence(request: &SealRequest) -> Result<Option<Vec<u8>>, SealError> {
    let Some(bytes) = read_own(&request.dir, EVIDENCE)? else {
        return Ok(None);
    };
    let sha256: [u8; 32] = Sha256::digest(&bytes).into();
    if request.listed_evidence == Some(sha256) {
        return Ok(Some(bytes));
    }
    let signature = read_own(&request.dir, SIGNATURE)?.unwrap_or_default();
    // Ed25519 gives one signature for the same key and bytes.
    let is_signed = signature.trim_ascii_end() == hex(&request.identity.sign(&bytes)).as_bytes();
    Ok(is_signed.then_some(bytes))
}

/// Reads a small file among the run's files; `None` where it is not there.
///
/// # Errors
/// When it is there and cannot be read: sealing then fails, and is tried again at the next start.
fn read_own(dir: &RunDir, name: &str) -> Result<Option<Vec<u8>>, SealError> {
    match fs::read(dir.files().join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SealError::File {
            what: name.to_owned(),
            source,
        }),
    }
}

/// Flushes a file; its length.
fn flush(dir: &RunDir, name: &StreamName) -> io::Result<u64> {
    let file = dir.open(name)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

/// Hashes a file.
fn hash_stream(dir: &RunDir, name: &StreamName) -> io::Result<SealedStream> {
    let hash = sha256_of_file(&dir.files().join(name.as_str()))?;
    Ok(SealedStream {
        name: name.clone(),
        length: hash.length,
        sha256: hash.sha256,
    })
}

fn evidence(
    request: &SealRequest,
    spec_bytes: &[u8],
    streams: &[SealedStream],
    undeliverable: Vec<String>,
    reported: Option<Vec<u8>>,
) -> Evidence {
    let device: &DeviceId = request.identity.id();
    let spec = RunSpec::from_json(spec_bytes).ok();
    let mut not_a_measurement = spec.as_ref().map(RunSpec::not_a_measurement).unwrap_or_default();
    not_a_measurement.extend(undeliverable);
    not_a_measurement.extend(request.foreign_root.clone());
    let reported = reported.and_then(|bytes| {
        serde_json::from_slice::<Attempt>(&bytes)
            .map_err(|e| {
                not_a_measurement.push(format!("{ATTEMPT} of the run process cannot be understood: {e}"))
            })
            .ok()
    });
    Evidence {
        schema: Evidence::SCHEMA,
        run: request.run,
        device: device.clone(),
        spec_sha256: sha256_hex(spec_bytes),
        agent: AGENT_VERSION.to_owned(),
        outcome: request.outcome.clone(),
        not_a_measurement,
        attempts: attempts(request, spec.as_ref(), reported),
        before: request.before.clone().unwrap_or_else(|| request.after.clone()),
        after: request.after.clone(),
        state: request.device_state.clone(),
        files: streams
            .iter()
            .map(|stream| FileProof {
                name: stream.name.clone(),
                bytes: stream.length,
                sha256: hex(&stream.sha256),
            })
            .collect(),
    }
}

/// What the run process reported, with what the daemon measured of itself; what was asked for, when it reported nothing.
/// A run that never began has no attempt.
fn attempts(request: &SealRequest, spec: Option<&RunSpec>, reported: Option<Attempt>) -> Vec<Attempt> {
    let unreported = || {
        let spec = spec.filter(|_| request.before.is_some())?;
        Some(Attempt::asked(spec))
    };
    let attempt = reported.or_else(unreported);
    let with_window = |attempt: Attempt| Attempt {
        window: WindowCost {
            timing_sleeps: attempt.window.timing_sleeps,
            timing_preemptions: attempt.window.timing_preemptions,
            timing_migrations: attempt.window.timing_migrations,
            ..request.window.clone()
        },
        ..attempt
    };
    attempt.into_iter().map(with_window).collect()
}

#[cfg(test)]
mod tests;
