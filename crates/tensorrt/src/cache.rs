//! Engines on disk, by what they were made of: `DIR/<key>/{engine.plan,engine.json}`. The key is the first 16 digits of the
//! SHA-256 of everything that must agree for a plan to be of use; an engine from elsewhere is refused by the first
//! field that differs. Builds nothing.

use std::{
    fmt::Write as _,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    build::{BuildSettings, Built, Dla, Precision},
    engine::Tensor,
    error::{CacheError, Refusal},
    io::{InputShape, Io},
    placement::Placement,
    version::Version,
};

/// How the name of an engine begins that is not whole yet.
const NEW: &str = ".new-";

/// The manifest's own version.
const SCHEMA: u32 = 1;

/// What an engine was made of: all of it together is the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this document.
    pub schema: u32,
    /// What the model is known by, in hexadecimal (`Model::sha256`).
    pub onnx_sha256: String,
    /// TensorRT's version.
    pub tensorrt: Version,
    /// The chip, as the machine calls it.
    pub chip: String,
    /// Types.
    pub precision: Precision,
    /// Largest batch.
    pub batch: u32,
    /// Smallest batch.
    pub min_batch: u32,
    /// Optimisation profiles.
    pub profiles: u32,
    /// Workspace in bytes, 0 for TensorRT's default.
    pub workspace_bytes: u64,
    /// Builder optimisation level, where one was set.
    pub optimization_level: Option<u32>,
    /// DLA, where it was asked for.
    pub dla: Option<Dla>,
    /// What the model left free of its inputs, where that was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_shapes: Vec<InputShape>,
    /// Type and layout of the inputs, where they were asked for; left out otherwise, so that older keys hold.
    #[serde(default, skip_serializing_if = "Io::is_open")]
    pub input: Io,
    /// Of the outputs, likewise.
    #[serde(default, skip_serializing_if = "Io::is_open")]
    pub output: Io,
    /// SHA-256 of the calibration cache, where there was one.
    pub calibration_sha256: Option<String>,
}

/// An engine in the cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What it was made of.
    pub manifest: Manifest,
    /// The plan's SHA-256.
    pub plan_sha256: String,
    /// The plan's size in bytes.
    pub plan_bytes: u64,
    /// Seconds that the build took.
    pub build_seconds: f64,
    /// Inputs and outputs, where the engine could be loaded on the machine that built it.
    pub tensors: Vec<Tensor>,
    /// Where layers can run, when a DLA core was asked for.
    pub placement: Placement,
}

impl Manifest {
    /// Of a build on this machine.
    #[must_use]
    pub fn new(settings: &BuildSettings, onnx_sha256: String, tensorrt: Version, chip: String) -> Self {
        Self {
            schema: SCHEMA,
            onnx_sha256,
            tensorrt,
            chip,
            precision: settings.precision,
            batch: settings.batch,
            min_batch: settings.min_batch,
            profiles: settings.profiles,
            workspace_bytes: settings.workspace_bytes,
            optimization_level: settings.optimization_level,
            dla: settings.dla,
            input_shapes: settings.input_shapes.clone(),
            input: settings.input,
            output: settings.output,
            calibration_sha256: (!settings.calibration_cache.is_empty())
                .then(|| hex(&Sha256::digest(&settings.calibration_cache))),
        }
    }

    /// The name under which the engine is kept.
    #[must_use]
    pub fn key(&self) -> String {
        // A struct of plain fields always becomes JSON, in the order of its fields.
        let text = serde_json::to_vec(self).unwrap_or_default();
        hex(&Sha256::digest(text))[..16].to_owned()
    }

    /// Whether an engine of this manifest runs here.
    ///
    /// # Errors
    /// [`Refusal`] with the first field that differs.
    pub fn fits(&self, tensorrt: Version, chip: &str) -> Result<(), Refusal> {
        let refuse = |field, built: &str, here: &str| {
            Err(Refusal {
                field,
                built: built.to_owned(),
                here: here.to_owned(),
            })
        };
        if self.chip != chip {
            return refuse("chip", &self.chip, chip);
        }
        if self.tensorrt != tensorrt {
            return refuse(
                "TensorRT version",
                &self.tensorrt.to_string(),
                &tensorrt.to_string(),
            );
        }
        Ok(())
    }
}

/// An engine's directory with its manifest, or why that cannot be read.
pub type Listed = (PathBuf, Result<Entry, CacheError>);

