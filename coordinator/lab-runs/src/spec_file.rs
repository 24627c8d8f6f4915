//! The specs of runs on disk: writes those of runs that begin together, and reads one back. The directory of all runs is not flushed.

use std::io;

use anyhow::Context as _;
use regatta_fsutil::{
    atomic_file::AtomicFile,
    parallel,
    regular_file::{self, MAX_DOCUMENT},
};

use regatta_lab_store::workspace::RunDir;

/// Writes each text as the spec of its run, and makes the run's directory. The results are in the order of the specs.
pub(super) fn write_specs(specs: &[(RunDir, &[u8])]) -> Vec<io::Result<()>> {
    parallel::for_each_file(specs, write)
}

/// Reads the exact bytes of a run's spec.
///
/// # Errors
/// Returns an error when the file is missing or cannot be read. Its text has a hint, because nothing here can make the file again.
pub(super) fn read_spec(dir: &RunDir) -> anyhow::Result<Vec<u8>> {
    let path = dir.spec();
    regular_file::read(&path, MAX_DOCUMENT).with_context(|| {
        format!(
            "{} cannot be read; hint: restore it from a copy of the workspace, or give the run up: `regatta runs give-up`",
            path.display()
        )
    })
}

fn write((dir, text): &(RunDir, &[u8])) -> io::Result<()> {
    dir.make()?;
    AtomicFile::new(&dir.spec()).write(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use regatta_types::RunId;

    use super::*;
    use regatta_lab_store::workspace::Workspace;

    #[test]
    fn each_run_gets_its_own_spec_and_an_error_is_that_of_its_run() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(directory.path(), "schema = 1\n").unwrap();
        let runs: Vec<RunId> = (0..100).map(|_| RunId::now()).collect();
        let texts: Vec<String> = runs.iter().map(ToString::to_string).collect();
        fs::create_dir_all(workspace.runs()).unwrap();
        // A file where a run's directory should be.
        fs::write(workspace.run(runs[41]).path(), "").unwrap();
        let specs: Vec<(RunDir, &[u8])> = runs
            .iter()
            .zip(&texts)
            .map(|(run, text)| (workspace.run(*run), text.as_bytes()))
            .collect();
        let written = write_specs(&specs);
        for (index, ((dir, text), written)) in specs.iter().zip(&written).enumerate() {
            assert_eq!(written.is_err(), index == 41, "{index}: {written:?}");
            if written.is_ok() {
                assert_eq!(fs::read(dir.spec()).unwrap(), *text);
            }
        }
    }
}
