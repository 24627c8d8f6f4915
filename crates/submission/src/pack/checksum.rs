//! SHA-1 of a package, in the line that `sha1sum` prints. It names a file, it protects nothing.

use std::{
    io::{self, Read},
    path::Path,
};

use sha1::{Digest as _, Sha1};

use super::PackError;
use crate::files::{At, FileError, buffered, hexadecimal, open, read_small};

/// The SHA-1 of a file, in lower-case hexadecimal, and its length.
pub(super) fn sha1(path: &Path) -> Result<(String, u64), FileError> {
    let hash = || {
        let mut input = buffered(open(path)?);
        let mut block = vec![0; 1 << 16];
        let (mut context, mut length) = (Sha1::new(), 0);
        loop {
            match input.read(&mut block) {
                Ok(0) => return Ok((hexadecimal(context.finalize().as_ref()), length)),
                Ok(count) => {
                    context.update(block.get(..count).unwrap_or_default());
                    length += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    hash().at("read", path)
}

/// What `sha1sum` prints when it is called where the package lies.
pub(super) fn line(sha1: &str, tarball: &Path) -> String {
    let name = tarball.file_name().unwrap_or_default().to_string_lossy();
    format!("{sha1}  {name}\n")
}

/// The SHA-1 that a checksum file states.
pub(super) fn stated(path: &Path) -> Result<String, PackError> {
    let text = read_small(path, 1 << 16)?;
    let word = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    match std::str::from_utf8(word) {
        Ok(word) if word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Ok(word.to_ascii_lowercase())
        }
        _ => Err(PackError::ChecksumFile {
            path: path.to_owned(),
        }),
    }
}
