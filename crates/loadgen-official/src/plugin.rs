//! An opened plug-in, and the LoadGen that it makes.

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

use crate::{build_info::BuildInfo, conf::ConfSource, error::PluginError, face::Face, footprint, run::Run};

/// A plug-in. It stays loaded until the process ends.
#[derive(Debug, Clone)]
pub struct Plugin {
    face: Arc<Face>,
    build_info: BuildInfo,
}

impl Plugin {
    /// Loads a plug-in.
    ///
    /// # Errors
    /// When it cannot be loaded, is none, or has another version of the C face.
    pub fn open(path: &Path) -> Result<Self, PluginError> {
        let face = Face::load(path)?;
        let build_info = serde_json::from_slice(face.build_info().to_bytes()).map_err(|source| {
            PluginError::BuildInfo {
                path: path.to_owned(),
                source,
            }
        })?;
        Ok(Self {
            face: Arc::new(face),
            build_info,
        })
    }

    /// How it was built.
    #[must_use]
    pub const fn build_info(&self) -> &BuildInfo {
        &self.build_info
    }

    /// The `mlperf.conf` that is compiled in; `None` in LoadGens that have none.
    #[must_use]
    pub fn mlperf_conf(&self) -> Option<String> {
        self.face
            .mlperf_conf()
            .map(|text| text.to_string_lossy().into_owned())
    }

    /// This LoadGen as the rules want it: with the `mlperf.conf` that is compiled in. A request's own `mlperf_conf` must
    /// come to the same settings, or the run is refused.
    #[must_use]
    pub fn loadgen(&self) -> OfficialLoadGen {
        OfficialLoadGen {
            plugin: self.clone(),
            source: ConfSource::LoadGen,
        }
    }

    /// This LoadGen with every setting taken from the request, whatever conf is compiled in: for comparing LoadGens, never
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
/// It issues from a thread of its own, which inherits affinity and priority from the caller's. Of a request's issue
/// settings it honours the stall timeout.
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
        let mut request = request.clone();
        if let (ConfSource::LoadGen, Some(text)) = (self.source, self.plugin.mlperf_conf()) {
            request.mlperf_conf = Some(ConfText::new("the compiled-in mlperf.conf", text));
        }
        let resolved = request.resolve().map_err(LoadgenError::Conf)?;
        // Which samples are drawn has no part in whether a run fits.
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
            face: &self.plugin.face,
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

/// What the library says of itself.
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
