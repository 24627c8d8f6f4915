//! Resolves the input of a command line or plan to drafts. [`regatta_lab_runs`] resolves each request.

use std::slice;

use regatta_catalogue::catalogue::Catalogue;

use crate::exit::Failure;
use regatta_lab_runs::{KnownRequest, ResolveError, RunFiles, RunRequestInput};
use regatta_lab_store::{DeviceRow, RunDraft, RunRequest, Store};
use regatta_lab_views::lookup;

/// Resolves the input to drafts, for each device one per mode and scenario. Without `devices`, they are for the device that the input names.
///
/// # Errors
/// Returns the failure of the first request that cannot become a run.
pub(crate) fn resolve(
    input: &RunRequestInput,
    devices: &[DeviceRow],
    catalogue: &Catalogue,
    files: &RunFiles<'_>,
    store: &Store,
) -> Result<Vec<RunDraft>, Failure> {
    let requests = input.requests().map_err(|error| unresolved(error.into()))?;
    let known = find_all(&requests, catalogue).map_err(unresolved)?;
    // The device is looked up last: an invalid request is an error for every device, and also without any.
    let named;
    let devices = match devices {
        [] => {
            named = lookup::device(store, input.device.as_deref())?;
            slice::from_ref(&named)
        }
        devices => devices,
    };
    let mut drafts = Vec::with_capacity(devices.len() * known.len());
    for device in devices {
        for request in &known {
            drafts.push(request.draft_with_files(device, files).map_err(unresolved)?);
        }
    }
    Ok(drafts)
}

fn find_all<'a>(
    requests: &'a [RunRequest],
    catalogue: &'a Catalogue,
) -> Result<Vec<KnownRequest<'a>>, ResolveError> {
    requests
        .iter()
        .map(|request| KnownRequest::find(request, catalogue))
        .collect()
}

/// Returns the failure of a command whose request cannot become a run.
pub(super) fn unresolved(error: ResolveError) -> Failure {
    let hint = error.hint();
    let failure = if error.is_of_the_lab() {
        Failure::from(error)
    } else {
        Failure::usage(error)
    };
    failure.optional_hint(hint)
}
