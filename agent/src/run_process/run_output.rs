//! The run's directory. It contains `spec.json`. Everything in `files/` becomes evidence.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use regatta_types::documents::{Attempt, ConfTexts, end_reason};

/// The file beside the spec by which the daemon asks for the end of the run's model server.
pub(crate) const STOP_SERVER: &str = "stop-server";

/// The directory into which the run process writes the run's files.
#[derive(Debug, Clone)]
pub(crate) struct RunOutput {
    root: PathBuf,
}

impl RunOutput {
    /// Returns the directory that contains the spec.
    pub(crate) fn of_spec(spec: &Path) -> Self {
        Self {
            root: spec.parent().map(Path::to_owned).unwrap_or_default(),
        }
    }

    /// Returns the directory for logs and configuration files.
    pub(crate) fn files(&self) -> PathBuf {
        self.root.join("files")
    }

    /// Returns whether the daemon asks for the end of the model server.
    pub(crate) fn is_server_stop_requested(&self) -> bool {
        self.root.join(STOP_SERVER).exists()
    }

    /// Creates `files/` and writes the configuration files byte for byte from the spec.
    ///
    /// # Errors
    /// When the directory or a file cannot be written.
    pub(crate) fn lay_out(&self, conf: &ConfTexts) -> anyhow::Result<()> {
        let files = self.files();
        fs::create_dir_all(&files)
            .with_context(|| format!("the directory {} cannot be created", files.display()))?;
        let texts = [
            ("mlperf.conf", Some(&conf.mlperf_conf)),
            ("user.conf", Some(&conf.user_conf)),
        ];
        for (name, text) in texts
            .into_iter()
            .chain([("audit.config", conf.audit_config.as_ref())])
        {
            let Some(text) = text else { continue };
            let path = files.join(name);
            write_durably(&path, text.as_bytes()).with_context(|| cannot_write(&path))?;
        }
        Ok(())
    }

    /// Replaces the spec's `mlperf.conf` with the one in effect. A submission must contain the LoadGen's built-in file
    /// unmodified.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn keep_mlperf_conf(&self, text: &str) -> anyhow::Result<()> {
        let path = self.files().join("mlperf.conf");
        write_durably(&path, text.as_bytes()).with_context(|| cannot_write(&path))
    }

    /// Flushes all files of the run. This precedes the verdict, so that a power cut cannot leave a verdict without
    /// logs.
    ///
    /// # Errors
    /// When a file cannot be flushed. A power cut may then lose logged data.
    pub(crate) fn flush(&self) -> anyhow::Result<()> {
        let files = self.files();
        flush_directory(&files).with_context(|| format!("{} {}", files.display(), end_reason::UNFLUSHED))
    }

    /// Writes `attempt.json` atomically and durably. The daemon reads it even if this process dies.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write_attempt(&self, attempt: &Attempt) -> anyhow::Result<()> {
        let files = self.files();
        let (path, draft) = (files.join("attempt.json"), self.root.join("attempt.json.part"));
        let mut json = serde_json::to_vec_pretty(attempt)?;
        json.push(b'\n');
        write_durably(&draft, &json)
            .and_then(|()| fs::rename(&draft, &path))
            .and_then(|()| File::open(&files)?.sync_all())
            .inspect_err(|_| {
                // A partial file would only take space on a full disk.
                let _ = fs::remove_file(&draft);
            })
            .with_context(|| cannot_write(&path))
    }
}

fn flush_directory(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(path)?.sync_all()
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn cannot_write(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}
