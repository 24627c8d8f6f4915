//! The model server of an endpoints run, when a device starts it: a run of the device that lasts as long as the client measures. The device signs
//! its log and sensors like those of any run.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use regatta_catalogue::catalogue::Catalogue;
use regatta_endpoints::DeviceRun;
use regatta_fsutil::hash::sha256_of_file;
use regatta_lab_runs::{RunFiles, RunRequestError, RunRequestInput, vocabulary};
use regatta_lab_store::{RunRow, StatePreset, Store, SystemChoice, workspace::Workspace};
use regatta_lab_views::lookup;
use regatta_text::HumanDuration;
use regatta_types::{
    EngineKind, RunId, Scenario,
    documents::{RunPhase, RunTask, document_name},
    engine_settings::EngineSettings,
};

use crate::{
    cli::{
        Context,
        context::tell,
        export,
        resolve::resolve,
        setting_flags::{Assignment, assignment},
    },
    exit::Failure,
};

/// The pause between two looks at the run.
const PAUSE: Duration = Duration::from_millis(200);
/// The port that the server listens on by default.
const DEFAULT_PORT: u16 = 8080;
/// The device's files, in the directory of the endpoints run.
const DEVICE: &str = "device";

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
    #[arg(long, value_name = "K=V", requires = "device", value_parser = assignment)]
    server_set: Vec<Assignment>,
    /// The device's name or address in the network [default: the host of its deployment over SSH]
    #[arg(long, value_name = "HOST", requires = "device")]
    host: Option<String>,
    /// The state that the device is set to for the run [default: as-is]
    #[arg(long, value_name = "STATE", requires = "device", value_parser = vocabulary::state(), ignore_case = true)]
    state: Option<StatePreset>,
    /// Stop the server after this time, whatever happens to this command
    #[arg(long, value_name = "T", requires = "device", default_value = "24h")]
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
        let device = lookup::device(lab.store, self.device.as_deref())?;
        let host = self.host(&device.id, lab.store)?;
        let settings = self.settings()?;
        let port = settings.server_port.unwrap_or(DEFAULT_PORT);
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
        if !lab.workspace.is_served() {
            return Err(Failure::could_not(format!(
                "no coordinator serves {}: nothing was queued",
                lab.workspace.root().display()
            ))
            .hint(format!("start it: {}", lab.context.command("serve"))));
        }
        let files = RunFiles::read(lab.workspace, lab.store)?;
        let drafts = resolve(
            &input,
            std::slice::from_ref(&device),
            catalogue,
            &files,
            lab.store,
        )?;
        let run = drafts.first().map(|draft| draft.spec.run);
        let run = run.ok_or_else(|| Failure::could_not("the device gets no run"))?;
        lab.store
            .all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.runs().request(draft)))?;
        let server = DeviceServer {
            lab,
            device: device.name,
            run,
            url: format!("http://{host}:{port}"),
            is_ended: false,
        };
        server.wait_until_ready(end)?;
        Ok(server)
    }

    /// Returns the device's name or address in the network.
    fn host(&self, device: &regatta_types::DeviceId, store: &Store) -> Result<String, Failure> {
        if let Some(host) = &self.host {
            return Ok(host.clone());
        }
        let login = store.devices().login(device)?;
        let login = login.ok_or_else(|| {
            Failure::misuse("the device was not deployed over SSH from here, so its address is not known")
                .hint("name it with --host")
        })?;
        let host = login.rsplit_once('@').map_or(login.as_str(), |(_, host)| host);
        Ok(host.split_once(':').map_or(host, |(host, _)| host).to_owned())
    }

    fn settings(&self) -> Result<EngineSettings, Failure> {
        let named = [("server", &self.server), ("server_model", &self.server_model)];
        let named = named
            .iter()
            .filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let further = self
            .server_set
            .iter()
            .map(|set| (set.key.as_str(), set.value.as_str()));
        let engine = Some(EngineKind::Server);
        EngineSettings::parse(engine, named.chain(further)).map_err(|error| {
            let error = RunRequestError::EngineSetting { engine, error };
            let hint = error.hint();
            Failure::usage(error).optional_hint(hint)
        })
    }
}

/// The lab of a command.
#[derive(Clone, Copy)]
pub(super) struct LabHandles<'a> {
    pub(super) context: &'a Context,
    pub(super) workspace: &'a Workspace,
    pub(super) store: &'a Store,
}

/// A run of a device that serves a model. When this is dropped, the run is aborted unless it was ended.
pub(super) struct DeviceServer<'a> {
    lab: LabHandles<'a>,
    device: String,
    run: RunId,
    pub(super) url: String,
    is_ended: bool,
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
        loop {
            let row = self.row()?;
            if row.is_over() {
                return Err(self.failed(&row));
            }
            if row.state.phase == RunPhase::Running {
                return Ok(());
            }
            if end.load(Ordering::Relaxed) {
                return Err(Failure::interrupted("the server was not waited for"));
            }
            self.expect_served()?;
            thread::sleep(PAUSE);
        }
    }

    /// Stops the server, waits for the run's record, and copies the run into the directory of the endpoints run.
    pub(super) fn end(mut self, output: &Path) -> Result<DeviceRun, Failure> {
        self.is_ended = true;
        tell(&format!("{} stops the server and delivers its log", self.device));
        // A server that has ended has failed the run.
        let _ = self.lab.store.runs().request_finish(self.run)?;
        let row = loop {
            let row = self.row()?;
            if row.is_over() {
                break row;
            }
            self.expect_served()?;
            thread::sleep(PAUSE);
        };
        let directory = output.join(DEVICE);
        let lines = export::export(self.lab.workspace, self.lab.store, &row, &directory)?;
        lines.iter().for_each(|line| tell(line));
        let evidence = directory.join("files").join(document_name::EVIDENCE);
        let evidence = sha256_of_file(&evidence).map(|hash| hash.hex());
        let failure = match (row.state.phase, &evidence) {
            (RunPhase::Done, Ok(_)) => None,
            (RunPhase::Done, Err(error)) => Some(format!("it has no evidence: {error}")),
            _ => Some(reason(&row)),
        };
        Ok(DeviceRun {
            evidence_sha256: evidence.ok(),
            failure,
            ..self.document()
        })
    }

    fn row(&self) -> Result<RunRow, Failure> {
        let row = self.lab.store.runs().get(self.run)?;
        row.ok_or_else(|| Failure::could_not(format!("run {} is missing from the store", self.run)))
    }

    fn expect_served(&self) -> Result<(), Failure> {
        if self.lab.workspace.is_served() {
            return Ok(());
        }
        Err(
            Failure::could_not("the coordinator has ended; the server may still run on the device").hint(
                format!(
                    "start it again, then: {}",
                    self.lab.context.command(&format!("runs abort {}", self.run))
                ),
            ),
        )
    }

    fn failed(&self, row: &RunRow) -> Failure {
        Failure::could_not(format!("{} cannot serve the model: {}", self.device, reason(row))).hint(format!(
            "the server's output: {}",
            self.lab.workspace.run(row.id).files().display()
        ))
    }
}

impl Drop for DeviceServer<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            // The limit ends the run otherwise.
            let _ = self
                .lab
                .store
                .runs()
                .request_abort(self.run, "the client of its server did not run to its end");
        }
    }
}

fn reason(row: &RunRow) -> String {
    let reason = row.state.reason.clone();
    reason.unwrap_or_else(|| format!("its run is {}", row.state.phase))
}
