//! The cache of engines on disk: `DIR/<key>/{engine.plan,engine.json}`. The key is the first 16 digits of the manifest's
//! SHA-256, and the manifest contains everything on which a plan depends. An engine for another machine is refused with
//! the first field that differs. Builds nothing.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use regatta_fsutil::hash::sha256_hex;
use serde::{Deserialize, Serialize};

use crate::{
    build::{BuildOutput, BuildSettings, DlaSettings, Precision},
    calibration_method::CalibrationMethod,
    engine::Tensor,
    error::{CacheError, EngineMismatch},
    input_scale::Scale,
    io_format::{InputShape, IoFormat},
    placement::Placement,
    version::Version,
};

/// The prefix of an engine's directory while it is being written.
const NEW: &str = ".new-";

/// The manifest's schema version.
const SCHEMA: u32 = 1;

/// The manifest of an engine: everything on which its plan depends. Its hash is the engine's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineManifest {
    /// The schema version of this document.
    pub schema: u32,
    /// The model's SHA-256 in hexadecimal ([`Model::sha256`](crate::Model::sha256)).
    pub onnx_sha256: String,
    pub tensorrt: Version,
    /// The chip's name on this machine.
    pub chip: String,
    /// The allowed precision.
    pub precision: Precision,
    /// The largest batch.
    pub batch: u32,
    /// The smallest batch.
    pub min_batch: u32,
    /// The number of optimisation profiles.
    pub profiles: u32,
    /// The workspace in bytes; 0 for TensorRT's default.
    pub workspace_bytes: u64,
    /// The builder optimisation level, where one was set.
    pub optimization_level: Option<u32>,
    /// The settings for DLA; `None` for an engine on the GPU.
    pub dla: Option<DlaSettings>,
    /// The dimensions that the model leaves dynamic, where they were set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_shapes: Vec<InputShape>,
    /// The requested type and layout of the inputs. Omitted when not requested, so that keys of older engines stay the same.
    #[serde(default, skip_serializing_if = "IoFormat::is_default")]
    pub input: IoFormat,
    /// The scale of the samples that an 8-bit input takes. Omitted where it is that of the calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_scale: Option<Scale>,
    /// The requested type and layout of the outputs, omitted likewise.
    #[serde(default, skip_serializing_if = "IoFormat::is_default")]
    pub output: IoFormat,
    /// The SHA-256 of the calibration cache, where one was used.
    pub calibration_sha256: Option<String>,
    /// How scales were found. Omitted for entropy, so that keys of older engines stay the same.
    #[serde(default, skip_serializing_if = "CalibrationMethod::is_default")]
    pub calibration_method: CalibrationMethod,
    /// The SHA-256 of each library with plug-ins. Omitted without any, so that keys of older engines stay the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins_sha256: Vec<String>,
}

/// An engine in the cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CacheEntry {
    /// The engine's manifest.
    pub manifest: EngineManifest,
    /// The plan's SHA-256.
    pub plan_sha256: String,
    /// The plan's size in bytes.
    pub plan_bytes: u64,
    /// The duration of the build in seconds.
    pub build_seconds: f64,
    /// The inputs and outputs. Empty when the building machine could not load the engine.
    pub tensors: Vec<Tensor>,
    /// The placement of the layers, for an engine with DLA.
    pub placement: Placement,
}

