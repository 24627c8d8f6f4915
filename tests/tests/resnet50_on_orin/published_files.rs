//! The files of a test as their publishers have them: archives and checksums.

use std::{path::Path, process::Command};

use regatta_tests::succeed_output;
use sha2::{Digest as _, Sha256};

/// Returns a checksum as benchmarks' files have it.
pub(crate) fn sha256(content: &[u8]) -> String {
    let digits = Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    format!("sha256:{digits}")
}

/// Makes or extends an archive of files in a directory.
pub(crate) fn tar(how: &str, archive: &Path, directory: &Path, names: &[String]) {
    let _ = succeed_output(
        Command::new("tar")
            .arg(how)
            .arg(archive)
            .arg("-C")
            .arg(directory)
            .args(names),
    );
}
