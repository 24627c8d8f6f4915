//! Sealing of a run that has ended: flushes and hashes its files, then writes `evidence.json` and the signature over
//! its exact bytes. Sealing has its own thread, because it reads all logged data. It does not judge results. It only
//! records what rules the run out as a measurement.

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

use crate::daemon::runs::{
    run_dir::{RunDir, Unflushed},
    sealed::{EVIDENCE, OnDisk, SIGNATURE, SealError, Sealed, SealedStream},
};
use crate::{build_info::AGENT_VERSION, identity::DeviceIdentity};

/// File name of the run process's own report.
const ATTEMPT: &str = "attempt.json";

/// The inputs of sealing that the run's directory does not contain.
#[derive(Clone)]
pub(crate) struct SealRequest {
    pub(crate) run: RunId,
    /// The run's directory.
    pub(crate) dir: RunDir,
    /// The identity that signs the evidence.
    pub(crate) identity: Arc<DeviceIdentity>,
    /// Whether the run was sealed completely before. The files are then only hashed again.
    pub(crate) already_sealed: bool,
    /// The files that an earlier sealing could not flush or read.
    pub(crate) failed_files: Vec<StreamName>,
    /// SHA-256 of the evidence that was listed before, if any. The coordinator may have it, so its bytes must not
    /// change.
    pub(crate) listed_evidence: Option<[u8; 32]>,
    /// The run's outcome, as the evidence states it.
    pub(crate) outcome: RunState,
    /// The device's facts before the run. `None` if the run never started; the evidence then repeats `after`.
    pub(crate) before: Option<DeviceFacts>,
    /// The device's facts after the run.
    pub(crate) after: DeviceFacts,
    /// The daemon's resource usage during the measurement window.
    pub(crate) window: WindowCost,
    /// The proof of the device's state.
    pub(crate) device_state: Option<StateProof>,
    /// Why the facts do not describe this machine, if they come from another root directory.
    pub(crate) foreign_root: Option<String>,
}

/// Seals a run. Returns the streams that were hashed even if the evidence cannot be written, for example on a full
/// disk. `flushed` receives the flushed files, so delivery can start while they are hashed.
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
    // A run process that was killed leaves a partial `attempt.json`. The last complete one is used.
    let _ = fs::remove_file(request.dir.unfinished_attempt());
    let settled_evidence = settled_evidence(request)?;
    // An earlier sealing that was interrupted leaves these files.
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
    let mut defer = |name: StreamName, error: SealError| {
        sealed.unread.push(name);
        first_error.get_or_insert(error);
    };
    let mut on_disk = OnDisk::new();
    for name in names {
        let flushed = if request.failed_files.contains(&name) {
            write_again(&request.dir, &name)
        } else {
            flush(&request.dir, &name)
        };
        match flushed {
            Ok(length) => on_disk.push((name, length)),
            // The file is not hashed: a second flush may report success although the disk has other bytes.
            Err(source) => defer(name.clone(), Unflushed { stream: name, source }.into()),
        }
    }
    // The receiver is gone when the daemon stops.
    let _ = flushed.send(on_disk.clone());
    for (name, _) in on_disk {
        match hash_stream(&request.dir, &name) {
            Ok(stream) => sealed.streams.push(stream),
            Err(e) => defer(name.clone(), file_error(name.as_str())(e)),
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
    // Both files are listed only after both are written. Evidence without a signature may still change, so it must not
    // leave the device.
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

/// Reads evidence that must not change, because it was listed before or has this device's signature.
fn settled_evidence(request: &SealRequest) -> Result<Option<Vec<u8>>, SealError> {
    let Some(bytes) = read_own(&request.dir, EVIDENCE)? else {
        return Ok(None);
    };
    let sha256: [u8; 32] = Sha256::digest(&bytes).into();
    if request.listed_evidence == Some(sha256) {
        return Ok(Some(bytes));
    }
    let signature = read_own(&request.dir, SIGNATURE)?.unwrap_or_default();
    // Ed25519 is deterministic: the same key and bytes give the same signature.
    let is_signed = signature.trim_ascii_end() == hex(&request.identity.sign(&bytes)).as_bytes();
    Ok(is_signed.then_some(bytes))
}

/// Reads a small file of the run. Returns `None` if it does not exist.
///
/// # Errors
/// When the file exists but cannot be read. Sealing then fails and is repeated after a pause.
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

/// Replaces a file that could not be flushed or read by a flushed copy, and returns its length. After a failed flush, the system may
/// regard the pages as written, so that another flush proves nothing.
fn write_again(dir: &RunDir, name: &StreamName) -> io::Result<u64> {
    let mut from = dir.open(name)?;
    let mut length = 0;
    AtomicFile::new(&dir.files().join(name.as_str())).write_with(|to| {
        length = io::copy(&mut from, to)?;
        Ok(())
    })?;
    Ok(length)
}

/// Flushes a file and returns its length.
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
            .map_err(|e| not_a_measurement.push(format!("{ATTEMPT} of the run process is invalid: {e}")))
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

/// Returns the attempt that the run process reported, with the daemon's own measurements added. If nothing was
/// reported, the attempt contains the spec's settings. A run that never started has no attempt.
fn attempts(request: &SealRequest, spec: Option<&RunSpec>, reported: Option<Attempt>) -> Vec<Attempt> {
    let unreported = || {
        let spec = spec.filter(|_| request.before.is_some())?;
        Some(Attempt::requested(spec))
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
