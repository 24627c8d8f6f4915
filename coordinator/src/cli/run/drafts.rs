//! Drafts the runs of requests, for every device that the command line selects. Either all requests become drafts, or the command fails.
//!
//! It queues nothing.

use std::path::Path;

use regatta_catalogue::catalogue::Catalogue;

use super::super::{
    device_availability::expect_available_or_force, resolve::resolve, target_devices::TargetDevices,
};
use crate::exit::Failure;
use regatta_lab_runs::{RunFiles, RunRequestInput};
use regatta_lab_store::{RunDraft, Store, workspace::Workspace};

/// Requests, and the devices that they are for.
pub(in crate::cli) struct DraftRequest<'a> {
    pub(in crate::cli) requests: &'a [RunRequestInput],
    /// The file that has the requests. Errors name it.
    pub(in crate::cli) plan: Option<&'a Path>,
    /// The devices. Without any, each request names its own.
    pub(in crate::cli) devices: &'a TargetDevices,
    /// Whether the runs may start on devices that take no runs.
    pub(in crate::cli) force: bool,
}

impl DraftRequest<'_> {
    /// Returns the drafts, in the order of the requests and then of the devices.
    ///
    /// # Errors
    /// Returns the failure of the first request that cannot become a run.
    pub(in crate::cli) fn drafts(
        &self,
        catalogue: &Catalogue,
        workspace: &Workspace,
        store: &Store,
    ) -> Result<Vec<RunDraft>, Failure> {
        let devices = self.devices.find(self.force, store)?;
        let files = RunFiles::read(workspace, store)?;
        let mut drafts = Vec::new();
        for (index, input) in self.requests.iter().enumerate() {
            let of_request = resolve(input, &devices, catalogue, &files, store);
            drafts.extend(of_request.map_err(|failure| match self.plan {
                Some(path) => failure.context(format!("{}: [[run]] number {}", path.display(), index + 1)),
                None => failure,
            })?);
        }
        expect_available_or_force(&mut drafts, self.force, store)?;
        Ok(drafts)
    }
}
