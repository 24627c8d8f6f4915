//! The model server of an endpoints run, when a device starts it: a run of the device that lasts as long as the client measures. The device signs
//! its log and sensor readings like those of any run.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::anyhow;
use regatta_catalogue::catalogue::Catalogue;
use regatta_endpoints::DeviceRun;
use regatta_lab_runs::{RunFiles, RunRequestInput, run_failure, vocabulary};
use regatta_lab_store::{StatePreset, SystemChoice};
use regatta_lab_views::lookup;
use regatta_text::HumanDuration;
use regatta_types::{
    EngineKind, RunId, Scenario,
    documents::{RunPhase, RunTask},
    engine_settings::EngineSettings,
};

use super::{collect::LabHandles, device_address};
use crate::{
    cli::{
        context::tell,
        device_availability::expect_available,
        device_watch::DeviceWatch,
        resolve::resolve,
        setting_flags::{Assignment, assignment, engine_settings},
        wait::expect_served,
    },
    exit::Failure,
};

/// The pause between two looks at the run.
const PAUSE: Duration = Duration::from_millis(200);
/// The port that the server listens on by default.
const DEFAULT_PORT: u16 = 8080;
/// The tokens that the server keeps by default: those of the reference's server.
const DEFAULT_CONTEXT: usize = 32_768;

/// Flags for a server that a device starts.
#[derive(Debug, clap::Args)]
pub(super) struct DeviceServerArgs {
    /// The device that starts the server [default: none, and --url names a server that runs]
    #[arg(long, value_name = "DEVICE", requires_all = ["server", "server_model"])]
    device: Option<String>,
    /// The server's driver, such as llama-cpp, or the path of a driver's file on the device
    #[arg(long, value_name = "DRIVER", requires = "device")]
    server: Option<String>,
    /// The file or directory that the server loads, below the scratch directory
    #[arg(long, value_name = "PATH", requires = "device")]
    server_model: Option<String>,
    /// Another engine setting of the server, such as server_port=9000 (see `regatta settings list --engine server`); can be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "device", value_parser = assignment)]
    server_set: Vec<Assignment>,
    /// The device's name or address in the network [default: the host of its deployment over SSH]
    #[arg(long, value_name = "HOST", requires = "device")]
    host: Option<String>,
    /// The state that the device is set to for the run [default: as-is]
    #[arg(long, value_name = "STATE", requires = "device", value_parser = vocabulary::state(), ignore_case = true)]
    state: Option<StatePreset>,
    /// Stop the server after this time, whatever happens to this command
    #[arg(long, value_name = "DURATION", requires = "device", default_value = "24h")]
    limit: HumanDuration,
}

impl DeviceServerArgs {
    /// Returns whether a device starts the server.
    pub(super) const fn is_used(&self) -> bool {
        self.device.is_some()
    }

    /// Starts the server, and waits until it is ready. `end` is set when the user ends the command.
    pub(super) fn start<'a>(
        &self,
        benchmark: &str,
        round: Option<&str>,
        catalogue: &Catalogue,
        lab: LabHandles<'a>,
        end: &AtomicBool,
    ) -> Result<DeviceServer<'a>, Failure> {
        let settings = self.settings()?;
        let device = lookup::device(lab.store, self.device.as_deref())?;
        expect_available(&device)?;
        let port = settings.server_port.unwrap_or(DEFAULT_PORT);
        let url = device_address::url(self.host.as_deref(), &device, port, lab.store)?;
        let input = RunRequestInput {
            benchmark: benchmark.to_owned(),
            scenario: vec![Scenario::SingleStream],
            round: round.map(str::to_owned),
            engine: Some(EngineKind::Server),
            system: Some(SystemChoice::None),
            set: settings,
            state: self.state.map(Into::into),
            limit: Some(self.limit),
            task: RunTask::ModelServer,
            ..RunRequestInput::default()
        };
        expect_served(lab.context, lab.workspace, "")?;
        let files = RunFiles::read(lab.workspace, lab.store)?;
        let devices = std::slice::from_ref(&device);
        let drafts = resolve(&input, devices, catalogue, &files, lab.store)?;
        let run = drafts.first().map(|draft| draft.spec.run);
        let run = run.ok_or_else(|| Failure::could_not("the device gets no run"))?;
        lab.store
            .all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.runs().request(draft)))?;
        let server = DeviceServer {
            lab,
            device: device.name,
            run,
            url,
            is_stopping: false,
        };
        server.wait_until_ready(end)?;
        Ok(server)
    }

    fn settings(&self) -> Result<EngineSettings, Failure> {
        let named = [("server", &self.server), ("server_model", &self.server_model)];
        let named = named
            .iter()
            .filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let further = self.server_set.iter().map(Assignment::as_pair);
        let mut settings = engine_settings(Some(EngineKind::Server), named.chain(further))?;
        if settings.server_address.is_some() {
            return Err(Failure::usage(anyhow!(
                "the setting `server_address` is for runs of LoadGen, and --device starts a server"
            ))
            .hint("--url measures a server that runs"));
        }
        settings.server_port.get_or_insert(DEFAULT_PORT);
        settings.server_context.get_or_insert(DEFAULT_CONTEXT);
        Ok(settings)
    }
}

/// A run of a device that serves a model. When this is dropped, the run is aborted unless its server was stopped.
pub(super) struct DeviceServer<'a> {
    lab: LabHandles<'a>,
    device: String,
    run: RunId,
    pub(super) url: String,
    is_stopping: bool,
}

impl DeviceServer<'_> {
    /// Returns the run as the document of the endpoints run has it before its end.
    pub(super) fn document(&self) -> DeviceRun {
        DeviceRun {
            device: self.device.clone(),
            run: self.run.to_string(),
            evidence_sha256: None,
            failure: None,
        }
    }

    fn wait_until_ready(&self, end: &AtomicBool) -> Result<(), Failure> {
        tell(&format!("{} starts the server: run {}", self.device, self.run));
        let mut watch = DeviceWatch::default();
        loop {
            let row = self.lab.row(self.run)?;
            if row.is_over() {
                let reason =
                    run_failure(&row).map_or_else(|| "its run has ended".to_owned(), |(_, reason)| reason);
                let files = self.lab.workspace.run(row.id).files();
                return Err(
                    Failure::could_not(format!("{} cannot serve the model: {reason}", self.device))
                        .hint(format!("the server's output: {}", files.display())),
                );
            }
            if row.state.phase == RunPhase::Running {
                return Ok(());
            }
            if end.load(Ordering::Relaxed) {
                return Err(Failure::interrupted(
                    "interrupted while the server started; its run is being aborted",
                ));
            }
            if !self.lab.workspace.is_served() {
                return Err(Failure::could_not(
                    "the coordinator has ended; the run of the server is aborted when it is started again",
                ));
            }
            let report = watch.look(std::slice::from_ref(&row), self.lab.store)?;
            report.changes.iter().for_each(|change| tell(change));
            thread::sleep(PAUSE);
        }
    }

    /// Requests the end of the server. Its run then completes.
    pub(super) fn stop(&mut self) -> Result<(), Failure> {
        tell(&format!("{} stops the server and delivers its log", self.device));
        // A server that has ended by itself has failed the run.
        let _ = self.lab.store.runs().request_server_stop(self.run)?;
        self.is_stopping = true;
        Ok(())
    }
}

impl Drop for DeviceServer<'_> {
    fn drop(&mut self) {
        if !self.is_stopping {
            // Otherwise the limit ends the run.
            let _ = self
                .lab
                .store
                .runs()
                .request_abort(self.run, "its client did not complete the measurement");
        }
    }
}
