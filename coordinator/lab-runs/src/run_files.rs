//! The files of a run that devices download from the coordinator: its model, its samples in the form that the run uses, and other assets.

use std::path::PathBuf;

use regatta_lab_net::assets;
use regatta_lab_store::{
    self as store, RunDraft, Store,
    workspace::{Config, Workspace},
};
use regatta_types::documents::{RunSpec, RunTask};

use super::{form, int8_scales::select_calibration, resolve_error::ResolveError};

/// The files that a run needs, which devices may get from here.
pub struct RunFiles<'a> {
    store: &'a Store,
    config: &'a Config,
    served: Vec<String>,
    scratch: PathBuf,
}

impl<'a> RunFiles<'a> {
    /// Reads which assets the workspace serves.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn read(workspace: &'a Workspace, store: &'a Store) -> store::Result<Self> {
        Ok(Self {
            store,
            config: workspace.config(),
            served: store
                .assets()
                .all()?
                .into_iter()
                .map(|row| row.asset.path)
                .collect(),
            scratch: workspace.scratch(),
        })
    }

    /// Returns the paths of a run's model and samples that no asset has. Devices need their own files there.
    pub fn not_served(&self, spec: &RunSpec) -> Vec<String> {
        if !spec.engine.kind.computes() {
            return Vec::new();
        }
        let is_missing = |place: &String| !self.served.iter().any(|path| assets::holds(path, place));
        assets::places(spec).into_iter().filter(is_missing).collect()
    }

    /// Selects the form of a run's samples, and names its assets. `requested` are assets besides its benchmark's files.
    ///
    /// # Errors
    /// Returns [`ResolveError`] when devices cannot get them.
    pub(super) fn add_to(&self, draft: &mut RunDraft, requested: &[String]) -> Result<(), ResolveError> {
        // A model server has no samples.
        if draft.spec.task != RunTask::ModelServer {
            let is_asset = |place: &str| self.served.iter().any(|path| assets::holds(path, place));
            form::select_sample_form(&mut draft.spec, &is_asset, &self.scratch)?;
            select_calibration(&mut draft.spec, &is_asset, &self.scratch)?;
        }
        Ok(assets::name_in(
            &mut draft.spec,
            requested,
            self.store,
            self.config,
        )?)
    }
}
