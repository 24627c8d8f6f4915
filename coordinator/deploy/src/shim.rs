//! The TensorRT shim of a board: the one in its package where one fits, otherwise one that is compiled with the board's own headers and
//! kept in the workspace. Without either the agent is deployed without TensorRT, and a sentence says so.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

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

/// A shim that a board needs and does not get.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShimError {
    /// The board has no headers.
    #[error("this board has no headers of TensorRT {0}, with which its shim would be compiled")]
    NoHeaders(Version),
    /// The headers are of a version that the library does not serve.
    #[error("this board has TensorRT {library} and headers of {headers}")]
    OtherHeaders {
        /// The version of the library.
        library: Version,
        /// The version of the headers.
        headers: String,
    },
    /// The headers were not fetched.
    #[error(transparent)]
    Headers(#[from] HeadersError),
    /// The shim was not compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The workspace cannot be written to.
    #[error("the shim cannot be kept in the workspace")]
    Io(#[from] io::Error),
}

impl ShimError {
    /// Returns what brings the board its shim.
    pub(crate) fn remedy(&self, survey: &Survey) -> String {
        match self {
            Self::NoHeaders(version) => headers_package(version),
            Self::OtherHeaders { library, .. } => headers_package(library),
            Self::Compile(CompileError::NoCompiler { package, .. }) => {
                format!("here: sudo apt-get install {package}")
            }
            Self::Compile(CompileError::NewGlibc { .. }) => {
                "DEBIAN_MIRROR names another mirror, and http_proxy a proxy that reaches it".to_owned()
            }
            Self::Headers(_) | Self::Compile(_) => format!(
                "docs/engines.md compiles one by hand from {}",
                survey.tensorrt_headers.as_deref().unwrap_or("the headers")
            ),
            Self::Io(_) => "is there space left on this machine's disk?".to_owned(),
        }
    }
}

/// Returns the command that brings JetPack's headers of a version onto a board.
fn headers_package(version: &Version) -> String {
    let Version { major, minor, .. } = version;
    let headers = if (*major, *minor) < (8, 6) {
        "libnvinfer-dev"
    } else {
        "libnvinfer-headers-dev"
    };
    format!("on the board: sudo apt-get install {headers} libnvonnxparsers-dev, of version {version}")
}

/// The shims that were compiled for boards of this workspace, and the packages with them. Several boards use it at the same time.
#[derive(Debug)]
pub struct ShimCache {
    directory: PathBuf,
    compiling: Mutex<()>,
}

impl ShimCache {
    /// Keeps them below a workspace's directory.
    pub fn new(workspace: &Path) -> Self {
        Self {
            directory: workspace.join("shims"),
            compiling: Mutex::new(()),
        }
    }

    /// Returns the kept shim for a board, of the present sources.
    pub(crate) fn find(&self, architecture: &str, tensorrt: Version) -> Option<PathBuf> {
        let directories = ShimDirectories::new(vec![self.kept(architecture)]);
        directories.find(tensorrt).ok()
    }

    /// Returns the kept shim, or compiles one with the board's headers.
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
        // Boards of one kind wait for the first one's.
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
        fs::rename(&made, kept.join(name))?;
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

    /// Returns a package with a shim.
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
