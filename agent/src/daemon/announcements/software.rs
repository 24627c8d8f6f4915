//! The software that a hello states: the hash of the running program, and the versions of the system software. Most are read once in a
//! process: the program cannot change, and JetPack changes with a boot. A Python environment with ONNX Runtime may change at any time. Each
//! run's `attempt.json` has the TensorRT or ONNX Runtime that the run loaded.

use std::{path::Path, sync::OnceLock};

use regatta_board::FactsReader;
use regatta_fsutil::hash::sha256_of_file;
use regatta_types::documents::SoftwareFacts;

use super::onnxruntime;

/// The running program, also after an upgrade has replaced its file.
const PROGRAM: &str = "/proc/self/exe";

/// Returns the software of this process and of its machine. Simulated devices share it.
pub(super) fn software_facts(machine: &FactsReader) -> SoftwareFacts {
    static FACTS: OnceLock<SoftwareFacts> = OnceLock::new();
    let read = || SoftwareFacts {
        agent_sha256: sha256_of_file(Path::new(PROGRAM))
            .inspect_err(|e| tracing::warn!("cannot hash the agent's executable: {e}"))
            .ok()
            .map(|program| program.hex()),
        ..machine.software()
    };
    SoftwareFacts {
        onnxruntime: onnxruntime::version(),
        ..FACTS.get_or_init(read).clone()
    }
}
