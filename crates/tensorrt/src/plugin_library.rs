//! Libraries with TensorRT plug-ins: layers that a network has and TensorRT has not. Checks that a file is a library for this machine, and
//! has the shim load it. Knows no plug-in by name.

use std::{
    env::consts,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use regatta_fsutil::{hash::sha256_of_file, regular_file};

use crate::{
    ffi::status,
    library::{OpenLibrary, TensorRt, c_path},
};

/// The libraries that this process has loaded, each with the TensorRT that knows its plug-ins and stays open for them.
static LOADED: Mutex<Vec<(PathBuf, Arc<OpenLibrary>)>> = Mutex::new(Vec::new());

/// Bytes of an ELF header up to its machine.
const HEADER: usize = 20;
/// The values of `e_machine` that boards and workstations have (elf.h), with Rust's names.
const MACHINES: [(u16, &str); 2] = [(62, "x86_64"), (183, "aarch64")];
/// `e_type` of a shared library.
const SHARED_LIBRARY: u16 = 3;

/// Why a library with plug-ins cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PluginLibraryError {
    /// The file is missing or cannot be read.
    #[error("the plug-in library {} cannot be read; hint: tensorrt_plugins names files below the scratch directory", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is not a shared library, so it has no TensorRT plug-ins", path.display())]
    NotALibrary {
        /// The file.
        path: PathBuf,
    },
    /// The library is for another processor.
    #[error("the plug-in library {} is for {found}, but this machine is {}; hint: compile it for this machine", path.display(), consts::ARCH)]
    OtherMachine {
        /// The file.
        path: PathBuf,
        /// The library's processor.
        found: String,
    },
    /// The dynamic loader or TensorRT rejects the library.
    #[error("the plug-in library {} cannot be loaded: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The loader's or TensorRT's message.
        reason: String,
    },
}

impl TensorRt {
    /// Loads a library with plug-ins, for engines that are built or loaded afterwards. It stays loaded until the process ends.
    ///
    /// # Errors
    /// [`PluginLibraryError`], which names the file.
    pub fn load_plugins(&self, path: &Path) -> Result<(), PluginLibraryError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        // TensorRT's registry refuses plug-ins that it has.
        if loaded.iter().any(|(known, _)| known == path) {
            return Ok(());
        }
        check_machine(path)?;
        let name = c_path(path);
        // SAFETY: the handle is open and the name outlives the call. The library is the user's choice.
        let result = unsafe { (self.library.functions.plugins_load)(self.library.handle, name.as_ptr()) };
        match result {
            status::OK => {
                loaded.push((path.to_owned(), Arc::clone(&self.library)));
                Ok(())
            }
            _ => Err(PluginLibraryError::Refused {
                path: path.to_owned(),
                reason: self.library.error(),
            }),
        }
    }
}

/// Returns the SHA-256 of each library, hexadecimal, for an engine's manifest.
///
/// # Errors
/// [`PluginLibraryError::Unreadable`].
pub fn plugin_hashes(libraries: &[PathBuf]) -> Result<Vec<String>, PluginLibraryError> {
    let hash = |path: &PathBuf| {
        let hashed = sha256_of_file(path).map_err(|source| PluginLibraryError::Unreadable {
            path: path.clone(),
            source,
        })?;
        Ok(hashed.hex())
    };
    libraries.iter().map(hash).collect()
}

/// Checks the file's ELF header, because the dynamic loader's messages about other files are not helpful.
fn check_machine(path: &Path) -> Result<(), PluginLibraryError> {
    let unreadable = |source| PluginLibraryError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut header = Vec::with_capacity(HEADER);
    let file = regular_file::open(path).map_err(unreadable)?;
    file.take(HEADER as u64)
        .read_to_end(&mut header)
        .map_err(unreadable)?;
    let number = |place: usize| Some(u16::from_le_bytes([*header.get(place)?, *header.get(place + 1)?]));
    // 64 bits, little-endian.
    let (Some(kind), Some(machine), true) = (number(16), number(18), header.starts_with(b"\x7fELF\x02\x01"))
    else {
        return Err(PluginLibraryError::NotALibrary {
            path: path.to_owned(),
        });
    };
    if kind != SHARED_LIBRARY {
        return Err(PluginLibraryError::NotALibrary {
            path: path.to_owned(),
        });
    }
    let known = MACHINES.iter().find(|(value, _)| *value == machine);
    match known {
        Some((_, name)) if *name == consts::ARCH => Ok(()),
        _ => Err(PluginLibraryError::OtherMachine {
            path: path.to_owned(),
            found: known.map_or_else(
                || format!("machine {machine} of ELF"),
                |(_, name)| (*name).to_owned(),
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// An ELF header of a shared library for `machine`.
    fn header(machine: u16) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        bytes.extend(SHARED_LIBRARY.to_le_bytes());
        bytes.extend(machine.to_le_bytes());
        bytes
    }

    #[test]
    fn foreign_plugin_libraries_are_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("libnms.so");
        let refused = |bytes: &[u8]| {
            fs::write(&file, bytes).unwrap();
            let error = check_machine(&file).err().map(|error| error.to_string());
            error.map(|text| text.replace(&file.display().to_string(), "FILE"))
        };
        let own = MACHINES.iter().find(|(_, name)| *name == consts::ARCH).unwrap();
        let other = MACHINES.iter().find(|(_, name)| *name != consts::ARCH).unwrap();
        assert_eq!(refused(&header(own.0)), None);
        let words = format!(
            "the plug-in library FILE is for {}, but this machine is {}; hint: compile it for this machine",
            other.1,
            consts::ARCH
        );
        assert_eq!(refused(&header(other.0)), Some(words));
        let foreign = refused(&header(243)).unwrap();
        assert!(foreign.contains("is for machine 243 of ELF"), "{foreign}");
        for bytes in [
            &b""[..],
            b"\x7fELF",
            b"an archive of no kind at all",
            &header(62)[..18],
        ] {
            let words = "FILE is not a shared library, so it has no TensorRT plug-ins";
            assert_eq!(refused(bytes).as_deref(), Some(words));
        }
        fs::remove_file(&file).unwrap();
        let missing = check_machine(&file).unwrap_err().to_string();
        assert!(missing.contains("libnms.so cannot be read; hint: "), "{missing}");
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("lib.so");
            fs::write(&file, bytes).unwrap();
            let _ = check_machine(&file);
        }
    }
}
