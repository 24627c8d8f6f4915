//! The reference accuracy script's own output, which `regatta accuracy --official` keeps beside a run.
//!
//! Staging checks that the output belongs to this run's log.
//!
//! ```text
//! <run>/accuracy/accuracy.txt    what the script printed, to the byte
//! <run>/accuracy/official.json   which script, over which log
//! ```

use std::path::{Path, PathBuf};

use regatta_fsutil::hash::sha256_hex;
use serde::{Deserialize, Serialize};

use regatta_submission_check::files::{FileError, read_small, replace, sha256};

/// The file name of the script's output.
pub const OUTPUT: &str = "accuracy.txt";
const PROVENANCE: &str = "official.json";
const MAX: u64 = 64 << 20;
const SCHEMA: u16 = 1;

/// The origin of a kept output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    schema: u16,
    /// The script's file name.
    pub script: String,
    /// The SHA-256 of the script, in hexadecimal.
    pub script_sha256: String,
    /// The SHA-256 of the accuracy log that the script read, in hexadecimal.
    pub log_sha256: String,
    /// The SHA-256 of the script's output, in hexadecimal.
    pub output_sha256: String,
}

/// Writes a script's output about a log, and its origin, to `directory`.
///
/// # Errors
/// Returns an error if the script or the log cannot be read, or if the directory cannot be written.
pub fn keep(directory: &Path, script: &Path, log: &Path, output: &[u8]) -> Result<Provenance, FileError> {
    use regatta_submission_check::files::At as _;
    let provenance = Provenance {
        schema: SCHEMA,
        script: script
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        script_sha256: sha256(script)?.0,
        log_sha256: sha256(log)?.0,
        output_sha256: sha256_hex(output),
    };
    std::fs::create_dir_all(directory).at("create", directory)?;
    let path = directory.join(PROVENANCE);
    let mut text = serde_json::to_vec_pretty(&provenance)
        .map_err(std::io::Error::other)
        .at("write", &path)?;
    text.push(b'\n');
    replace(&directory.join(OUTPUT), output)?;
    replace(&path, &text)?;
    Ok(provenance)
}

/// The output that a run's directory contains.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeptOutput {
    /// The script's output for this log.
    Output(PathBuf),
    /// No output.
    Nothing,
    /// An output that is for another log, was changed, or has no usable origin; the text has the reason.
    Other(&'static str),
}

/// Returns the output that was kept for a run's log, which has the SHA-256 `log_sha256`.
pub(super) fn kept(run: &Path, log_sha256: &str) -> Result<KeptOutput, FileError> {
    let directory = run.join("accuracy");
    let path = directory.join(OUTPUT);
    if !path.is_file() {
        return Ok(KeptOutput::Nothing);
    }
    let provenance = directory.join(PROVENANCE);
    if !provenance.is_file() {
        return Ok(KeptOutput::Other("its origin is not known"));
    }
    let Ok(provenance) = serde_json::from_slice::<Provenance>(&read_small(&provenance, MAX)?) else {
        return Ok(KeptOutput::Other("its origin cannot be parsed"));
    };
    if provenance.log_sha256 != log_sha256 {
        return Ok(KeptOutput::Other("it is of another log"));
    }
    if provenance.output_sha256 != sha256(&path)?.0 {
        return Ok(KeptOutput::Other("it was changed after the script wrote it"));
    }
    Ok(KeptOutput::Output(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_output_is_the_scripts_own_and_of_this_log() {
        let run = tempfile::tempdir().unwrap();
        let at = |name: &str| run.path().join(name);
        fs::write(at("script.py"), "print('accuracy=1')").unwrap();
        fs::write(at("log.json"), "[]").unwrap();
        let log_sha256 = sha256(&at("log.json")).unwrap().0;
        assert_eq!(kept(run.path(), &log_sha256).unwrap(), KeptOutput::Nothing);

        let directory = at("accuracy");
        let provenance = keep(&directory, &at("script.py"), &at("log.json"), b"accuracy=1\n").unwrap();
        assert_eq!(provenance.script, "script.py");
        assert_eq!(
            kept(run.path(), &log_sha256).unwrap(),
            KeptOutput::Output(directory.join(OUTPUT))
        );
        assert!(matches!(kept(run.path(), "0a").unwrap(), KeptOutput::Other(_)));

        fs::write(directory.join(OUTPUT), "accuracy=99\n").unwrap();
        assert!(matches!(
            kept(run.path(), &log_sha256).unwrap(),
            KeptOutput::Other(_)
        ));
        fs::remove_file(directory.join(PROVENANCE)).unwrap();
        assert!(matches!(
            kept(run.path(), &log_sha256).unwrap(),
            KeptOutput::Other(_)
        ));
    }
}
