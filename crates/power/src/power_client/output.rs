//! The client's directories: checked before the session begins, so that none is lost at its end.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{error::ClientError, options::ClientOptions};
use crate::protocol::{file_error::FileError, results::DIRECTORIES, session_log::SessionLog};

/// The directory of the sessions, which can be written.
pub(super) struct Output {
    directory: PathBuf,
    into_output: bool,
}

impl Output {
    /// Checks the directories, removes LoadGen's logs if the user wants it, and makes the output's directory.
    pub(super) fn prepare(options: &ClientOptions, log: &SessionLog) -> Result<Self, ClientError> {
        let (logs, output) = (resolved(&options.logs)?, resolved(&options.output)?);
        if output.starts_with(&logs) {
            return Err(ClientError::Nested { output, logs });
        }
        if options.remove_logs && logs.exists() {
            let here = std::env::current_dir().map_err(FileError::at("read", Path::new(".")))?;
            if here.starts_with(&logs) {
                return Err(ClientError::NotRemoved(logs));
            }
            log.warn(&format!("{} is removed", logs.display()));
            fs::remove_dir_all(&logs).map_err(FileError::at("remove", &logs))?;
        }
        match fs::create_dir(&output) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(FileError::at("make", &output)(error).into());
            }
            _ => {}
        }
        if options.into_output {
            let taken = DIRECTORIES
                .map(|name| output.join(name))
                .into_iter()
                .find(|path| path.exists());
            if let Some(path) = taken {
                return Err(ClientError::Exists(path));
            }
        }
        // A directory that cannot be written is found now, and not after the first run.
        let probe = output.join(format!(".regatta-power-client-{}", std::process::id()));
        fs::write(&probe, "probe").map_err(FileError::at("write", &probe))?;
        fs::remove_file(&probe).map_err(FileError::at("remove", &probe))?;
        Ok(Self {
            directory: output,
            into_output: options.into_output,
        })
    }

    /// Makes the directories of a session. Returns the session's.
    pub(super) fn begin_session(&self, name: &str) -> Result<PathBuf, ClientError> {
        let session = match self.into_output {
            true => self.directory.clone(),
            false => {
                let path = self.directory.join(name);
                fs::create_dir(&path).map_err(FileError::at("make", &path))?;
                path
            }
        };
        // The server's files are written there as well.
        for name in DIRECTORIES {
            let path = session.join(name);
            fs::create_dir(&path).map_err(FileError::at("make", &path))?;
        }
        Ok(session)
    }
}

/// The absolute path, without links as far as it exists.
fn resolved(path: &Path) -> Result<PathBuf, ClientError> {
    let absolute = std::path::absolute(path).map_err(FileError::at("read", path))?;
    let existing = absolute.ancestors().find(|ancestor| ancestor.exists());
    let existing = existing.unwrap_or(Path::new("/"));
    let real = existing.canonicalize().map_err(FileError::at("read", existing))?;
    let rest = absolute.strip_prefix(existing).unwrap_or(Path::new(""));
    Ok(match rest.as_os_str().is_empty() {
        true => real,
        false => real.join(rest),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn options(directory: &Path, logs: &str, output: &str) -> ClientOptions {
        ClientOptions {
            address: String::new(),
            port: 0,
            ntp: String::new(),
            workload: String::new(),
            logs: directory.join(logs),
            output: directory.join(output),
            into_output: true,
            label: String::new(),
            remove_logs: false,
            stop_server: false,
            manual_ranges: None,
        }
    }

    fn prepare(options: &ClientOptions) -> Result<Output, ClientError> {
        Output::prepare(options, &SessionLog::new("test", &(Arc::new(|_: &str| {}) as _)))
    }

    #[test]
    fn directories_must_not_contain_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("logs")).unwrap();
        std::os::unix::fs::symlink(root.join("logs"), root.join("link")).unwrap();
        for (logs, output) in [
            ("logs", "logs"),
            ("logs", "logs/out"),
            ("link", "logs/out"),
            ("logs", "link/out"),
        ] {
            let prepared = prepare(&options(root, logs, output));
            assert!(
                matches!(prepared, Err(ClientError::Nested { .. })),
                "{logs} {output}"
            );
        }
        assert!(prepare(&options(root, "logs", "out")).is_ok());
    }

    #[test]
    fn a_session_is_never_mixed_with_another() {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path(), "logs", "out");
        let output = prepare(&options).unwrap();
        output.begin_session("a").unwrap();
        assert!(matches!(prepare(&options), Err(ClientError::Exists(_))));
        options.into_output = false;
        let output = prepare(&options).unwrap();
        assert!(output.begin_session("a").unwrap().ends_with("out/a"));
        assert!(matches!(output.begin_session("a"), Err(ClientError::File(_))));
    }

    #[test]
    fn logs_are_removed_only_on_request() {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path(), "logs", "out");
        fs::create_dir_all(directory.path().join("logs/below")).unwrap();
        prepare(&options).unwrap();
        assert!(directory.path().join("logs").exists());
        options.remove_logs = true;
        prepare(&options).unwrap();
        assert!(!directory.path().join("logs").exists());
        options.logs = PathBuf::from("/");
        options.output = directory.path().join("out2");
        // Everything is below the root.
        assert!(matches!(prepare(&options), Err(ClientError::Nested { .. })));
    }
}
