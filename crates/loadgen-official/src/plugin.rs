//! An opened plug-in, and the LoadGen that it makes.

use std::{path::Path, sync::Arc};

use regatta_loadgen::{
    load_gen::{LoadGen, LoadgenError, LoadgenIdentity, RunObserver},
    outcome::Outcome,
    request::RunRequest,
    sut::{QuerySampleLibrary, SystemUnderTest},
};

use crate::{build_info::BuildInfo, error::PluginError, face::Face, run::Run};

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

/// Where settings come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfSource {
    /// LoadGen reads conf files, its compiled-in one first.
    LoadGen,
    /// We read the request's confs and set every field.
    Request,
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

    fn run(
        &self,
        sut: &dyn SystemUnderTest,
        qsl: &dyn QuerySampleLibrary,
        request: &RunRequest,
        observer: &dyn RunObserver,
    ) -> Result<Outcome, LoadgenError> {
        let run = Run {
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
