//! A model server for clients on other machines, which LoadGen does not use. It listens on all interfaces, with the arguments that its driver has
//! for clients, and leaves the same files as the server of a run.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
};

use regatta_types::engine_settings::EngineSettings;

use super::{
    LOG,
    driver::{CommandValues, ServerDriver},
    evidence::Evidence,
    named_model,
    run_server::RunServer,
    unavailable,
    watch::{self, ServerWatch},
};
use crate::EngineError;

/// A running model server for clients on other machines. It is stopped when this is dropped.
#[derive(Debug)]
pub struct ModelServer {
    watch: ServerWatch,
    description: String,
}

impl ModelServer {
    /// Starts the server of the settings `server` and `server_model`, and waits until it is ready and has answered its driver's probe. Writes
    /// `server.log` and `server.json` to `files`.
    ///
    /// # Errors
    /// [`EngineError::Settings`] for settings without a driver for clients or without a model, [`EngineError::Unavailable`] when the server
    /// does not become ready or its answer cannot be used.
    pub fn start(
        settings: &EngineSettings,
        scratch: Option<&Path>,
        files: &Path,
    ) -> Result<Self, EngineError> {
        let driver = ServerDriver::named(settings.server.as_deref()).and_then(ServerDriver::for_clients);
        let driver = driver.map_err(|error| EngineError::Settings(error.into()))?;
        if settings.server_address.is_some() {
            let excluded = "the setting `server_address` is for runs of LoadGen; hint: `regatta endpoints run --url` measures a server that runs";
            return Err(EngineError::Settings(excluded.into()));
        }
        let model = named_model(settings, scratch).ok_or_else(|| missing("server_model"))?;
        if !model.exists() {
            let missing = format!("the server's model {} does not exist", model.display());
            return Err(EngineError::Settings(missing.into()));
        }
        let context = settings.server_context.ok_or_else(|| missing("server_context"))?;
        let port = settings.server_port.ok_or_else(|| missing("server_port"))?;
        let values = CommandValues {
            model: &model,
            repository: None,
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
            context,
            parallel: settings.inference_streams.unwrap_or(1),
            max_tokens: context,
        };
        let server = RunServer::start(&driver, values, &files.join(LOG)).map_err(unavailable)?;
        let probe = driver.probe.as_ref();
        let probed = watch::check(&driver, &server, Some(&model), |connection| {
            probe.map_or(Ok(()), |probe| probe.check(connection, &model))
        });
        let loaded = probed.map_err(unavailable)?;
        let evidence = Evidence::of(&server, loaded.as_ref()).map_err(unavailable)?;
        let description = format!("{}: {}", driver.title, evidence.place());
        let watch = ServerWatch::begin(&driver, &Arc::new(server), evidence, files);
        Ok(Self {
            watch: watch.map_err(unavailable)?,
            description,
        })
    }

    /// Returns driver, program and model.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Checks that the server still runs.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] with its last lines when it has ended.
    pub fn check_runs(&self) -> Result<(), EngineError> {
        self.watch.server().check_runs().map_err(unavailable)
    }

    /// Stops the server after its clients. What it counted is added to `server.json`. Returns warnings about what could not be checked.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] when it has ended before or was started again meanwhile.
    pub fn stop(mut self) -> Result<Vec<String>, EngineError> {
        self.watch.end(None).map_err(unavailable)
    }
}

/// The coordinator sets all of them.
fn missing(setting: &str) -> EngineError {
    EngineError::Settings(format!("the setting `{setting}` is missing").into())
}
