//! The quickstart's steps, in order.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use regatta_catalogue::catalogue::Catalogue;
use regatta_text::HumanDuration;
use regatta_types::{ExitCode, Mode, RunId, Scenario, documents::RunPhase};

use super::{
    agent::{self, Agent},
    power::PowerRehearsal,
    quickstart_directory::{DEVICE, QuickstartDirectory},
    rehearsal::{Rehearsal, Script},
    report::QuickstartReport,
    subject::{BENCHMARK, EDGE},
};
use crate::{
    cli::{self, View, interrupts},
    daemon::Daemon,
    exit::{CommandResult, Failure},
};
use regatta_lab_runs::{RateRetries, RunFiles, RunRequestInput};
use regatta_lab_store::{RunDraft, RunRow, Store, workspace::Workspace};
use regatta_lab_views::wording;

/// The longest wait for the agent's hello.
const HELLO: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(150);

/// The user's options.
pub(crate) struct Options {
    /// The quickstart's directory.
    pub(crate) dir: PathBuf,
    /// The length of each run.
    pub(crate) duration: HumanDuration,
    /// Whether coordinator and agent continue until Ctrl-C.
    pub(crate) keep: bool,
    /// The official power programs, if a power session is rehearsed too.
    pub(crate) power_dev: Option<PathBuf>,
    /// Whether progress may be drawn.
    pub(crate) lively: bool,
    /// Whether the report is one JSON document.
    pub(crate) json: bool,
}

/// Runs the quickstart.
pub(crate) fn run(options: &Options, tell: impl Fn(&str)) -> CommandResult {
    let place = QuickstartDirectory::lay_out(&options.dir)?;
    let binary = agent::find_or_build(&tell)?;
    let workspace = place.open()?;
    let catalogue = Catalogue::read(Some(&workspace.configs())).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(BENCHMARK).map_err(Failure::usage)?;
    for scratch in [place.device_scratch(), workspace.scratch()] {
        regatta_prep::install_bundled(benchmark, &scratch, &mut |_, _| {})?;
    }

    let runtime = cli::runtime()?;
    let interrupted = interrupts::end_requested(&runtime)?;
    let daemon = runtime
        .block_on(Daemon::start(&workspace))
        .map_err(|error| cli::with_hint(error, &workspace))?;
    tell(&format!(
        "coordinator and embedded broker at {}",
        daemon.address()
    ));
    let session = Session {
        options,
        place: &place,
        workspace: &workspace,
        interrupted,
        tell: &tell,
    };
    let outcome = session.with_agent(&binary, &catalogue);
    // The agent has ended by now in any case, so the broker gets its last message.
    runtime.block_on(daemon.stop())?;
    outcome
}

pub(super) struct Session<'a> {
    options: &'a Options,
    place: &'a QuickstartDirectory,
    pub(super) workspace: &'a Workspace,
    interrupted: Arc<AtomicBool>,
    pub(super) tell: &'a dyn Fn(&str),
}

