//! A run with a large log that has ended on the device and is not delivered yet. The tests of back-pressure and the throughput bench
//! deliver it.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use regatta_random::SplitMix64;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use serde_json::Value;

use crate::Lab;

/// The name of the large log.
pub const LARGE_LOG: &str = "mlperf_log_accuracy.json";

impl Lab {
    /// Starts a run, kills the device, and replaces LoadGen's accuracy log by `log`. The coordinator must be running. The device is not
    /// restarted. Returns the run's id.
    ///
    /// # Panics
    /// Panics when the run does not begin.
    #[must_use]
    pub fn leave_run(&mut self, log: &Path) -> String {
        self.start_device();
        self.wait_for_device();
        let run = self.request_run(&[
            "--engine",
            "sim",
            "--scenario",
            "SingleStream",
            "--duration",
            "600s",
        ]);
        self.wait_for_phase(&run, "running");
        if let Some(mut device) = self.device.take() {
            device.kill();
        }
        let run_dir = self.device_directory().join("state/runs").join(&run);
        kill_run_process(&run_dir);
        let large = run_dir.join("files").join(LARGE_LOG);
        let _ = fs::remove_file(&large);
        fs::hard_link(log, &large)
            .or_else(|_| fs::copy(log, &large).map(drop))
            .expect("the log is laid down");
        run
    }

    /// Returns whether the coordinator's store has a complete stream: flushed, with an equal hash, and recorded.
    #[must_use]
    pub fn is_whole(&self, run: &str, stream: &str) -> bool {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let store = Connection::open_with_flags(self.workspace().join("regatta.db"), flags);
        let whole = store.and_then(|store| {
            let query = "SELECT complete FROM streams WHERE run = ?1 AND name = ?2";
            store.query_row(query, [run, stream], |row| row.get(0)).optional()
        });
        matches!(whole, Ok(Some(true)))
    }

    /// Returns the coordinator's path of an incomplete file of a run.
    #[must_use]
    pub fn arriving(&self, run: &str, file: &str) -> PathBuf {
        self.workspace().join("runs").join(run).join("partial").join(file)
    }

    /// Returns the coordinator's path of a complete file of a run.
    #[must_use]
    pub fn delivered(&self, run: &str, file: &str) -> PathBuf {
        self.workspace().join("runs").join(run).join("files").join(file)
    }
}

fn kill_run_process(run_dir: &Path) {
    let job = fs::read(run_dir.join("job.json")).expect("the run's job");
    let job: Value = serde_json::from_slice(&job).expect("the job is JSON");
    if let Some(pid) = job["process"]["pid"].as_i64() {
        let _ = Command::new("kill")
            .args(["-KILL", "--", &format!("-{pid}")])
            .status();
    }
}

/// Writes a file of `bytes` bytes that resembles an accuracy log: numbered entries of hexadecimal noise.
///
/// # Errors
/// Returns an error when the file cannot be written.
pub fn write_accuracy_log(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let (mut random, mut written, mut number) = (SplitMix64::new(0), 0_u64, 0_u64);
    while written < bytes {
        let mut entry = format!(
            "{{ \"seq_id\" : {number}, \"qsl_idx\" : {}, \"data\" : \"",
            number % 50_000
        );
        for _ in 0..16 {
            entry.push_str(&format!("{:016X}", random.bits()));
        }
        entry.push_str("\" },\n");
        let left = usize::try_from(bytes - written)
            .unwrap_or(usize::MAX)
            .min(entry.len());
        file.write_all(&entry.as_bytes()[..left])?;
        written += left as u64;
        number += 1;
    }
    file.into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()
}