impl EngineManifest {
    /// Creates the manifest of a build on this machine, without plug-ins and without the samples' scale.
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
            input_scale: None,
            output: settings.output,
            calibration_sha256: (!settings.calibration_cache.is_empty())
                .then(|| sha256_hex(&settings.calibration_cache)),
            calibration_method: settings.calibration_method,
            plugins_sha256: Vec::new(),
        }
    }

    /// Returns the file name of the calibration cache of a model, its samples, a method and a TensorRT version. Builds for other batches and units
    /// reuse it. The name of a build without samples has no meaning.
    #[must_use]
    pub fn calibration_file(&self) -> String {
        let samples = self.calibration_sha256.as_deref().unwrap_or_default();
        let mut made_of = format!("{} {samples} {}", self.onnx_sha256, self.tensorrt);
        if !self.calibration_method.is_default() {
            made_of.push_str(&format!(" {}", self.calibration_method.as_str()));
        }
        format!("calibration-{}.cache", &sha256_hex(made_of.as_bytes())[..16])
    }

    /// Returns the engine's key, which names its directory.
    #[must_use]
    pub fn key(&self) -> String {
        // Serialising a struct of plain fields cannot fail, and keeps the order of the fields.
        let text = serde_json::to_vec(self).unwrap_or_default();
        sha256_hex(text.as_ref())[..16].to_owned()
    }

    /// Checks whether an engine with this manifest can run on this machine.
    ///
    /// # Errors
    /// [`EngineMismatch`] with the first field that differs.
    pub fn check_compatible(&self, tensorrt: Version, chip: &str) -> Result<(), EngineMismatch> {
        let refuse = |field, built: &str, here: &str| {
            Err(EngineMismatch {
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

/// An engine's directory with its manifest, or the reason why that cannot be read.
pub type CacheListing = (PathBuf, Result<CacheEntry, CacheError>);

/// A cache of engines in a directory.
#[derive(Debug, Clone)]
pub struct EngineCache(PathBuf);

impl EngineCache {
    /// Uses the cache in a directory, which is created for the first engine.
    #[must_use]
    pub const fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Reads the timing cache of earlier builds for this TensorRT and chip: the measured tactics. Empty when there is none.
    #[must_use]
    pub fn timing_cache(&self, manifest: &EngineManifest) -> Vec<u8> {
        // A build without a timing cache is slower and otherwise equal.
        fs::read(self.0.join(timing_cache_name(manifest))).unwrap_or_default()
    }

    /// Stores a timing cache atomically. The caller must have locked the cache.
    ///
    /// # Errors
    /// [`CacheError::File`].
    pub fn store_timing_cache(&self, manifest: &EngineManifest, bytes: &[u8]) -> Result<(), CacheError> {
        self.store_file(&timing_cache_name(manifest), bytes).map(|_| ())
    }

    /// Returns the directory of the engine with this manifest, which need not exist.
    #[must_use]
    pub fn engine_dir(&self, manifest: &EngineManifest) -> PathBuf {
        self.0.join(manifest.key())
    }

    /// Reads the engine with this manifest and checks its plan's hash. Returns `None` when it was never built.
    ///
    /// # Errors
    /// [`CacheError`] when a file cannot be read, the plan differs from its manifest, or the directory has an engine with another manifest,
    /// as after copying directories of a cache by hand.
    pub fn find(&self, manifest: &EngineManifest) -> Result<Option<(CacheEntry, Vec<u8>)>, CacheError> {
        let directory = self.engine_dir(manifest);
        if !directory.join("engine.json").exists() {
            return Ok(None);
        }
        let (entry, plan) = read(&directory)?;
        if entry.manifest != *manifest {
            return Err(CacheError::OtherManifest { directory });
        }
        Ok(Some((entry, plan)))
    }

    /// Locks the cache for one builder: two at once would build the same engine twice and need twice the memory. Dropping
    /// the file releases the lock, and so does the end of the process. Readers need no lock. Calls `waits` before it waits
    /// for another builder.
    ///
    /// # Errors
    /// [`CacheError::File`].
    pub fn lock(&self, waits: impl FnOnce()) -> Result<fs::File, CacheError> {
        let path = self.0.join("lock");
        let failed = |source| CacheError::File {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(&self.0).map_err(failed)?;
        // A lock file of another user may only be readable, which suffices.
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
        self.remove_incomplete();
        Ok(file)
    }

    /// Removes the incomplete directories of builders that were killed. The caller must have locked the cache.
    fn remove_incomplete(&self) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NEW)) {
            // A directory that cannot be removed only takes space.
            let _ = fs::remove_dir_all(entry.path());
        }
    }

    /// Stores a file beside the engines atomically.
    ///
    /// # Errors
    /// [`CacheError::File`].
    pub fn store_file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, CacheError> {
        let path = self.0.join(name);
        let failed = |source| CacheError::File {
            path: path.clone(),
            source,
        };
        let new = tempfile::Builder::new()
            // Readable for all, as the engines: another user may run the next build.
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(&self.0);
        let mut new = new.map_err(failed)?;
        io::Write::write_all(&mut new, bytes).map_err(failed)?;
        // Flushed before it is renamed: a power cut must not leave a damaged calibration cache.
        new.as_file().sync_all().map_err(failed)?;
        new.persist(&path).map_err(|error| failed(error.error))?;
        Ok(path)
    }

    /// Stores an engine atomically. Replaces an engine with the same manifest.
    ///
    /// # Errors
    /// [`CacheError::File`].
    pub fn store(&self, entry: &CacheEntry, built: &BuildOutput) -> Result<PathBuf, CacheError> {
        let directory = self.engine_dir(&entry.manifest);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| CacheError::File { path, source }
        };
        fs::create_dir_all(&self.0).map_err(failed(&self.0))?;
        let new = tempfile::Builder::new()
            .prefix(NEW)
            // Readable for all: builder and agent may be different users.
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
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&directory)(error)),
            _ => fs::rename(new.keep(), &directory).map_err(failed(&directory))?,
        }
        Ok(directory)
    }

    /// Returns the keys of all engines in sorted order.
    ///
    /// # Errors
    /// Returns the same errors as [`list`](Self::list).
    pub fn keys(&self) -> Result<Vec<String>, CacheError> {
        let listed = self.list()?.into_iter();
        let name = |(directory, _): CacheListing| directory.file_name()?.to_str().map(str::to_owned);
        Ok(listed.filter_map(name).collect())
    }

    /// Removes engines by their keys. Keeps the timing and calibration caches for later builds.
    ///
    /// # Errors
    /// Returns [`CacheError::NoEngine`] when one of them is missing, without removing any. Returns [`CacheError::File`] when a file cannot be
    /// removed.
    pub fn remove(&self, keys: &[String]) -> Result<(), CacheError> {
        let present = self.keys()?;
        if let Some(unknown) = keys.iter().find(|key| !present.contains(key)) {
            return Err(CacheError::NoEngine {
                key: unknown.clone(),
                cache: self.0.clone(),
            });
        }
        for key in keys {
            let directory = self.0.join(key);
            // Without its manifest it is no longer an engine, even if a power cut leaves the other files.
            fs::remove_file(directory.join("engine.json"))
                .and_then(|()| fs::remove_dir_all(&directory))
                .map_err(|source| CacheError::File {
                    path: directory.clone(),
                    source,
                })?;
        }
        Ok(())
    }

    /// Lists all engines, sorted by directory. An engine whose manifest cannot be read is listed with the reason.
    ///
    /// # Errors
    /// [`CacheError::File`] when the directory exists and cannot be read.
    pub fn list(&self) -> Result<Vec<CacheListing>, CacheError> {
        let failed = |source| CacheError::File {
            path: self.0.clone(),
            source,
        };
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let directories: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut directories = directories.map_err(failed)?;
        directories.retain(|directory| directory.join("engine.json").exists());
        directories.sort();
        Ok(directories
            .into_iter()
            .map(|directory| (directory.clone(), manifest(&directory)))
            .collect())
    }
}

