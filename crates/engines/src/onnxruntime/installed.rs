//! The ONNX Runtime that is installed on a machine: finds the file of its library. Opens nothing.

use std::{
    env, fs,
    path::{self, Path, PathBuf},
};

use super::error::LibraryError;

/// The beginning of the library's file name. A version may follow.
const NAME: &str = "libonnxruntime.so";
/// Where a Python wheel has the library, below the directory of the packages.
const IN_WHEEL: &str = "onnxruntime/capi";
/// The directories of packages that are not in a virtual environment, below its root.
const LIBRARIES: [&str; 2] = ["lib", "lib64"];
/// The directories in which distributions and manual installations have libraries.
const OF_SYSTEM: [&str; 4] = [
    "/usr/local/lib",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib",
];
/// The most names of a directory that are looked at.
const MAX_NAMES: usize = 4096;

/// The library's file, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledOnnxRuntime {
    pub path: PathBuf,
    /// The version in the file's name.
    pub version: Option<String>,
}

impl InstalledOnnxRuntime {
    /// Finds the library: `named`, else `ORT_DYLIB_PATH`, else in the active virtual environment, else in the system's directories. A name is that
    /// of the library's file, or of a directory or virtual environment that contains it.
    ///
    /// # Errors
    /// [`LibraryError::Missing`] when a named one is not there, or [`LibraryError::NotInstalled`].
    pub fn find(named: Option<&Path>) -> Result<Self, LibraryError> {
        let variable = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let named = named.map(Path::to_owned).or_else(|| variable("ORT_DYLIB_PATH"));
        if let Some(named) = named {
            return Self::at(&named).ok_or(LibraryError::Missing { path: named });
        }
        let environment = variable("VIRTUAL_ENV");
        let places = environment.into_iter().chain(OF_SYSTEM.map(PathBuf::from));
        places
            .into_iter()
            .find_map(|place| Self::at(&place))
            .ok_or(LibraryError::NotInstalled)
    }

    /// Returns the library at a path: a file, or a directory that contains it.
    fn at(path: &Path) -> Option<Self> {
        if path.is_file() {
            return Some(Self::of_file(path.to_owned()));
        }
        let libraries = LIBRARIES.map(|name| path.join(name));
        // `lib/python3.10/site-packages` of a virtual environment.
        let of_versions = libraries.iter().flat_map(|library| {
            let versions = names(library, |name| name.starts_with("python"));
            versions
                .into_iter()
                .map(|name| library.join(name).join("site-packages"))
        });
        let packages = std::iter::once(path.to_owned())
            .chain(libraries.clone())
            .chain(of_versions);
        let places = packages.flat_map(|place| [place.join(IN_WHEEL), place]);
        places.into_iter().find_map(|place| Self::in_directory(&place))
    }

    /// Returns the library in a directory, by the longest of its names, which has the version.
    fn in_directory(directory: &Path) -> Option<Self> {
        let is_library = |name: &str| {
            let rest = name.strip_prefix(NAME);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let longest = names(directory, is_library).into_iter().max_by_key(String::len)?;
        Some(Self::of_file(directory.join(longest)))
    }

    fn of_file(path: PathBuf) -> Self {
        // The loader searches a name without a directory elsewhere.
        let path = path::absolute(&path).unwrap_or(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let version = name
            .strip_prefix(NAME)
            .and_then(|rest| rest.strip_prefix('.'))
            .filter(|version| version.contains('.'))
            .map(str::to_owned);
        Self { path, version }
    }
}

/// Returns the matching names in a directory in ascending order; none when it cannot be read.
fn names(directory: &Path, matches: impl Fn(&str) -> bool) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| matches(name))
        .take(MAX_NAMES)
        .collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_in_a_directory_a_wheel_and_a_virtual_environment() {
        let root = tempfile::tempdir().unwrap();
        let inner = [
            "plain/libonnxruntime.so.1.22.0",
            "wheel/onnxruntime/capi/libonnxruntime.so.1.23.2",
            "venv/lib/python3.10/site-packages/onnxruntime/capi/libonnxruntime.so.1.17.0",
            "target/lib/onnxruntime/capi/libonnxruntime.so.1.24.0",
        ];
        for file in inner {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file.with_file_name("libonnxruntime_providers_shared.so"), "").unwrap();
            fs::write(file, "").unwrap();
        }
        fs::write(root.path().join("plain/libonnxruntime.so"), "").unwrap();
        for file in inner {
            let directory = root.path().join(file.split('/').next().unwrap());
            let found = InstalledOnnxRuntime::find(Some(&directory)).unwrap();
            assert_eq!(found.path, root.path().join(file));
            assert!(file.ends_with(&found.version.unwrap()), "{file}");
        }
        let named = InstalledOnnxRuntime::find(Some(&root.path().join("plain/libonnxruntime.so")));
        assert_eq!(named.unwrap().version, None);
        let missing = InstalledOnnxRuntime::find(Some(&root.path().join("nothing"))).unwrap_err();
        assert!(matches!(missing, LibraryError::Missing { .. }), "{missing}");
    }
}
