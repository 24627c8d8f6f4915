//! NVIDIA's `trtexec`, from the directory of TensorRT's libraries or from PATH.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};

use super::agent::{library_path, message};
use crate::outcome::Kit;

/// Returns the program's path, if it is installed.
pub(crate) fn find(kit: &Kit) -> Option<PathBuf> {
    let tensorrt = kit.tensorrt.as_deref()?;
    let beside = [tensorrt.to_owned(), tensorrt.join("bin"), tensorrt.join("../bin")];
    let path = env::var_os("PATH").unwrap_or_default();
    beside
        .into_iter()
        .chain(env::split_paths(&path))
        .map(|directory| directory.join("trtexec"))
        .find(|program| program.is_file())
}

/// Measures an engine's latency with a batch of one sample in milliseconds: the 90th percentile of the host latency.
pub(crate) fn latency(kit: &Kit, program: &Path, plan: &Path, shape: &str) -> anyhow::Result<f64> {
    let mut command = Command::new(program);
    command.arg(format!("--loadEngine={}", plan.display())).args([
        "--useCudaGraph",
        "--useSpinWait",
        "--percentile=90",
        "--duration=5",
    ]);
    command.arg(format!("--shapes={shape}"));
    if let Some(tensorrt) = kit.tensorrt.as_deref().filter(|_| !kit.has_fakes) {
        command.env("LD_LIBRARY_PATH", library_path(tensorrt));
    }
    let output = command
        .output()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    ensure!(output.status.success(), "trtexec: {}", message(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    percentile(&text).context("trtexec printed no 90th percentile of its latency")
}

/// Parses the percentile from the latency line, which versions 8 to 11 print as `Latency: min = 0.5 ms, ..., percentile(90%) = 0.6 ms`.
fn percentile(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("] Latency: "))?;
    let (_, value) = line.split_once("percentile(90%) = ")?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn latency_is_read_from_trtexec_s_summary() {
        let text = "[11/28/2026-10:00:00] [I] === Performance summary ===\n\
            [11/28/2026-10:00:00] [I] Throughput: 1000 qps\n\
            [11/28/2026-10:00:00] [I] Latency: min = 0.5 ms, max = 2 ms, mean = 0.6 ms, median = 0.6 ms, percentile(90%) = 0.625 ms\n\
            [11/28/2026-10:00:00] [I] Enqueue Time: min = 0.1 ms, percentile(90%) = 0.2 ms\n";
        assert_eq!(super::percentile(text), Some(0.625));
        assert_eq!(super::percentile("[I] Latency: min = 0.5 ms"), None);
    }
}
