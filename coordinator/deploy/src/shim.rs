//! The TensorRT shim of a board: the one in its package if it fits, otherwise one that is compiled with the board's own headers and kept in the
//! workspace. If neither is possible, the agent is deployed without TensorRT, and a sentence says why.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use regatta_fsutil::atomic_file::AtomicFile;
use regatta_ssh::Board;
use regatta_tensorrt::{ShimDirectories, Version};

use super::{
    ProgressReporter,
    package::Package,
    repacked,
    shim_compiler::{self, CompileError, triple},
    survey::Survey,
    tensorrt_headers::{self, HeadersError},
};

/// The reason why a board does not get the shim that it needs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShimError {
    /// The board does not have TensorRT's headers.
    #[error("this board does not have the headers of TensorRT {0}, which its shim is compiled with")]
    NoHeaders(Version),
    /// The headers do not match the version of the library.
    #[error("this board has TensorRT {library} and headers of {headers}")]
    OtherHeaders {
        /// The library's version.
        library: Version,
        /// The headers' version.
        headers: String,
    },
    #[error(transparent)]
    Headers(#[from] HeadersError),
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The workspace cannot be written to.
    #[error("the shim cannot be kept in the workspace")]
    Io(#[from] io::Error),
}

impl ShimError {
    /// Returns the remedy as a command or sentence.
    pub(crate) fn remedy(&self, survey: &Survey) -> String {
        match self {
            Self::NoHeaders(version) => headers_package(version),
            Self::OtherHeaders { library, .. } => headers_package(library),
            Self::Compile(CompileError::NoCompiler { package, .. }) => {
                format!("here: sudo apt-get install {package}")
            }
            Self::Compile(CompileError::NewGlibc { .. }) => {
                "set DEBIAN_MIRROR to another mirror, or http_proxy to a proxy that can reach it".to_owned()
            }
            Self::Headers(_) | Self::Compile(_) => format!(
                "compile one by hand from {} (docs/engines.md)",
                survey.tensorrt_headers.as_deref().unwrap_or("the headers")
            ),
            Self::Io(_) => "check the free space on this machine's disk".to_owned(),
        }
    }
}

/// Returns the command that installs JetPack's headers of a version on a board.
fn headers_package(version: &Version) -> String {
    let Version { major, minor, .. } = version;
    let headers = if (*major, *minor) < (8, 6) {
        "libnvinfer-dev"
    } else {
        "libnvinfer-headers-dev"
    };
    format!("on the board: sudo apt-get install {headers} libnvonnxparsers-dev, of version {version}")
}

/// The shims that were compiled for boards of this workspace, and the packages that contain them. Several boards use the cache concurrently.
#[derive(Debug)]
pub struct ShimCache {
    directory: PathBuf,
    compiling: Mutex<()>,
}

impl ShimCache {
    /// Creates the cache in a workspace.
    pub fn new(workspace: &Path) -> Self {
        Self {
            directory: workspace.join("shims"),
            compiling: Mutex::new(()),
        }
    }

    /// Returns the cached shim for a board, if it was compiled from the current sources.
    pub(crate) fn find(&self, architecture: &str, tensorrt: Version) -> Option<PathBuf> {
        let directories = ShimDirectories::new(vec![self.kept(architecture)]);
        directories.find(tensorrt).ok()
    }

    /// Returns the cached shim, or compiles one with the board's headers.
    ///
    /// # Errors
    /// Returns [`ShimError`].
    pub(crate) fn find_or_compile(
        &self,
        board: &dyn Board,
        survey: &Survey,
        tensorrt: Version,
        progress: &dyn ProgressReporter,
    ) -> Result<PathBuf, ShimError> {
        let architecture = survey.architecture();
        // Other boards of the same kind wait for the first one's shim.
        let _compiling = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shim) = self.find(architecture, tensorrt) {
            return Ok(shim);
        }
        let place = survey
            .tensorrt_headers
            .as_deref()
            .ok_or(ShimError::NoHeaders(tensorrt))?;
        progress.say(&format!(
            "compiling the shim for TensorRT {tensorrt} with the headers in {place} of the board (once)"
        ));
        let kept = self.kept(architecture);
        fs::create_dir_all(&kept)?;
        let work = tempfile::tempdir_in(&self.directory)?;
        let headers = work.path().join("headers");
        fs::create_dir(&headers)?;
        tensorrt_headers::fetch(board, place, &headers)?;
        let made = shim_compiler::compile(architecture, survey.glibc, &headers, work.path())?;
        let name = made.file_name().unwrap_or_default();
        AtomicFile::new(&kept.join(name)).write(&fs::read(&made)?)?;
        self.find(architecture, tensorrt)
            .ok_or_else(|| ShimError::OtherHeaders {
                library: tensorrt,
                headers: name
                    .to_string_lossy()
                    .trim_start_matches("libregatta_trt-")
                    .trim_end_matches(".so")
                    .to_owned(),
            })
    }

    /// Returns the package with the shim added.
    ///
    /// # Errors
    /// Returns an error when the package or the workspace cannot be read or written.
    pub(crate) fn packed(&self, package: &Package, shim: &Path) -> io::Result<Package> {
        repacked::with_library(package, shim, &self.directory.join("packages"))
    }

    fn kept(&self, architecture: &str) -> PathBuf {
        self.directory
            .join(shim_compiler::sources_version())
            .join(triple(architecture))
    }
}