impl Session<'_> {
    fn with_agent(&self, binary: &std::path::Path, catalogue: &Catalogue) -> CommandResult {
        let store = self.workspace.store()?;
        for left_over in store.runs().open()? {
            store
                .runs()
                .request_abort(left_over.id, "an earlier quickstart was interrupted")?;
        }
        agent::enroll(binary, self.place, self.workspace, &store)?;
        let mut agent = Agent::start(binary, self.place)?;
        self.wait_for_hello(&store, &mut agent)?;
        (self.tell)(&format!(
            "device `{DEVICE}` is connected; its log is {}",
            self.place.agent_log().display()
        ));
        let files = RunFiles::read(self.workspace, &store)?;
        let drafts = cli::resolve(&self.input(), &[], catalogue, &files, &store)?;
        let mut rows = self.run_all(&store, &mut agent, &drafts)?;
        // The table shows the last attempt. The workspace keeps all.
        RateRetries::default().repeat(&mut rows, self.workspace, &store, |invalid, drafts| {
            for row in invalid {
                (self.tell)(&wording::why_repeated(row));
            }
            self.run_all(&store, &mut agent, drafts)
        })?;
        let benchmark = catalogue.benchmark(BENCHMARK).map_err(Failure::usage)?;
        let audits = self.audit(&store, &mut agent, catalogue, benchmark, &mut rows)?;
        let rehearsal = self.rehearse(catalogue, rows.iter().chain(&audits));
        rows.extend(audits);
        let power = self.options.power_dev.as_ref().map(|power_dev| {
            (self.tell)(
                "rehearsing a power session: ranging run, testing run, official checker; about a minute",
            );
            PowerRehearsal::play(power_dev, &self.place.power_rehearsal())
        });
        let report = QuickstartReport::new(&rows, rehearsal, power, self.workspace, self.place)?;
        report.print(self.options.json)?;
        if self.options.keep {
            (self.tell)("coordinator and agent run until Ctrl-C");
            while !self.interrupted.load(Ordering::Relaxed) {
                agent.check()?;
                thread::sleep(PAUSE);
            }
        }
        Ok(if report.is_good() {
            ExitCode::Success
        } else {
            ExitCode::Negative
        })
    }

    /// Rehearses the submission with the runs of an edge system.
    fn rehearse<'r>(
        &self,
        catalogue: &Catalogue,
        rows: impl Iterator<Item = &'r RunRow>,
    ) -> Result<Rehearsal, Failure> {
        let staged = rows.filter(|row| EDGE.contains(&row.scenario) && row.state.phase == RunPhase::Done);
        (self.tell)("rehearsing the submission: stage, truncate, check, pack");
        Script {
            workspace: self.workspace,
            round: catalogue.round(None).map_err(Failure::usage)?,
            runs: staged.map(|row| row.id).collect(),
            directory: self.place.rehearsal(),
            duration: self.options.duration,
        }
        .play()
    }

    fn input(&self) -> RunRequestInput {
        RunRequestInput {
            device: Some(DEVICE.to_owned()),
            benchmark: BENCHMARK.to_owned(),
            scenario: Scenario::ALL.to_vec(),
            mode: vec![Mode::AccuracyOnly, Mode::PerformanceOnly],
            duration: Some(self.options.duration),
            ..RunRequestInput::default()
        }
    }

    fn wait_for_hello(&self, store: &Store, agent: &mut Agent) -> Result<(), Failure> {
        let begun = Instant::now();
        while !store
            .devices()
            .all()?
            .iter()
            .any(|device| device.name == DEVICE && device.online)
        {
            self.go_on(agent)?;
            if begun.elapsed() > HELLO {
                return Err(Failure::could_not("the agent did not connect")
                    .hint(format!("its log is {}", self.place.agent_log().display())));
            }
        }
        Ok(())
    }

    pub(super) fn run_all(
        &self,
        store: &Store,
        agent: &mut Agent,
        drafts: &[RunDraft],
    ) -> Result<Vec<RunRow>, Failure> {
        store.all_or_nothing(|store| drafts.iter().try_for_each(|draft| store.runs().request(draft)))?;
        let ids: Vec<RunId> = drafts.iter().map(|draft| draft.spec.run).collect();
        let mut view = View::new(self.options.lively, ids.len());
        loop {
            let rows = cli::rows(store, &ids)?;
            for row in &rows {
                view.show(row, store.streams().committed_bytes(row.id)?, None);
            }
            if rows.iter().all(RunRow::is_over) {
                view.leave();
                return Ok(rows);
            }
            self.go_on(agent).inspect_err(|_| view.leave())?;
        }
    }

    /// Pauses, unless the quickstart must end.
    fn go_on(&self, agent: &mut Agent) -> Result<(), Failure> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(
                Failure::could_not("interrupted").hint("start it again: it may use the same directory")
            );
        }
        agent.check()?;
        thread::sleep(PAUSE);
        Ok(())
    }
}
