//! Deploys to one board, from the survey to the first hello: the order of steps, the parts that are already correct, and the handling of a
//! failed step. Every step can be repeated. A failure restores the board's previous state.

use std::net::IpAddr;

use regatta_ssh::{Board, Root, Secret};
use regatta_types::DeviceId;

use super::{
    board_installation::{BoardInstallation, Places, StepError},
    error::DeployError,
    examination::{Examination, Examiner},
    hello,
    identity::{EnrollmentState, Identity, enrollment_state},
    install_method::InstallMethod,
    lab::{Lab, LabError},
    order::{DeployOutcome, Order, Plan, ProgressReporter},
    package::Package,
    package_source::PackageSource,
    settings::Settings,
    shim::ShimCache,
    survey::Survey,
};
use regatta_lab_store::{self as store, DeviceRow, Store, workspace::Workspace};

/// The inputs of one deployment.
pub struct Deployment<'a> {
    /// The link to the board.
    pub board: &'a dyn Board,
    /// This machine's address on that link, if the board can use it.
    pub link_address: Option<IpAddr>,
    /// Receives the progress.
    pub progress: &'a dyn ProgressReporter,
    /// The workspace that the board joins.
    pub workspace: &'a Workspace,
    /// The workspace's store.
    pub store: &'a Store,
    /// The addresses and authority with which boards reach the lab.
    pub lab: &'a Lab,
    pub packages: &'a dyn PackageSource,
    /// The TensorRT shims of the workspace.
    pub shims: &'a ShimCache,
    /// The user's options.
    pub order: &'a Order,
}