/// Returns the file name of a timing cache, which is only valid for one TensorRT version and one chip.
fn timing_cache_name(manifest: &EngineManifest) -> String {
    let chip = sha256_hex(manifest.chip.as_bytes());
    format!("timing-{}-{}.cache", manifest.tensorrt, &chip[..8])
}

/// Reads the manifest in an engine's directory.
fn manifest(directory: &Path) -> Result<CacheEntry, CacheError> {
    let path = directory.join("engine.json");
    let text = fs::read(&path).map_err(|source| CacheError::File {
        path: path.clone(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|source| CacheError::Manifest { path, source })
}

/// Reads the engine in a directory and checks its plan's hash.
fn read(directory: &Path) -> Result<(CacheEntry, Vec<u8>), CacheError> {
    let entry = manifest(directory)?;
    let path = directory.join("engine.plan");
    let plan = fs::read(&path).map_err(|source| CacheError::File {
        path: path.clone(),
        source,
    })?;
    if sha256_hex(&plan) != entry.plan_sha256 {
        return Err(CacheError::Changed { path });
    }
    Ok((entry, plan))
}

impl CacheEntry {
    /// Reads the engine in a directory of a cache.
    ///
    /// # Errors
    /// [`CacheError`] when a file cannot be read, or the plan differs from its manifest.
    pub fn read(directory: &Path) -> Result<(Self, Vec<u8>), CacheError> {
        read(directory)
    }
}
