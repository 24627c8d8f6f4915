//! Resolves a request to a draft: first its names, against the catalogue, then for a device. It stores nothing, so that a plan with an error
//! requests no run.

use std::{borrow::Cow, num::NonZeroUsize};

use regatta_catalogue::{
    catalogue::{Catalogue, CatalogueError},
    round::Round,
    servers::{self, ServedWork},
    system::{SystemRequest, SystemValues},
};
use regatta_lab_net::fleet::{default_engine, default_engine_obstacles, engine_obstacle};
use regatta_lab_store::{DeviceRow, RunDraft, RunRequest, SystemChoice};
use regatta_types::{
    EngineKind,
    benchmark::{Benchmark, Model},
    documents::{DeviceFacts, EngineSpec, LoadgenChoice, PowerSetting, RunTask, StateSpec},
};

use super::{
    device_state::{self, BoardIdentity},
    early_accuracy::usual_delivery,
    expected_time::least_seconds,
    form::{self, NoForm, SampleNeed},
    resolve_error::ResolveError,
    resolved_request::ResolvedRequest,
    run_files::RunFiles,
};

/// A request whose benchmark and round are known. The device is not.
#[derive(Debug)]
pub struct KnownRequest<'a> {
    request: &'a RunRequest,
    catalogue: &'a Catalogue,
    benchmark: Cow<'a, Benchmark>,
    round: &'a Round,
}

impl<'a> KnownRequest<'a> {
    /// Finds benchmark and round of a request. One that is missing is an error for every device, and also without any.
    ///
    /// # Errors
    /// Returns [`ResolveError`] when one is missing, or no engine computes the benchmark's responses.
    pub fn find(request: &'a RunRequest, catalogue: &'a Catalogue) -> Result<Self, ResolveError> {
        let benchmark = match (request.task, catalogue.benchmark(&request.benchmark)) {
            // The client knows it, and the device only serves its model.
            (RunTask::ModelServer, Err(CatalogueError::OfEndpoints { name })) => {
                Cow::Owned(Benchmark::measured_by_client(&name))
            }
            (_, known) => Cow::Borrowed(known?),
        };
        let round = catalogue.round(request.round.as_deref())?;
        let model = &benchmark.model;
        // The default engine of every device is one of those that compute networks.
        let kind = request.engine.kind.unwrap_or(EngineKind::Tensorrt);
        if !model.is_computed_by(kind) {
            let benchmark = benchmark.name.clone();
            return Err(match kind {
                _ if !model.has_engine() => ResolveError::NoResponses { benchmark },
                EngineKind::Server => ResolveError::NotForServer { benchmark },
                _ => ResolveError::NeedsServer {
                    benchmark,
                    has_beams: beams(model).is_some(),
                },
            });
        }
        if kind == EngineKind::Server && request.task.is_measurement() {
            check_driver(&benchmark, request.engine.settings.server.as_deref())?;
        }
        Ok(Self {
            request,
            catalogue,
            benchmark,
            round,
        })
    }

    /// Returns the draft for a device.
    ///
    /// # Errors
    /// Returns [`ResolveError`] when the device cannot execute the request, or the request contradicts itself.
    fn draft(&self, device: &DeviceRow) -> Result<RunDraft, ResolveError> {
        let engine = self.engine(device)?;
        let facts = device.reported_facts().map_err(|source| ResolveError::Facts {
            device: device.name.clone(),
            agent: device.agent.clone(),
            source,
        })?;
        self.check_loadgen(device, &facts)?;
        let mut draft = self.resolved(device, &facts, engine)?.draft()?;
        draft.limit_s = self.request.limit.map(|limit| limit.as_secs());
        if let (Some(limit), Some(least)) = (draft.limit_s, least_seconds(&draft.spec))
            && limit <= least
        {
            return Err(ResolveError::ShortLimit { limit, least });
        }
        Ok(draft)
    }

    /// Returns the draft for a device, with its samples' form and its assets.
    ///
    /// # Errors
    /// Returns [`ResolveError`] when the device cannot execute the request, the request contradicts itself, or devices cannot get the files.
    pub fn draft_with_files(
        &self,
        device: &DeviceRow,
        files: &RunFiles<'_>,
    ) -> Result<RunDraft, ResolveError> {
        let mut draft = self.draft(device)?;
        files.add_to(&mut draft, &self.request.assets)?;
        Ok(draft)
    }

    /// Returns the samples that must be prepared for a run on a device. The files need not exist yet.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::draft_with_files`].
    pub fn sample_need(&self, device: &DeviceRow) -> Result<SampleNeed, ResolveError> {
        let draft = self.draft(device)?;
        Ok(form::sample_need(&draft.spec).map_err(NoForm::from)?)
    }

