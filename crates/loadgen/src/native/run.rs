//! A run from its first log line to its last: settings, modes, loadable sets and results.

use std::{path::Path, sync::Arc};

use jiff::Timestamp;
use regatta_loadgen_conf::TestSettings;
use regatta_types::{Mode, Scenario};

use super::{
    clock::now_ns,
    clocks::{Clocks, stamp},
    footprint, guard, header,
    run_log::RunLog,
    tap::{AccuracyTap, TokenEntries},
};
use crate::{
    check::SeriesCheck,
    effective::{EffectiveSettings, LibraryCounts},
    generate::{AccuracyDraws, LoadableSet, Pass},
    load_gen::{LoadgenError, LoadgenIdentity, Phase, RunObserver},
    outcome::{Issued, Outcome, Performance},
    request::{ResolvedSettings, RunRequest},
    results::{Results, SeriesResult},
    sut::{QuerySampleLibrary, SystemUnderTest},
    timing::Timing,
};

/// A run in progress.
pub(super) struct Run<'a> {
    identity: LoadgenIdentity,
    pub(super) sut: &'a dyn SystemUnderTest,
    qsl: &'a dyn QuerySampleLibrary,
    pub(super) request: &'a RunRequest,
    pub(super) observer: &'a dyn RunObserver,
    sut_name: String,
    pub(super) requested: TestSettings,
    pub(super) effective: EffectiveSettings,
    library: LibraryCounts,
    pub(super) check: SeriesCheck,
    pub(super) log: RunLog,
    pub(super) tap: Arc<AccuracyTap>,
    pub(super) next_query: u64,
    pub(super) next_sample: u64,
    pub(super) draws: AccuracyDraws,
    accuracy: Option<Issued>,
    performance: Option<(Performance, bool, Vec<String>)>,
    pub(super) faults: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) timing: Option<Timing>,
}

/// The error of a part of the run that cannot continue because the SUT or the library failed. The faults have the reason.
pub(super) struct PartFailed;

impl<'a> Run<'a> {
    /// Resolves the settings, creates the logs and writes their header.
    pub(super) fn begin(
        identity: LoadgenIdentity,
        sut: &'a dyn SystemUnderTest,
        qsl: &'a dyn QuerySampleLibrary,
        request: &'a RunRequest,
        observer: &'a dyn RunObserver,
    ) -> Result<Self, LoadgenError> {
        let resolved = request.resolve().map_err(LoadgenError::Conf)?;
        let requested_ns = now_ns();
        let sut_name = guard::call("the SUT's name", || Ok(sut.name().to_owned()))
            .map_err(|error| LoadgenError::Prepare(error.into()))?;
        let name_took_ns = now_ns() - requested_ns;
        let (qsl_name, library) = guard::call("the sample library", || {
            let library = LibraryCounts {
                total: qsl.total_sample_count() as u64,
                performance: qsl.performance_sample_count() as u64,
            };
            Ok((qsl.name().to_owned(), library))
        })
        .map_err(|error| LoadgenError::Prepare(error.into()))?;
        let (effective, setting_errors) = EffectiveSettings::new(&resolved.settings, library);
        let check = footprint::series_check(request);
        check.run(&resolved, library)?;
        let (mut log, tap) = RunLog::create(&request.logs, token_entries(&resolved, &effective))?;

        header::log_version(&mut log, &identity);
        log.info("test_datetime", stamp(Timestamp::now(), "%FT%TZ").as_str());
        log.info("sut_name", &sut_name);
        log.info("get_sut_name_duration_ns", name_took_ns);
        log.info("qsl_name", &qsl_name);
        log.info("qsl_reported_total_count", library.total);
        log.info("qsl_reported_performance_count", library.performance);
        let mut run = Self {
            identity,
            sut,
            qsl,
            request,
            observer,
            sut_name,
            requested: resolved.settings.clone(),
            effective,
            library,
            check,
            log,
            tap: Arc::new(tap),
            next_query: 0,
            next_sample: 0,
            draws: AccuracyDraws::default(),
            accuracy: None,
            performance: None,
            faults: Vec::new(),
            warnings: resolved.all_warnings(),
            timing: None,
        };
        run.log_settings(&resolved, &setting_errors);
        Ok(run)
    }

    fn log_settings(&mut self, resolved: &ResolvedSettings, errors: &[String]) {
        if resolved.audited {
            self.log.warning(
                "Found Audit Config file (audit.config). Overriding TestSettings from audit.config file.",
            );
        } else if Path::new("audit.config").exists() {
            let warning =
                "The audit.config in the working directory is not used, because the run does not request it.";
            self.log.warning(warning);
            self.warnings.push(warning.to_owned());
        }
        if resolved.settings.test05 {
            self.log.warning("Test05 flag detected Overriding random seeds");
        }
        for error in errors {
            self.log.error("error_invalid_test_settings", error);
        }
        header::log_requested(&mut self.log, &self.requested);
        header::log_effective(&mut self.log, &self.effective);
    }

