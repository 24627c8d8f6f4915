//! Conversion of a run's request to LoadGen's own settings: conf files by `FromConfig`, the rest field by field.

use std::{fs, io, path::PathBuf};

use regatta_loadgen::{
    load_gen::LoadgenError,
    request::{ConfText, RunRequest},
};
use regatta_loadgen_conf::{Conf, ConfKind, TestSettings};
use regatta_types::Mode;
use tempfile::TempDir;

use crate::{
    ffi::{NOT_IN_REVISION, PluginFunctions, Refusal, Settings},
    fields::{FIELDS, Number},
};

/// The source of a run's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfSource {
    /// LoadGen reads conf files, its compiled-in one first.
    LoadGen,
    /// Regatta parses the request's conf texts and sets every field.
    Request,
}

/// LoadGen's settings for a run, with related data.
pub(crate) struct Prepared<'a> {
    /// The settings for the C interface.
    pub(crate) settings: Settings<'a>,
    /// The settings that the log lists under `requested_`.
    pub(crate) requested: TestSettings,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
    /// Holds the conf files that LoadGen reads. It reads `audit.config` only when the run starts.
    pub(crate) _files: TempDir,
}

/// Why the conf files of a run cannot be prepared for LoadGen.
#[derive(Debug, thiserror::Error)]
enum PrepareError {
    /// There is no directory for the files.
    #[error("no temporary directory for conf files can be created")]
    Directory {
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// LoadGen could not allocate its settings.
    #[error("not enough memory for LoadGen's settings")]
    Memory,
    /// A file cannot be written.
    #[error("{} cannot be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// LoadGen takes paths as text.
    #[error("the temporary directory {} is not UTF-8", .0.display())]
    NotUtf8(PathBuf),
}

impl From<PrepareError> for LoadgenError {
    fn from(error: PrepareError) -> Self {
        Self::Prepare(error.into())
    }
}

/// Converts a request to settings.
pub(crate) fn prepare<'a>(
    functions: &'a PluginFunctions,
    source: ConfSource,
    request: &RunRequest,
) -> Result<Prepared<'a>, LoadgenError> {
    let files =
        TempDir::with_prefix("regatta-loadgen-").map_err(|source| PrepareError::Directory { source })?;
    let mut settings = functions.settings().ok_or(PrepareError::Memory)?;
    let explain = |refusal| explain(request, refusal);
    settings
        .set_text(c"scenario", request.scenario.as_str())
        .map_err(explain)?;
    settings
        .set_text(c"mode", request.mode.as_str())
        .map_err(explain)?;
    set_logs(&mut settings, request).map_err(explain)?;

    let from_request = settings_of_request(request)?;
    match source {
        ConfSource::Request => write_fields(&mut settings, &from_request, request)?,
        ConfSource::LoadGen => {
            read_confs(functions, &mut settings, request, &files)?;
            write_overrides(&mut settings, request)?;
        }
    }
    let mut before_audit = read_fields(&settings, request)?;
    before_audit.mode = from_request.mode; // `mode` is not a number, and a user.conf may set it
    if let (ConfSource::LoadGen, Some(conf)) = (source, &request.mlperf_conf) {
        refuse_other_conf(&before_audit, &from_request, &conf.name, request)?;
    }
    if let Some(audit) = &request.audit_config {
        let path = write_file(&files, "audit.config", audit)?;
        settings
            .set_text(c"audit_config", &path_text(&path)?)
            .map_err(explain)?;
    }
    let requested = after_audit(&before_audit, request)?;
    refuse_endless_search(&requested, request)?;
    let resolved = request.resolve().map_err(LoadgenError::Conf)?;
    Ok(Prepared {
        settings,
        requested,
        warnings: resolved.all_warnings(),
        _files: files,
    })
}

/// Refuses a negative number of decimals. LoadGen reads it as unsigned, and its search then never ends. No conf file sets it.
fn refuse_endless_search(requested: &TestSettings, request: &RunRequest) -> Result<(), LoadgenError> {
    let decimals = request.overrides.find_peak_decimals.unwrap_or(0);
    if requested.mode != Mode::FindPeakPerformance || decimals >= 0 {
        return Ok(());
    }
    let problem = format!(
        "with {decimals} decimals the search of the official LoadGen never ends; it knows 0 and more"
    );
    Err(LoadgenError::Settings {
        scenario: request.scenario,
        problem,
    })
}

fn set_logs(settings: &mut Settings<'_>, request: &RunRequest) -> Result<(), Refusal> {
    let directory = request.logs.dir.to_str().ok_or_else(|| Refusal {
        code: 0,
        words: format!("the log directory {} is not UTF-8", request.logs.dir.display()),
    })?;
    settings.set_text(c"outdir", directory)?;
    settings.set_text(c"prefix", &request.logs.prefix)?;
    settings.set_text(c"suffix", &request.logs.suffix)?;
    settings.set(c"enable_trace", Number::Whole(u64::from(request.logs.trace)))
}

/// Reads LoadGen's own conf and then the user's, as every harness does.
fn read_confs(
    functions: &PluginFunctions,
    settings: &mut Settings<'_>,
    request: &RunRequest,
    files: &TempDir,
) -> Result<(), LoadgenError> {
    let explain = |refusal| explain(request, refusal);
    let (model, scenario) = (request.model.as_str(), request.scenario.as_str());
    if functions.mlperf_conf().is_none() {
        let Some(conf) = &request.mlperf_conf else {
            let problem =
                "this LoadGen has no mlperf.conf compiled in; hint: set the round's mlperf.conf".to_owned();
            return Err(LoadgenError::Settings {
                scenario: request.scenario,
                problem,
            });
        };
        let path = write_file(files, "mlperf.conf", conf)?;
        settings
            .read_mlperf_conf(&path_text(&path)?, model, scenario)
            .map_err(explain)?;
    } else if request.user_conf.is_none() {
        settings.apply_compiled_conf(model, scenario).map_err(explain)?;
    }
    if let Some(conf) = &request.user_conf {
        let path = write_file(files, "user.conf", conf)?;
        settings
            .read_user_conf(&path_text(&path)?, model, scenario)
            .map_err(explain)?;
    }
    Ok(())
}