impl Deployment<'_> {
    /// Deploys to the board. Calls `password` when sudo requires one. Its argument is whether the previous password was wrong.
    ///
    /// # Errors
    /// Returns [`DeployError`]. The board is then in its previous state, or the error describes its state.
    pub fn run(
        &self,
        password: &mut dyn FnMut(bool) -> Option<Secret>,
    ) -> Result<DeployOutcome, DeployError> {
        let Order { name, dry_run, .. } = self.order;
        let say = |text: &str| self.progress.say(text);
        if !self.workspace.is_served() {
            return Err(LabError::Unserved.into());
        }
        let host = self
            .lab
            .host_for(self.order.coordinator.as_deref(), self.link_address)?;
        let (examination, root) = self.examine(password)?;
        let Examination {
            survey,
            package,
            notes,
        } = examination;
        for note in &notes {
            say(note);
        }
        let way = package.way;
        let places = Places::of(way, &survey);
        let installation = BoardInstallation {
            board: self.board,
            root,
            way,
            places,
            cache: survey.cache.clone(),
        };
        let identity = self.identity(&installation)?;
        let enrollment_state = self.enrollment_state(&identity)?;
        let enrolled = match enrollment_state {
            EnrollmentState::Enrolled => identity.enrollment.as_ref().map(|lab| lab.broker.as_str()),
            EnrollmentState::ToEnroll | EnrollmentState::Unanswered => None,
        };
        let settings = self.lab.settings(name, &host, enrolled);
        let is_other = self.runs_other_agent(identity.device.as_ref(), &package)?;
        let plan = self.plan(
            &installation,
            &survey,
            &package,
            &settings,
            enrollment_state,
            is_other,
        )?;
        let changes = plan.changes(self.order, &host);
        let done = |device: Option<DeviceId>, agent| DeployOutcome {
            device: device.map(|device| device.to_string()),
            board: survey.sentence(),
            changes: changes.clone(),
            notes: notes.clone(),
            agent,
        };
        if *dry_run {
            return Ok(done(identity.device, None));
        }
        let had_program = survey
            .hashes
            .keys()
            .any(|path| path.ends_with("bin/regatta-agent"));
        let began = store::now();
        if plan.install.is_some() {
            self.install(&installation, &survey, &package)?;
        }
        let heard = self.bring_up(
            &installation,
            &plan,
            &settings,
            &host,
            package.agent_sha256(),
            &began,
        );
        match heard {
            Ok((device, agent)) => {
                installation.keep()?;
                Ok(done(Some(device), Some(agent)))
            }
            Err(cause) => Err(self.undo(&installation, &plan, had_program, cause)),
        }
    }

    /// Surveys the board, and finds a way to become root. For a login that may not use sudo, the agent is installed for that user only.
    fn examine(
        &self,
        password: &mut dyn FnMut(bool) -> Option<Secret>,
    ) -> Result<(Examination, Option<Root>), DeployError> {
        let examiner = Examiner {
            board: self.board,
            packages: self.packages,
            shims: self.shims,
            progress: self.progress,
            dry_run: self.order.dry_run,
        };
        let examination = examiner.examine(self.order.way)?;
        match BoardInstallation::rights(self.board, &examination.survey, examination.package.way, password) {
            Err(StepError::NoSudoer { .. }) if self.order.way.is_none() => {
                self.progress
                    .say("sudo is not for this login: for this user alone, then");
                Ok((examiner.examine(Some(InstallMethod::User))?, None))
            }
            root => Ok((examination, root?)),
        }
    }

    fn identity(&self, installation: &BoardInstallation<'_>) -> Result<Identity, DeployError> {
        Ok(Identity::of(
            self.board,
            installation.root.as_ref(),
            &installation.places,
        )?)
    }

    /// Returns the board's enrollment state. A lab without keys needs no enrollment.
    fn enrollment_state(&self, identity: &Identity) -> Result<EnrollmentState, DeployError> {
        match &self.lab.authority {
            Some(authority) => Ok(enrollment_state(
                self.store,
                &self.order.name,
                identity,
                authority,
                self.order.take_over,
            )?),
            None => Ok(EnrollmentState::Enrolled),
        }
    }

    /// Returns whether the device last connected with another agent than the package's. An installation that was cut off may have replaced
    /// the program of a daemon that still runs.
    fn runs_other_agent(&self, device: Option<&DeviceId>, package: &Package) -> Result<bool, DeployError> {
        let row = device.map_or(Ok(None), |device| self.store.devices().get(device))?;
        // An agent that reports no hash is older than the package.
        let is_other =
            |row: &DeviceRow| hello::agent_sha256(row).is_none_or(|agent| agent != package.agent_sha256());
        Ok(row.as_ref().is_some_and(is_other))
    }

    fn plan(
        &self,
        installation: &BoardInstallation<'_>,
        survey: &Survey,
        package: &Package,
        settings: &Settings,
        enrollment_state: EnrollmentState,
        runs_other_agent: bool,
    ) -> Result<Plan, DeployError> {
        let fits = super::compatibility::is_installed(survey, package);
        let config = installation.read(&installation.places.config)?;
        let configure = config.is_empty() || settings.applied_to(&config) != config;
        // An agent that cannot report its identity is broken and must be replaced.
        let fits = fits && enrollment_state != EnrollmentState::Unanswered;
        let enroll = enrollment_state == EnrollmentState::ToEnroll;
        let runs = installation.is_running()?;
        Ok(Plan {
            install: (!fits).then(|| {
                let what = match package.way {
                    InstallMethod::System => "the Debian package",
                    InstallMethod::User => "the archive, for this user",
                };
                format!(
                    "copy and install {what}, version {} for {}",
                    package.version, package.architecture
                )
            }),
            configure,
            enroll,
            start: match (runs && fits, configure || (enroll && runs) || runs_other_agent) {
                (true, true) => Some("restart"),
                (true, false) => None,
                (false, _) => Some("start"),
            },
        })
    }

    fn install(
        &self,
        installation: &BoardInstallation<'_>,
        survey: &Survey,
        package: &Package,
    ) -> Result<(), DeployError> {
        let copy = format!("{}/{}", survey.cache, Package::copy_name(package.way));
        if survey.hashes.get(&copy) == Some(&package.sha256) {
            self.progress
                .say("the package is on the board already, from an earlier attempt");
        } else {
            self.progress.say(&format!(
                "copying {} ({} KiB)",
                package.path.display(),
                package.length / 1024
            ));
            installation.copy(package, &mut |sent| self.progress.copied(sent, package.length))?;
        }
        self.progress.say("installing it");
        Ok(installation.install(package)?)
    }

    /// Configures, enrolls and starts the agent, and waits for its hello. Returns the device and the agent's version.
    fn bring_up(
        &self,
        installation: &BoardInstallation<'_>,
        plan: &Plan,
        settings: &Settings,
        host: &str,
        agent: &str,
        began: &str,
    ) -> Result<(DeviceId, String), DeployError> {
        let mut restart = plan.start == Some("restart");
        if plan.configure {
            let config = installation.read(&installation.places.config)?;
            let requested = settings.applied_to(&config);
            if requested != config {
                self.progress.say(&format!(
                    "setting its name and coordinator ({host}) in {}",
                    installation.places.config
                ));
                installation.configure(&requested)?;
                restart = true;
            }
        }
        let enroll = match plan.install {
            // The newly installed agent may report another identity.
            Some(_) => self.enrollment_state(&self.identity(installation)?)? == EnrollmentState::ToEnroll,
            None => plan.enroll,
        };
        if enroll {
            self.enroll(installation, host)?;
            restart = true;
        }
        let mut since = began.to_owned();
        if restart || plan.start.is_some() {
            let verb = if restart { "restart" } else { "start" };
            self.progress.say(&format!("{verb}ing its daemon"));
            if let Some(note) = installation.start(verb)? {
                self.progress.say(&note);
            }
            since = store::now();
        }
        let device = self.identity(installation)?.device.ok_or(StepError::Refused {
            what: "the board has no identity",
            why: installation.log(),
        })?;
        self.progress.say("waiting until it connects to the coordinator");
        let row = hello::wait(
            self.workspace,
            self.store,
            &device,
            agent,
            &since,
            self.order.patience,
        )?;
        Ok((device, row.agent))
    }

    fn enroll(&self, installation: &BoardInstallation<'_>, host: &str) -> Result<(), DeployError> {
        let name = &self.order.name;
        // The identity after the installation, or the existing one.
        let identity = self.identity(installation)?;
        let returning = match &identity.device {
            Some(device) => self.store.members().get(device)?.map(|member| member.device),
            None => None,
        };
        self.progress.say(&format!("enrolling it as {name}, at {host}"));
        let made = self.lab.token(self.store, name, host, returning.as_ref(), None)?;
        installation.enroll(&made.token.to_string()).map_err(|error| {
            // The token will not be used, so its name is free for the next attempt.
            let _ = self.store.enrollment_tokens().delete_unused(name);
            error.into()
        })
    }

    /// Restores the previous state after a failure.
    fn undo(
        &self,
        installation: &BoardInstallation<'_>,
        plan: &Plan,
        had_program: bool,
        cause: DeployError,
    ) -> DeployError {
        let log = match &cause {
            DeployError::HelloError(_) => installation.log(),
            _ => String::new(),
        };
        let changed = plan.install.is_some() || plan.configure || plan.enroll;
        let undone = if !had_program {
            "the agent is installed and waits".to_owned()
        } else if !changed {
            "nothing on the board was changed".to_owned()
        } else {
            self.progress.say("rolling back to the earlier version");
            match installation.undo(plan.install.is_some()) {
                Ok(()) => "the board runs the earlier version again".to_owned(),
                Err(error) => format!("and going back did not come about either: {error}"),
            }
        };
        let undone = if log.is_empty() {
            undone
        } else {
            format!("{undone}; its log ends with: {log}")
        };
        DeployError::Undone {
            cause: Box::new(cause),
            undone,
        }
    }
}
