//! The libraries that the agent opens at run time, and the engines of its cache, as `doctor` lists them. Opens none of them: names and
//! documents beside the files describe them.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use regatta_engines::tensorrt::engine_cache;
use regatta_loadgen_official::{BuildInfo, SearchPath};
use regatta_tensorrt::{EngineCache, ShimDirectories};
use regatta_text::{ErrorChain, Escaped};
use serde::Serialize;

/// The most engines that are listed. A report travels in one message.
const MAX_ENGINES: usize = 64;

/// What the agent finds on this machine.
#[derive(Debug, Serialize)]
pub(super) struct InstalledParts {
    /// The shims, in the order of the search.
    shims: Vec<Shim>,
    /// The plug-ins with the official LoadGen, likewise.
    loadgens: Vec<LoadgenPlugin>,
    /// The library that runs open unless they name another.
    #[cfg(feature = "onnxruntime")]
    #[serde(skip_serializing_if = "Option::is_none")]
    onnxruntime: Option<OnnxRuntimeLibrary>,
    engine_cache: PathBuf,
    engines: Vec<ListedEngine>,
    /// How many engines are not in the list.
    further_engines: usize,
    /// Why a directory could not be read.
    errors: Vec<String>,
}

/// The shim of one version of TensorRT.
#[derive(Debug, Serialize)]
struct Shim {
    tensorrt: String,
    path: PathBuf,
}

/// One revision of the official LoadGen.
#[derive(Debug, Serialize)]
struct LoadgenPlugin {
    revision: String,
    /// `None` without the document beside the plug-in.
    version: Option<String>,
    /// Whether a round can accept it. `None` likewise.
    submittable: Option<bool>,
    path: PathBuf,
}

/// The library of ONNX Runtime.
#[cfg(feature = "onnxruntime")]
#[derive(Debug, Serialize)]
struct OnnxRuntimeLibrary {
    /// `None` when the file's name does not have it.
    version: Option<String>,
    path: PathBuf,
}

/// One engine of the cache.
#[derive(Debug, Serialize)]
struct ListedEngine {
    key: String,
    batch: Option<u32>,
    tensorrt: Option<String>,
    chip: Option<String>,
    /// Why its manifest cannot be read.
    error: Option<String>,
}

impl InstalledParts {
    /// Lists shims, plug-ins and engines. The engines' directory is where runs with this scratch directory look.
    pub(super) fn find(scratch: Option<&Path>) -> Self {
        Self::in_directories(
            &ShimDirectories::from_environment(),
            &SearchPath::from_environment(),
            engine_cache(scratch),
        )
    }

    fn in_directories(shims: &ShimDirectories, plugins: &SearchPath, engine_cache: PathBuf) -> Self {
        let mut errors = Vec::new();
        let mut note = |error: &(dyn std::error::Error + 'static)| errors.push(ErrorChain(error).to_string());
        let shims = shims.all().unwrap_or_else(|error| {
            note(&error);
            Vec::new()
        });
        let plugins = plugins.plugins().unwrap_or_else(|error| {
            note(&error);
            Vec::new()
        });
        let mut engines = EngineCache::new(engine_cache.clone())
            .list()
            .unwrap_or_else(|error| {
                note(&error);
                Vec::new()
            });
        let further_engines = engines.len().saturating_sub(MAX_ENGINES);
        engines.truncate(MAX_ENGINES);
        let shim = |(version, path): (regatta_tensorrt::Version, PathBuf)| Shim {
            tensorrt: version.to_string(),
            path,
        };
        Self {
            shims: shims.into_iter().map(shim).collect(),
            loadgens: plugins.into_iter().map(plugin).collect(),
            #[cfg(feature = "onnxruntime")]
            onnxruntime: onnxruntime(),
            engine_cache,
            engines: engines.into_iter().map(engine).collect(),
            further_engines,
            errors,
        }
    }

    /// Prints one line for each part.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(super) fn write_text(&self, to: &mut impl Write) -> io::Result<()> {
        let mut line = |label: &str, text: String| writeln!(to, "{label:<12} {}", Escaped(text));
        for shim in &self.shims {
            line(
                "shim",
                format!("for TensorRT {}, {}", shim.tensorrt, shim.path.display()),
            )?;
        }
        for plugin in &self.loadgens {
            let version = plugin.version.as_deref().unwrap_or("of unknown version");
            let note = match plugin.submittable {
                Some(false) => ", not for submissions",
                Some(true) | None => "",
            };
            line(
                "LoadGen",
                format!("{version} @ {}{note}, {}", plugin.revision, plugin.path.display()),
            )?;
        }
        #[cfg(feature = "onnxruntime")]
        if let Some(library) = &self.onnxruntime {
            let version = library.version.as_deref().unwrap_or("of unknown version");
            line("ONNX Runtime", format!("{version}, {}", library.path.display()))?;
        }
        for engine in &self.engines {
            let text = match (&engine.error, engine.batch, &engine.tensorrt, &engine.chip) {
                (None, Some(batch), Some(tensorrt), Some(chip)) => {
                    format!("batch {batch}, TensorRT {tensorrt}, {chip}")
                }
                (error, ..) => error.clone().unwrap_or_default(),
            };
            line("engine", format!("{}: {text}", engine.key))?;
        }
        if self.further_engines > 0 {
            line(
                "engine",
                format!(
                    "{} more; hint: regatta-agent engine list --cache {}",
                    self.further_engines,
                    self.engine_cache.display()
                ),
            )?;
        }
        for error in &self.errors {
            line("unreadable", error.clone())?;
        }
        Ok(())
    }
}

#[cfg(feature = "onnxruntime")]
fn onnxruntime() -> Option<OnnxRuntimeLibrary> {
    let installed = regatta_engines::onnxruntime::InstalledOnnxRuntime::find(None).ok()?;
    Some(OnnxRuntimeLibrary {
        version: installed.version,
        path: installed.path,
    })
}

fn plugin(path: PathBuf) -> LoadgenPlugin {
    let info = BuildInfo::beside(&path);
    LoadgenPlugin {
        revision: SearchPath::revision_of(&path).unwrap_or_default().to_owned(),
        version: info.as_ref().map(|info| info.loadgen_version.clone()),
        submittable: info.map(|info| info.submittable),
        path,
    }
}

fn engine((place, entry): regatta_tensorrt::CacheListing) -> ListedEngine {
    let manifest = entry.as_ref().ok().map(|entry| &entry.manifest);
    ListedEngine {
        key: place
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        batch: manifest.map(|manifest| manifest.batch),
        tensorrt: manifest.map(|manifest| manifest.tensorrt.to_string()),
        chip: manifest.map(|manifest| manifest.chip.clone()),
        error: entry.as_ref().err().map(|error| ErrorChain(error).to_string()),
    }
}