/// A directory of engines.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// The cache in a directory, which is made when the first engine is kept.
    #[must_use]
    pub const fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The timing cache that earlier builds for this TensorRT and chip left, tactics that were measured; empty where there is none.
    #[must_use]
    pub fn timings(&self, manifest: &Manifest) -> Vec<u8> {
        // A build is slower without it, and no worse.
        fs::read(self.0.join(timings(manifest))).unwrap_or_default()
    }

    /// Keeps a timing cache, whole or not at all. For who holds the cache.
    ///
    /// # Errors
    /// [`CacheError::File`].
    pub fn keep_timings(&self, manifest: &Manifest, bytes: &[u8]) -> Result<(), CacheError> {
        self.keep_file(&timings(manifest), bytes).map(|_| ())
    }

    /// Where an engine of this manifest lies or would lie.
    #[must_use]
    pub fn place(&self, manifest: &Manifest) -> PathBuf {
        self.0.join(manifest.key())
    }

    /// The engine of this manifest, its plan's hash checked, or `None` when it was never built.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn find(&self, manifest: &Manifest) -> Result<Option<(Entry, Vec<u8>)>, CacheError> {
        let place = self.place(manifest);
        if !place.join("engine.json").exists() {
            return Ok(None);
        }
        read(&place).map(Some)
    }

    /// Holds the cache for one builder: two at once would build the same engine twice, in memory that may not do for one. The lock is
    /// free again when the file is dropped, or its process ends. Readers need none. `waits` is called when another holds it.
    ///
    /// # Errors
    /// [`CacheError::File`].
    pub fn hold(&self, waits: impl FnOnce()) -> Result<fs::File, CacheError> {
        let path = self.0.join("lock");
        let failed = |source| CacheError::File {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(&self.0).map_err(failed)?;
        // One that another user made may be read only, which does for a lock.
        let file = match fs::File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::File::create(&path),
            opened => opened,
        };
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                waits();
                file.lock().map_err(failed)?;
            }
            Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
        }
        self.sweep();
        Ok(file)
    }

    /// Takes away what builders left that were killed. Only for who holds the cache.
    fn sweep(&self) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NEW)) {
            // What cannot be removed takes room and does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }

    /// Keeps a file beside the engines, whole or not at all.
    ///
    /// # Errors
    /// [`CacheError::File`].
    pub fn keep_file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, CacheError> {
        let path = self.0.join(name);
        let failed = |source| CacheError::File {
            path: path.clone(),
            source,
        };
        let new = tempfile::Builder::new()
            // As for engines: who builds next may be another user.
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(&self.0);
        let mut new = new.map_err(failed)?;
        io::Write::write_all(&mut new, bytes).map_err(failed)?;
        // A power cut must not leave scales behind that are half zeros.
        new.as_file().sync_all().map_err(failed)?;
        new.persist(&path).map_err(|error| failed(error.error))?;
        Ok(path)
    }

    /// Keeps an engine. It appears whole or not at all; an equal one that is there is replaced.
    ///
    /// # Errors
    /// [`CacheError::File`].
    pub fn keep(&self, entry: &Entry, built: &Built) -> Result<PathBuf, CacheError> {
        let place = self.place(&entry.manifest);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| CacheError::File { path, source }
        };
        fs::create_dir_all(&self.0).map_err(failed(&self.0))?;
        let new = tempfile::Builder::new()
            .prefix(NEW)
            // Who builds and who runs may be different users.
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(&self.0)
            .map_err(failed(&self.0))?;
        let write = |name: &str, bytes: &[u8]| {
            let path = new.path().join(name);
            fs::write(&path, bytes)
                .and_then(|()| fs::File::open(&path)?.sync_all())
                .map_err(failed(&path))
        };
        write("engine.plan", &built.plan)?;
        write(
            "engine.json",
            serde_json::to_string_pretty(entry).unwrap_or_default().as_bytes(),
        )?;
        match fs::remove_dir_all(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&place)(error)),
            _ => fs::rename(new.keep(), &place).map_err(failed(&place))?,
        }
        Ok(place)
    }

    /// Everything in the cache, by directory; those whose manifest cannot be read with the reason.
    ///
    /// # Errors
    /// [`CacheError::File`] when the directory is there and cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, CacheError> {
        let failed = |source| CacheError::File {
            path: self.0.clone(),
            source,
        };
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let places: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut places = places.map_err(failed)?;
        places.retain(|place| place.join("engine.json").exists());
        places.sort();
        Ok(places
            .into_iter()
            .map(|place| (place.clone(), manifest(&place)))
            .collect())
    }
}

/// The file's name of a timing cache: TensorRT takes none of another version, and none that another chip measured.
fn timings(manifest: &Manifest) -> String {
    let chip = sha256_of(manifest.chip.as_bytes());
    format!("timing-{}-{}.cache", manifest.tensorrt, &chip[..8])
}

/// An engine's manifest.
fn manifest(place: &Path) -> Result<Entry, CacheError> {
    let path = place.join("engine.json");
    let text = fs::read(&path).map_err(|source| CacheError::File {
        path: path.clone(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|source| CacheError::Manifest { path, source })
}

/// The engine in a directory of the cache, its plan's hash checked.
fn read(place: &Path) -> Result<(Entry, Vec<u8>), CacheError> {
    let entry = manifest(place)?;
    let path = place.join("engine.plan");
    let plan = fs::read(&path).map_err(|source| CacheError::File {
        path: path.clone(),
        source,
    })?;
    if hex(&Sha256::digest(&plan)) != entry.plan_sha256 {
        return Err(CacheError::Changed { path });
    }
    Ok((entry, plan))
}

impl Entry {
    /// The engine in a directory of a cache.
    ///
    /// # Errors
    /// [`CacheError`], also when the plan is not the manifest's.
    pub fn read(place: &Path) -> Result<(Self, Vec<u8>), CacheError> {
        read(place)
    }
}

/// SHA-256 of bytes, in hexadecimal.
#[must_use]
pub fn sha256_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