/// Sets the fields that a harness sets after `FromConfig`.
fn write_overrides(settings: &mut Settings<'_>, request: &RunRequest) -> Result<(), LoadgenError> {
    let before = read_fields(settings, request)?;
    let mut after = before.clone();
    request.overrides.apply(&mut after);
    for field in FIELDS
        .iter()
        .filter(|field| (field.get)(&before) != (field.get)(&after))
    {
        settings
            .set(field.key, (field.get)(&after))
            .map_err(|refusal| explain(request, refusal))?;
    }
    Ok(())
}

/// Sets every field. A field that this LoadGen does not have must have its default.
fn write_fields(
    settings: &mut Settings<'_>,
    requested: &TestSettings,
    request: &RunRequest,
) -> Result<(), LoadgenError> {
    let defaults = TestSettings::default();
    settings
        .set_text(c"mode", requested.mode.as_str())
        .map_err(|refusal| explain(request, refusal))?;
    for field in FIELDS {
        let value = (field.get)(requested);
        match settings.set(field.key, value) {
            Err(refusal) if refusal.code == NOT_IN_REVISION && value == (field.get)(&defaults) => {}
            result => result.map_err(|refusal| explain(request, refusal))?,
        }
    }
    Ok(())
}

/// Reads every field back. Keeps the default of a field that this LoadGen does not have.
fn read_fields(settings: &Settings<'_>, request: &RunRequest) -> Result<TestSettings, LoadgenError> {
    let mut read = TestSettings::new(request.scenario, request.mode);
    for field in FIELDS {
        match settings.get(field.key, (field.get)(&read)) {
            Ok(value) => (field.set)(&mut read, value),
            Err(refusal) if refusal.code == NOT_IN_REVISION => {}
            Err(refusal) => return Err(explain(request, refusal)),
        }
    }
    Ok(read)
}

/// Returns the settings from the request's conf texts and overrides. LoadGen itself applies `audit.config` and TEST05 later.
fn settings_of_request(request: &RunRequest) -> Result<TestSettings, LoadgenError> {
    let mut settings = TestSettings::new(request.scenario, request.mode);
    for (conf, kind) in [
        (&request.mlperf_conf, ConfKind::Mlperf),
        (&request.user_conf, ConfKind::User),
    ] {
        if let Some(conf) = conf {
            apply(&mut settings, conf, kind, &request.model)?;
        }
    }
    request.overrides.apply(&mut settings);
    Ok(settings)
}

fn apply(
    settings: &mut TestSettings,
    conf: &ConfText,
    kind: ConfKind,
    model: &str,
) -> Result<(), LoadgenError> {
    let parsed = Conf::parse(&conf.name, &conf.text).map_err(LoadgenError::Conf)?;
    settings.apply(&parsed, kind, model).map_err(LoadgenError::Conf)?;
    Ok(())
}

/// Refuses a request whose `mlperf.conf` has other values than the one that is compiled into LoadGen.
fn refuse_other_conf(
    compiled: &TestSettings,
    from_request: &TestSettings,
    name: &str,
    request: &RunRequest,
) -> Result<(), LoadgenError> {
    let differing: Vec<_> = FIELDS
        .iter()
        .filter(|field| (field.get)(compiled) != (field.get)(from_request))
        .map(|field| {
            let key = field.key.to_string_lossy();
            format!(
                "{key} is {} there and {} in {name}",
                (field.get)(compiled),
                (field.get)(from_request)
            )
        })
        .collect();
    if differing.is_empty() {
        return Ok(());
    }
    let problem = format!(
        "the official LoadGen has its mlperf.conf compiled in, with other values: {}; hint: use a plug-in of the \
         round's revision, or leave out the conf",
        differing.join(", ")
    );
    Err(LoadgenError::Settings {
        scenario: request.scenario,
        problem,
    })
}

/// Applies the steps of `StartTest` before the run: the audit's settings, then TEST05's seeds from before the audit.
fn after_audit(before: &TestSettings, request: &RunRequest) -> Result<TestSettings, LoadgenError> {
    let mut settings = before.clone();
    if let Some(audit) = &request.audit_config {
        apply(&mut settings, audit, ConfKind::Audit, "*")?;
    }
    if settings.test05 {
        settings.mode = Mode::PerformanceOnly;
        settings.qsl_rng_seed = before.test05_qsl_rng_seed;
        settings.sample_index_rng_seed = before.test05_sample_index_rng_seed;
        settings.schedule_rng_seed = before.test05_schedule_rng_seed;
    }
    Ok(settings)
}

fn write_file(files: &TempDir, name: &str, conf: &ConfText) -> Result<PathBuf, LoadgenError> {
    let path = files.path().join(name);
    match fs::write(&path, &conf.text) {
        Ok(()) => Ok(path),
        Err(source) => Err(PrepareError::Write { path, source }.into()),
    }
}

fn path_text(path: &std::path::Path) -> Result<String, LoadgenError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| PrepareError::NotUtf8(path.to_owned()).into())
}

fn explain(request: &RunRequest, refusal: Refusal) -> LoadgenError {
    LoadgenError::Settings {
        scenario: request.scenario,
        problem: refusal.words,
    }
}
