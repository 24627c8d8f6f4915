//! SHA-1 of a session's files, which both descriptions have.

use std::{
    collections::BTreeMap,
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use regatta_fsutil::{hash::hex, regular_file};
use sha1::{Digest as _, Sha1};

use super::file_error::FileError;

const BLOCK: usize = 64 << 10;

/// The directories of a session.
pub(crate) const DIRECTORIES: [&str; 3] = ["power", "ranging", "run_1"];

/// Returns the SHA-1 of every file of a session by its path. Directories that do not exist have none.
pub(crate) fn hash_session(session: &Path) -> Result<BTreeMap<String, String>, FileError> {
    let mut hashes = BTreeMap::new();
    for directory in DIRECTORIES {
        let path = session.join(directory);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(FileError::at("read", &path))?,
        };
        for entry in entries {
            let file: PathBuf = entry.map_err(FileError::at("read", &path))?.path();
            let Some(name) = file.file_name().map(|name| name.to_string_lossy()) else {
                continue;
            };
            let hash = sha1_of_file(&file).map_err(FileError::at("read", &file))?;
            hashes.insert(format!("{directory}/{name}"), hash);
        }
    }
    Ok(hashes)
}

/// Returns the SHA-1 of a regular file of any length.
pub(crate) fn sha1_of_file(path: &Path) -> io::Result<String> {
    let mut file = regular_file::open(path)?;
    let mut hash = Sha1::new();
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hex(&hash.finalize())),
            length => hash.update(&block[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_session_have_their_hash() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("power")).unwrap();
        fs::write(directory.path().join("power/client.log"), "abc").unwrap();
        fs::write(directory.path().join("other"), "abc").unwrap();
        let hashes = hash_session(directory.path()).unwrap();
        // FIPS 180-2, appendix A.1.
        let expected = "a9993e364706816aba3e25717850c26c9cd0d89d";
        assert_eq!(
            hashes,
            BTreeMap::from([("power/client.log".to_owned(), expected.to_owned())])
        );
    }
}
