//! The model server of a run for a client elsewhere: it is started with the engine settings, and watched until the coordinator stops it.

use std::{path::Path, thread, time::Duration};

use regatta_engines::ModelServer;
use regatta_types::documents::RunSpec;

use super::run_output::RunOutput;
use crate::exit::Failure;

/// The pause between two looks at the server and at the request to stop it.
const PAUSE: Duration = Duration::from_millis(200);

/// Starts the server, and waits until it is ready.
///
/// # Errors
/// [`Failure`] when it cannot be started.
pub(super) fn start(
    spec: &RunSpec,
    run_output: &RunOutput,
    scratch: Option<&Path>,
) -> Result<ModelServer, Failure> {
    ModelServer::start(&spec.engine.settings, scratch, &run_output.files())
        .map_err(|error| Failure::could_not(anyhow::Error::from(error)))
}

/// Waits until the coordinator stops the server.
///
/// # Errors
/// [`Failure`] when the server has ended by itself.
pub(super) fn wait_until_stopped(server: &ModelServer, run_output: &RunOutput) -> Result<(), Failure> {
    while !run_output.is_server_stop_requested() {
        server
            .check_runs()
            .map_err(|error| Failure::could_not(anyhow::Error::from(error)))?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Stops the server. Returns warnings about it.
///
/// # Errors
/// [`Failure`] when it was started again while it served.
pub(super) fn stop(server: ModelServer) -> Result<Vec<String>, Failure> {
    server
        .stop()
        .map_err(|error| Failure::could_not(anyhow::Error::from(error)))
}
