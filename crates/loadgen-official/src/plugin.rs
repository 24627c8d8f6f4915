//! A loaded plug-in, and the LoadGen in it.

use std::{path::Path, sync::Arc};

use regatta_loadgen::{
    check::SeriesCheck,
    effective::LibraryCounts,
    load_gen::{LoadGen, LoadgenError, LoadgenIdentity, RunObserver},
    outcome::Outcome,
    request::{ConfText, RunRequest},
    rng::RngAbi,
    sut::{QuerySampleLibrary, SystemUnderTest},
};

use crate::{
    build_info::BuildInfo, conf::ConfSource, error::PluginError, ffi::PluginFunctions, footprint,
    ignored_audit_keys, run::Run,
};

/// A plug-in. It stays loaded until the process ends.
#[derive(Debug, Clone)]
pub struct Plugin {
    functions: Arc<PluginFunctions>,
    build_info: BuildInfo,
}

impl Plugin {
    /// Loads a plug-in.
    ///
    /// # Errors
    /// When the file cannot be loaded, is not a plug-in, or has another version of the C interface.
    pub fn open(path: &Path) -> Result<Self, PluginError> {
        let functions = PluginFunctions::load(path)?;
        let build_info = serde_json::from_slice(functions.build_info().to_bytes()).map_err(|source| {
            PluginError::BuildInfo {
                path: path.to_owned(),
                source,
            }
        })?;
        Ok(Self {
            functions: Arc::new(functions),
            build_info,
        })
    }

    /// Returns the build information.
    #[must_use]
    pub const fn build_info(&self) -> &BuildInfo {
        &self.build_info
    }

    /// Returns the compiled-in `mlperf.conf`; `None` in LoadGens without one.
    #[must_use]
    pub fn mlperf_conf(&self) -> Option<String> {
        self.functions
            .mlperf_conf()
            .map(|text| text.to_string_lossy().into_owned())
    }

    /// Returns this LoadGen as the rules require it, with the compiled-in `mlperf.conf`. A request's own `mlperf_conf` must result in the
    /// same settings, or the run is refused.
    #[must_use]
    pub fn loadgen(&self) -> OfficialLoadGen {
        OfficialLoadGen {
            plugin: self.clone(),
            source: ConfSource::LoadGen,
        }
    }

    /// Returns this LoadGen with every setting from the request, regardless of the compiled-in conf. It is for comparing LoadGens, never
    /// for a submission.
    #[must_use]
    pub fn loadgen_as_requested(&self) -> OfficialLoadGen {
        OfficialLoadGen {
            plugin: self.clone(),
            source: ConfSource::Request,
        }
    }
}

/// The MLCommons LoadGen of one plug-in.
///
/// It issues from its own thread, which inherits affinity and priority from the caller's. Of a request's issue settings it honours the
/// stall timeout and the timing request. It always sleeps while it waits.
#[derive(Debug, Clone)]
pub struct OfficialLoadGen {
    plugin: Plugin,
    source: ConfSource,
}

impl LoadGen for OfficialLoadGen {
    fn identity(&self) -> LoadgenIdentity {
        let built = &self.plugin.build_info;
        LoadgenIdentity {
            name: "mlcommons-loadgen".to_owned(),
            version: built.loadgen_version.clone(),
            revision: built.git_revision.clone(),
            rng_abi: built.rng_abi.clone(),
        }
    }

    fn check(&self, request: &RunRequest, library: LibraryCounts) -> Result<(), LoadgenError> {
        ignored_audit_keys::refuse(&self.plugin.build_info.loadgen_version, request)?;
        let mut request = request.clone();
        if let (ConfSource::LoadGen, Some(text)) = (self.source, self.plugin.mlperf_conf()) {
            request.mlperf_conf = Some(ConfText::new("the compiled-in mlperf.conf", text));
        }
        let resolved = request.resolve().map_err(LoadgenError::Conf)?;
        // The size of a run does not depend on the selected samples.
        SeriesCheck::new(RngAbi::default(), footprint::bytes).run(&resolved, library)
    }

    fn run(
        &self,
        sut: &dyn SystemUnderTest,
        qsl: &dyn QuerySampleLibrary,
        request: &RunRequest,
        observer: &dyn RunObserver,
    ) -> Result<Outcome, LoadgenError> {
        let counts = library_counts(qsl, request)?;
        self.check(request, counts)?;
        let run = Run {
            counts,
            functions: &self.plugin.functions,
            source: self.source,
            identity: self.identity(),
            sut,
            qsl,
            request,
            observer,
        };
        run.run()
    }
}

/// Returns the sample counts that the library reports.
fn library_counts(qsl: &dyn QuerySampleLibrary, request: &RunRequest) -> Result<LibraryCounts, LoadgenError> {
    let counts = LibraryCounts {
        total: qsl.total_sample_count() as u64,
        performance: qsl.performance_sample_count() as u64,
    };
    if counts.total == 0 || counts.performance == 0 {
        let problem =
            "the sample library reports no samples, on which the official LoadGen crashes".to_owned();
        return Err(LoadgenError::Settings {
            scenario: request.scenario,
            problem,
        });
    }
    Ok(counts)
}
