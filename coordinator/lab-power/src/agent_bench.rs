//! `regatta-agent bench` as the workload of a rehearsal: LoadGen without an engine behind it, twice.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use regatta_power::session::{Part, Workload, WorkloadError};
use regatta_text::quote_for_shell;

/// A steady load that any machine holds, with enough queries in two seconds for early stopping.
const USER_CONF: &str = "*.Server.target_qps = 500\n*.Server.target_latency = 1000\n";

/// The workload of a rehearsal.
pub struct AgentBench {
    command: String,
    logs: PathBuf,
}

impl AgentBench {
    /// Writes the conf files into `directory`, and composes the command for runs of this duration.
    pub fn lay_out(directory: &Path, agent: &Path, mlperf_conf: &str, duration: &str) -> io::Result<Self> {
        let logs = directory.join("loadgen");
        let confs = [("mlperf.conf", mlperf_conf), ("user.conf", USER_CONF)];
        for (name, text) in confs {
            fs::write(directory.join(name), text)?;
        }
        let path = |path: &Path| quote_for_shell(&path.display().to_string());
        let command = format!(
            "{} bench --engine null --benchmark rehearsal --scenario Server --mode PerformanceOnly --total-samples 100 \
             --performance-samples 100 --mlperf-conf {} --user-conf {} --duration {} --log-dir {}",
            path(agent),
            path(&directory.join("mlperf.conf")),
            path(&directory.join("user.conf")),
            quote_for_shell(duration),
            path(&logs),
        );
        Ok(Self { command, logs })
    }
}

impl AgentBench {
    /// Returns the directory of LoadGen's logs.
    pub fn logs(&self) -> &Path {
        &self.logs
    }
}

impl Workload for AgentBench {
    fn command(&self) -> String {
        self.command.clone()
    }

    fn follow(&mut self, _part: Part) -> Result<Option<String>, WorkloadError> {
        Ok(None)
    }
}
