//! From the LoadGen that is asked for to the one that runs.

use regatta_loadgen::{NativeLoadGen, load_gen::LoadGen};
use regatta_loadgen_official::{Plugin, PluginError, SearchPath};
use regatta_types::{benchmark::Benchmark, documents::LoadgenChoice};

/// The LoadGen of a run.
pub(crate) struct ChosenLoadgen {
    /// What drives the run.
    pub(crate) loadgen: Box<dyn LoadGen>,
    /// The `mlperf.conf` that it has built in and goes by; `None` where it goes by the run's own.
    pub(crate) own_mlperf_conf: Option<String>,
    /// Whether it is ours.
    pub(crate) is_native: bool,
}

/// Finds the LoadGen that is asked for; the official one's plug-in is loaded.
///
/// The official LoadGen goes by its own `mlperf.conf`, as a submission wants it. A benchmark that can never be submitted
/// has values that no official conf holds: for it the official LoadGen takes the run's conf.
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
