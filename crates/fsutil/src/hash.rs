//! SHA-256 of bytes and of complete files, and hexadecimal text. Formats that use SHA-1 or CRC compute those themselves.

use std::{
    io::{self, Read as _},
    path::Path,
};

use sha2::{Digest as _, Sha256};

use crate::regular_file;

/// Bytes read from a file at a time. Small, because devices share their memory with the GPU.
const BLOCK: usize = 64 * 1024;

/// Length and SHA-256 of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHash {
    /// The file's length in bytes.
    pub length: u64,
    /// SHA-256 of its content.
    pub sha256: [u8; 32],
}

impl FileHash {
    /// Returns the SHA-256 in lower-case hexadecimal.
    #[must_use]
    pub fn hex(&self) -> String {
        hex(&self.sha256)
    }
}

/// Hashes a regular file of any length, block by block.
///
/// # Errors
/// As [`regular_file::open`]; also when a read fails.
pub fn sha256_of_file(path: &Path) -> io::Result<FileHash> {
    let mut file = regular_file::open(path)?;
    let mut block = vec![0; BLOCK];
    let (mut hasher, mut length) = (Sha256::new(), 0);
    loop {
        match file.read(&mut block) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(block.get(..count).unwrap_or_default());
                length += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(FileHash {
        length,
        sha256: hasher.finalize().into(),
    })
}

/// Returns the SHA-256 of `bytes` in lower-case hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns `bytes` as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 15)]);
    }
    text
}

/// Returns the bytes of hexadecimal text in either case; `None` for an odd length or another character.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| u8::try_from(digit(high)? << 4 | digit(low)?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// FIPS 180-2, appendix B.1.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_file_and_its_bytes_have_the_standard_hash() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("abc");
        fs::write(&path, "abc").unwrap();
        let hash = sha256_of_file(&path).unwrap();
        assert_eq!((hash.length, hash.hex().as_str()), (3, ABC));
        assert_eq!(sha256_hex(b"abc"), ABC);
        let large = vec![7; 3 * BLOCK + 1];
        fs::write(&path, &large).unwrap();
        assert_eq!(sha256_of_file(&path).unwrap().hex(), sha256_hex(&large));
        assert!(sha256_of_file(directory.path()).is_err());
    }

    #[test]
    fn hexadecimal_text_is_read_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        assert_eq!(unhex("Ff"), Some(vec![255]));
        for wrong in ["f", "fg", "+1", "äb"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
