//! What a harness is set up for.

use std::path::Path;

use regatta_loadgen_conf::TestSettings;
use regatta_types::engine_settings::EngineSettings;
use regatta_types::{benchmark::Benchmark, documents::EngineKind};

/// What a harness is set up for.
#[derive(Debug, Clone, Copy)]
pub struct HarnessRequest<'a> {
    pub benchmark: &'a Benchmark,
    pub engine: EngineKind,
    /// The engine settings of the run.
    pub settings: &'a EngineSettings,
    /// LoadGen's settings after all conf files.
    pub test: &'a TestSettings,
    /// The directory of models and data.
    pub scratch: Option<&'a Path>,
    /// The directory of the run's files, for the output of programs that an engine starts.
    pub files: &'a Path,
    /// Whether the units' service times are measured and kept even if no policy needs them.
    pub learn: bool,
}
