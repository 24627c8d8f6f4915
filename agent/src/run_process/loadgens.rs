//! Selection of the LoadGen of a run.

use regatta_loadgen::{NativeLoadGen, load_gen::LoadGen};
use regatta_loadgen_official::{Plugin, PluginError, SearchPath};
use regatta_types::{benchmark::Benchmark, documents::LoadgenChoice};

/// The LoadGen of a run.
pub(crate) struct ChosenLoadgen {
    pub(crate) loadgen: Box<dyn LoadGen>,
    /// The LoadGen's built-in `mlperf.conf`. `None` if it uses the run's file.
    pub(crate) own_mlperf_conf: Option<String>,
    /// Whether this is the native LoadGen.
    pub(crate) is_native: bool,
}

/// Returns the requested LoadGen. Loads the plug-in of the official one.
///
/// The official LoadGen uses its own `mlperf.conf`, as a submission requires. The values of a benchmark that cannot be
/// submitted are not in any official file. For such a benchmark, the official LoadGen uses the run's file.
///
/// # Errors
/// When the plug-in is missing or cannot be used.
pub(crate) fn find(choice: &LoadgenChoice, benchmark: &Benchmark) -> Result<ChosenLoadgen, PluginError> {
    let LoadgenChoice::Official { revision } = choice else {
        return Ok(ChosenLoadgen {
            loadgen: Box::new(NativeLoadGen),
            own_mlperf_conf: None,
            is_native: true,
        });
    };
    let plugin = Plugin::open(&SearchPath::from_environment().find(revision.as_deref())?)?;
    if benchmark.not_submittable.is_some() {
        return Ok(ChosenLoadgen {
            loadgen: Box::new(plugin.loadgen_as_requested()),
            own_mlperf_conf: None,
            is_native: false,
        });
    }
    Ok(ChosenLoadgen {
        own_mlperf_conf: plugin.mlperf_conf(),
        is_native: false,
        loadgen: Box::new(plugin.loadgen()),
    })
}