    /// Runs the mode and closes the logs.
    pub(super) fn finish(mut self) -> Result<Outcome, LoadgenError> {
        let ran = match self.effective.mode {
            Mode::AccuracyOnly => self.run_accuracy(),
            Mode::PerformanceOnly => self.run_performance(),
            Mode::SubmissionRun => self.run_accuracy().and_then(|()| self.run_performance()),
            Mode::FindPeakPerformance => self.find_peak_performance(),
        };
        if ran.is_err() && self.performance.is_none() {
            self.report_failure();
        }
        let (mut valid, mut reasons, mut performance) = (None, Vec::new(), None);
        if let Some((results, is_valid, why)) = self.performance.take() {
            valid = Some(is_valid && self.faults.is_empty());
            reasons = why;
            performance = Some(results);
        }
        if !self.faults.is_empty() {
            valid = Some(false);
            reasons.extend(self.faults.iter().cloned());
        }
        let outcome = Outcome {
            identity: self.identity,
            requested: self.requested,
            effective: self.effective,
            accuracy: self.accuracy,
            performance,
            valid,
            reasons,
            faults: self.faults,
            warnings: self.warnings,
            timing: self.timing,
            error_lines: self.log.errors(),
            log_files: self.log.files(),
        };
        let version = format!("{} {}", outcome.identity.name, outcome.identity.version);
        self.log.close(&self.tap, &version)?;
        Ok(outcome)
    }

    /// Writes the verdict on a run without results.
    fn report_failure(&mut self) {
        let reason = self.faults.join("; ");
        let (sut_name, settings) = (&self.sut_name, &self.effective);
        self.log.summarize(|summary| {
            summary.headline("MLPerf Results Summary")?;
            summary.value("SUT name : ", sut_name)?;
            summary.value("Scenario : ", settings.scenario)?;
            summary.value("Mode     : ", settings.mode)?;
            summary.line("Result is : INVALID")?;
            summary.value(" * The run was abandoned: ", &reason)
        });
        self.log.info("result_validity", "INVALID");
        self.log.info("result_invalid_reason", &reason);
        let errors = self.log.errors();
        self.log.info("num_errors", errors);
    }

    fn run_accuracy(&mut self) -> Result<(), PartFailed> {
        self.log.info("generic_message", "Starting accuracy mode");
        self.tap.write_at_once(true);
        let settings = self.effective.clone();
        let sets = self.sets(&settings, Pass::Accuracy)?;
        let mut all = Issued::default();
        for (number, set) in sets.iter().enumerate() {
            self.load(set)?;
            let phase = Phase::Accuracy {
                set: number,
                sets: sets.len(),
            };
            let result = self.series(&settings, set, Pass::Accuracy, phase)?;
            all.queries += result.queries_issued;
            all.samples += result.samples.len();
            self.unload(set)?;
        }
        self.accuracy = Some(all);
        Ok(())
    }

    fn run_performance(&mut self) -> Result<(), PartFailed> {
        self.log.info("generic_message", "Starting performance mode");
        let settings = self.effective.clone();
        let sets = self.sets(&settings, Pass::Performance)?;
        let set = &sets[0];
        self.load(set)?;
        let clocks = Clocks::now();
        let result = self.series(&settings, set, Pass::Performance, Phase::Performance)?;
        clocks.compare(&mut self.log);
        // A library that fails to unload makes the run invalid, so the verdict is written afterwards.
        let unloaded = self.unload(set);
        self.report(&settings, &result);
        unloaded
    }

    /// Writes a measurement's results.
    pub(super) fn report(&mut self, settings: &EffectiveSettings, result: &SeriesResult) {
        let results = Results::new(&self.sut_name, settings, result).with_faults(&self.faults);
        self.log.summarize(|summary| results.write_summary(summary));
        let log = &mut self.log;
        // The log keeps its own failures.
        let _ = results.write_detail(&mut |key, value| {
            log.info(key, value);
            Ok(())
        });
        let errors = log.errors();
        log.info("num_errors", errors);
        self.performance = Some((results.performance(), results.is_valid(), results.reasons()));
    }

    /// Returns the loadable sets, at least one.
    pub(super) fn sets(
        &mut self,
        settings: &EffectiveSettings,
        pass: Pass,
    ) -> Result<Vec<LoadableSet>, PartFailed> {
        let sets = self.check.sets(settings, self.library.total, pass);
        sets.map_err(|error| self.fault("error_invalid_test_settings", &error.to_string()))
    }

    pub(super) fn load(&mut self, set: &LoadableSet) -> Result<(), PartFailed> {
        self.log.info("loaded_qsl_set", set.samples.as_slice());
        let loaded = guard::call("the library's load_samples_to_ram", || {
            self.qsl.load_samples_to_ram(&set.samples)
        });
        loaded.map_err(|error| self.fault("error_runtime", &error.fault()))
    }

    pub(super) fn unload(&mut self, set: &LoadableSet) -> Result<(), PartFailed> {
        let unloaded = guard::call("the library's unload_samples_from_ram", || {
            self.qsl.unload_samples_from_ram(&set.samples)
        });
        unloaded.map_err(|error| self.fault("error_runtime", &error.fault()))
    }

    pub(super) fn fault(&mut self, key: &str, text: &str) -> PartFailed {
        self.log.error(key, text);
        self.faults.push(text.to_owned());
        PartFailed
    }
}

fn token_entries(resolved: &ResolvedSettings, effective: &EffectiveSettings) -> TokenEntries {
    match (resolved.logs_tokens, effective.scenario) {
        (false, _) => TokenEntries::None,
        (true, Scenario::Offline) => TokenEntries::Count,
        (true, _) => TokenEntries::FirstAndCount,
    }
}
