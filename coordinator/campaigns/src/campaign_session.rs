//! A power session of a campaign: connects to its machines without a user, makes it, and logs its news. The session itself is in
//! `regatta-lab-power`.

use regatta_catalogue::catalogue::{Catalogue, CatalogueError};
use regatta_lab_power::{
    Cancel, DEVICE_PYTHON, DeviceAccess, Logins, MachinesError, PowerSessionError, PowerSessionJob,
    PowerSessionRunner, SessionMachines, SessionNews, SessionProgress,
};
use regatta_text::ErrorChain;
use regatta_types::documents::{EndCause, RecordedFailure};

use super::session_threads::ThreadEnd;
use regatta_lab_store::{RunDraft, StoreError, workspace::Workspace};

/// A session that is about to be made.
pub(super) struct CampaignSession {
    pub(super) workspace: Workspace,
    /// Its id.
    pub(super) session: String,
    /// The name of its meter.
    pub(super) meter: String,
    /// The run that is made twice.
    pub(super) draft: RunDraft,
}

/// A session that a campaign cannot make.
#[derive(Debug, thiserror::Error)]
enum CampaignSessionError {
    /// A file of the configuration cannot be read.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The round is too old.
    #[error("round {0} has no rules for power")]
    NoPowerRules(String),
    /// The meter was removed.
    #[error("the meter `{0}` was removed from the lab")]
    NoMeter(String),
    /// A machine cannot be reached.
    #[error(transparent)]
    Machines(#[from] MachinesError),
    /// The session could not begin.
    #[error(transparent)]
    Session(#[from] PowerSessionError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CampaignSessionError {
    const fn end_cause(&self) -> EndCause {
        match self {
            Self::Catalogue(_) | Self::NoPowerRules(_) | Self::NoMeter(_) => EndCause::Precondition,
            Self::Machines(error) => error.end_cause(),
            Self::Session(error) => error.end_cause(),
            Self::Store(_) => EndCause::Infrastructure,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Machines(error) => error.hint().map(str::to_owned),
            Self::Session(error) => error.hint(),
            _ => None,
        }
    }
}

impl CampaignSession {
    /// Makes the session. One that began has its end in the store.
    ///
    /// # Errors
    /// Returns the failure of a session that could not begin.
    pub(super) fn make(&self, cancel: &Cancel) -> ThreadEnd {
        self.run(cancel).map_err(|error| {
            let sentence = ErrorChain(&error).to_string();
            RecordedFailure {
                cause: error.end_cause(),
                reason: match error.hint() {
                    Some(hint) => format!("{sentence}; {hint}"),
                    None => sentence,
                },
            }
        })
    }

    fn run(&self, cancel: &Cancel) -> Result<(), CampaignSessionError> {
        let store = self.workspace.store()?;
        let catalogue = Catalogue::read(Some(&self.workspace.configs()))?;
        let round = catalogue.round(Some(&self.draft.spec.round))?;
        let rules = round
            .power
            .as_ref()
            .ok_or_else(|| CampaignSessionError::NoPowerRules(round.name.clone()))?;
        let meter = store.meters().get(&self.meter)?;
        let meter = meter.ok_or_else(|| CampaignSessionError::NoMeter(self.meter.clone()))?;
        let access = DeviceAccess {
            login: None,
            power_dev: None,
            python: DEVICE_PYTHON.to_owned(),
        };
        let device = &self.draft.spec.device;
        let machines =
            SessionMachines::connect(&access, &Logins::without_user(), &meter.settings, device, &store)?;
        let runner = PowerSessionRunner::new(&self.workspace, &store, rules, &meter, machines);
        let job = PowerSessionJob {
            session: &self.session,
            draft: &self.draft,
        };
        runner.run(&job, &mut LoggedNews(&self.session), cancel)?;
        Ok(())
    }
}

/// Logs the news of a session.
struct LoggedNews<'a>(&'a str);

impl SessionProgress for LoggedNews<'_> {
    fn report(&mut self, news: &SessionNews<'_>) {
        let session = self.0;
        match news {
            SessionNews::LeaseTakenOver {
                session: ended,
                meter,
            } => tracing::warn!(
                session,
                "session {ended} ended without a result; its lease of {meter} has ended too"
            ),
            SessionNews::Preflight(result) => {
                for line in result.lines.iter().filter(|line| !line.passed) {
                    tracing::warn!(session, "{}: {}", line.subject, line.found);
                }
            }
            SessionNews::Begins { draft, .. } => {
                let spec = &draft.spec;
                tracing::info!(session, benchmark = spec.benchmark.name, scenario = %spec.scenario, "begins");
            }
            SessionNews::Step { phase, .. } => tracing::info!(session, "{phase}"),
            SessionNews::Mean { watts, samples } => {
                tracing::debug!(session, "{watts:.2} W, the mean of {samples} samples");
            }
            SessionNews::Observation(text) => tracing::warn!(session, "{text}"),
            SessionNews::RailsUnknown(error) => {
                tracing::warn!(session, "the rails' power is not known: {}", ErrorChain(*error));
            }
        }
    }
}