    fn resolved(
        &self,
        device: &DeviceRow,
        facts: &DeviceFacts,
        engine: EngineSpec,
    ) -> Result<ResolvedRequest<'_>, ResolveError> {
        let request = self.request;
        let state = self.state(device, facts)?;
        let requested = SystemRequest {
            benchmark: &self.benchmark,
            scenario: request.scenario,
            power: match &state {
                Some(state) if state.name == PowerSetting::MaxQ.as_str() => PowerSetting::MaxQ,
                _ => PowerSetting::MaxP,
            },
            engine: engine.kind,
        };
        Ok(ResolvedRequest {
            device: device.id.clone(),
            benchmark: &self.benchmark,
            round: self.round,
            scenario: request.scenario,
            mode: request.mode,
            loadgen: self.loadgen(facts),
            length: request.length,
            delivery: request
                .delivery
                .unwrap_or_else(|| usual_delivery(request.mode, engine.kind, request.task, &self.benchmark)),
            engine,
            system: self.system(facts, &requested)?,
            conf: request.conf.clone(),
            state,
            gate: request.gate.clone(),
            task: request.task,
        })
    }

    /// Returns the engine of the request, or the device's default.
    fn engine(&self, device: &DeviceRow) -> Result<EngineSpec, ResolveError> {
        let settings = self.request.engine.settings.clone();
        if let Some(kind) = self.request.engine.kind {
            // A run may name a library that the agent did not find. The device checks it before the run starts.
            if settings.onnxruntime_library.is_none() || !device.engines.contains(&kind) {
                check_engine(device, kind)?;
            }
            return Ok(EngineSpec { kind, settings });
        }
        let kind = default_engine(device).ok_or_else(|| ResolveError::NoDefaultEngine {
            device: device.name.clone(),
            obstacles: default_engine_obstacles(device),
        })?;
        settings
            .check_engine(kind)
            .map_err(|error| ResolveError::DefaultEngineSetting {
                device: device.name.clone(),
                engine: kind,
                error,
            })?;
        Ok(EngineSpec { kind, settings })
    }

    /// Returns the LoadGen of the request. Without a revision, it is the newest one on the device that the round accepts. If there is none, the device
    /// uses its newest one.
    fn loadgen(&self, facts: &DeviceFacts) -> LoadgenChoice {
        match &self.request.loadgen {
            LoadgenChoice::Official { revision: None } => LoadgenChoice::Official {
                revision: self
                    .round
                    .newest_accepted_loadgen(&facts.loadgens)
                    .map(str::to_owned),
            },
            named => named.clone(),
        }
    }

    fn check_loadgen(&self, device: &DeviceRow, facts: &DeviceFacts) -> Result<(), ResolveError> {
        if self.request.loadgen.is_among(&facts.loadgens) {
            return Ok(());
        }
        let reported = facts
            .loadgens
            .iter()
            .map(|revision| format!("official:{revision}"));
        let available: Vec<_> = ["native".to_owned()].into_iter().chain(reported).collect();
        Err(ResolveError::NoLoadgen {
            device: device.name.clone(),
            loadgen: self.request.loadgen.clone(),
            available: available.join(", "),
        })
    }

    /// Returns the values of the named system, or of the device's own system by default.
    fn system(
        &self,
        facts: &DeviceFacts,
        requested: &SystemRequest<'_>,
    ) -> Result<Option<SystemValues>, ResolveError> {
        let systems = self.catalogue.systems();
        let own = || systems.of_device(facts.module.as_deref(), || facts.clone(), requested);
        match &self.request.system {
            SystemChoice::OwnIfAny => Ok(own()),
            SystemChoice::None => Ok(None),
            SystemChoice::Own => own()
                .map(Some)
                .ok_or_else(|| ResolveError::NoSystem(requested.benchmark.name.clone())),
            SystemChoice::Named(name) => {
                let others = format!("`{}`, `{}`", SystemChoice::OWN, SystemChoice::NONE);
                Ok(Some(systems.named(name, &others, requested)?))
            }
        }
    }

    fn state(&self, device: &DeviceRow, facts: &DeviceFacts) -> Result<Option<StateSpec>, ResolveError> {
        let Some(state) = &self.request.state else {
            return Ok(None);
        };
        let board = BoardIdentity {
            model: &facts.model,
            module: facts.module.as_deref(),
        };
        let (benchmark, scenario) = (&self.benchmark.name, self.request.scenario);
        let state = device_state::resolve(state, board, benchmark, scenario)?;
        match state {
            Some(state) if facts.state_helper == Some(false) => Err(ResolveError::NoStateHelper {
                device: device.name.clone(),
                state: state.name,
            }),
            state => Ok(state),
        }
    }
}

/// Checks that an engine can run on a device.
fn check_engine(device: &DeviceRow, engine: EngineKind) -> Result<(), ResolveError> {
    let Some(obstacle) = engine_obstacle(device, engine) else {
        return Ok(());
    };
    let can_run = |engine: &&EngineKind| engine_obstacle(device, **engine).is_none();
    let available: Vec<_> = EngineKind::ALL
        .iter()
        .filter(can_run)
        .map(|engine| engine.as_str())
        .collect();
    Err(ResolveError::NoEngine {
        device: device.name.clone(),
        engine,
        obstacle,
        available: if available.is_empty() {
            "none".to_owned()
        } else {
            available.join(", ")
        },
    })
}

/// Checks that the server of a built-in driver computes a benchmark's responses.
fn check_driver(benchmark: &Benchmark, driver: Option<&str>) -> Result<(), ResolveError> {
    let Some(driver) = driver else { return Ok(()) };
    if servers::computes(driver, ServedWork::of(&benchmark.model)) == Some(false) {
        let serves = match servers::computes(driver, ServedWork::Networks) {
            Some(true) => "networks",
            _ => "language models",
        };
        return Err(ResolveError::NotForDriver {
            benchmark: benchmark.name.clone(),
            driver: driver.to_owned(),
            serves,
        });
    }
    match beams(&benchmark.model) {
        Some(beams) if servers::has_beam_search(driver) == Some(false) => Err(ResolveError::NoBeamSearch {
            benchmark: benchmark.name.clone(),
            driver: driver.to_owned(),
            beams: beams.get(),
        }),
        _ => Ok(()),
    }
}

/// Returns the width of the beam search with which a model decodes, if it does.
fn beams(model: &Model) -> Option<NonZeroUsize> {
    model.generation.as_ref()?.beams
}
