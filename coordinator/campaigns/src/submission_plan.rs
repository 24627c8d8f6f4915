//! The campaign of a submission: accuracy and performance runs of every required scenario, then the audits of the round.
//!
//! The plan has the form that a user could have written, so that it is stored, estimated and repeated like any other plan.

use std::collections::BTreeMap;

use regatta_text::HumanDuration;
use regatta_types::{
    EngineKind, Mode, Scenario,
    documents::LoadgenChoice,
    engine_settings::{EngineBuild, EngineSettings},
};
use serde::{Serialize, Serializer};

use regatta_lab_store::{StatePreset, SystemChoice};

/// The measurements of one benchmark on some devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionCells {
    /// Device ids.
    pub devices: Vec<String>,
    pub benchmark: String,
    pub scenarios: Vec<Scenario>,
    /// The audits that the round requires.
    pub audits: Vec<String>,
    /// Whether to build engines first, so that a failing build is found before anything is measured.
    pub builds_engines: bool,
    /// Whether the first build calibrates again, although the devices have scales.
    pub calibrates_again: bool,
    /// The state to set. `None` leaves the devices as they are.
    pub state: Option<StatePreset>,
    pub loadgen: LoadgenChoice,
}

/// The settings that all runs of a submission share.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SubmissionSettings {
    pub round: String,
    /// `None` selects the best engine of each device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineKind>,
    /// The system whose settings apply.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "system")]
    pub system: Option<SystemChoice>,
    #[serde(skip_serializing_if = "is_default")]
    pub set: EngineSettings,
    /// Lines for `user.conf`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub conf: BTreeMap<String, String>,
    /// Assets that the runs need in addition to the benchmark's files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asset: Vec<String>,
    /// Whether to limit performance runs to 60 s, for a rehearsal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub test_run: bool,
    /// Another duration of performance runs, for a rehearsal.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text")]
    pub duration: Option<HumanDuration>,
    /// The maximum time of a run on a device.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text")]
    pub run_limit: Option<HumanDuration>,
}

fn is_default(settings: &EngineSettings) -> bool {
    *settings == EngineSettings::default()
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn text<S: Serializer>(value: &Option<HumanDuration>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&value.map(|value| value.to_string()).unwrap_or_default())
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn system<S: Serializer>(value: &Option<SystemChoice>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match value {
        None | Some(SystemChoice::OwnIfAny | SystemChoice::Own) => SystemChoice::OWN,
        Some(SystemChoice::None) => SystemChoice::NONE,
        Some(SystemChoice::Named(name)) => name,
    })
}

#[derive(Serialize)]
struct PlanFile<'a> {
    schema: u16,
    name: &'a str,
    cells: Vec<Table<'a>>,
}

#[derive(Serialize)]
struct Table<'a> {
    devices: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'static str>,
    benchmark: &'a str,
    scenario: &'a [Scenario],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mode: Vec<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    audits: &'a [String],
    priority: i32,
    loadgen: String,
    #[serde(flatten)]
    settings: SubmissionSettings,
}

/// Returns the text of the plan.
///
/// # Errors
/// Returns the serializer's error. This does not happen in practice, because TOML can represent numbers, strings and lists.
pub fn submission_plan(
    name: &str,
    cells: &[SubmissionCells],
    settings: &SubmissionSettings,
) -> Result<String, toml::ser::Error> {
    let builds = cells.iter().filter(|cells| cells.builds_engines);
    let builds = builds.map(|cells| build(cells, settings));
    let calibrations = cells.iter().filter(|cells| cells.calibrates_again);
    let calibrations = calibrations.map(|cells| calibration(cells, settings));
    let measured = cells.iter().map(|cells| measurements(cells, settings));
    toml::to_string(&PlanFile {
        schema: 1,
        name,
        cells: calibrations.chain(builds).chain(measured).collect(),
    })
}

fn build<'a>(cells: &'a SubmissionCells, settings: &SubmissionSettings) -> Table<'a> {
    Table {
        placement: None,
        task: Some("engine-build"),
        mode: Vec::new(),
        audits: &[],
        priority: 1,
        settings: SubmissionSettings {
            conf: BTreeMap::new(),
            test_run: false,
            duration: None,
            ..settings.clone()
        },
        ..measurements(cells, settings)
    }
}

/// Returns the build that calibrates again, which is before the others: it discards the engines of earlier calibrations.
fn calibration<'a>(cells: &'a SubmissionCells, settings: &SubmissionSettings) -> Table<'a> {
    let mut table = build(cells, settings);
    table.scenario = table.scenario.get(..1).unwrap_or_default();
    table.priority = 2;
    table.settings.set.engine_build = Some(EngineBuild::Recalibrate);
    table
}

fn measurements<'a>(cells: &'a SubmissionCells, settings: &SubmissionSettings) -> Table<'a> {
    Table {
        devices: &cells.devices,
        placement: Some("each"),
        task: None,
        benchmark: &cells.benchmark,
        scenario: &cells.scenarios,
        mode: vec![Mode::AccuracyOnly, Mode::PerformanceOnly],
        state: cells.state.map(|state| [state.as_str()]),
        audits: &cells.audits,
        priority: 0,
        loadgen: cells.loadgen.to_string(),
        settings: settings.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CampaignPlan;

    fn cells() -> SubmissionCells {
        SubmissionCells {
            devices: vec!["ab".repeat(16)],
            benchmark: "resnet50".to_owned(),
            scenarios: vec![Scenario::SingleStream, Scenario::Offline],
            audits: vec!["TEST01".to_owned()],
            builds_engines: true,
            calibrates_again: false,
            state: Some(StatePreset::MaxP),
            loadgen: LoadgenChoice::Official { revision: None },
        }
    }

    #[test]
    fn a_submission_is_a_plan_that_reads_back() {
        let settings = SubmissionSettings {
            round: "v6.1".to_owned(),
            engine: Some(EngineKind::Tensorrt),
            system: Some(SystemChoice::Named("agx-orin-64gb".to_owned())),
            set: EngineSettings {
                gpu_batch_size: Some(16),
                ..EngineSettings::default()
            },
            conf: [("target_qps".to_owned(), "500".to_owned())].into(),
            asset: vec!["models/calibration.cache".to_owned()],
            duration: Some("3s".parse().unwrap()),
            run_limit: Some("6h".parse().unwrap()),
            ..SubmissionSettings::default()
        };
        let text = submission_plan("submission-1", &[cells()], &settings).unwrap();
        let plan = CampaignPlan::read(&text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
        let tables: Vec<_> = plan.cells.iter().map(|table| table.get_ref()).collect();
        let [build, measured] = tables.as_slice() else {
            panic!("{text}")
        };
        assert!(build.priority > measured.priority && build.task().as_str() == "engine-build");
        assert_eq!(measured.scenario, [Scenario::SingleStream, Scenario::Offline]);
        assert_eq!(measured.mode, [Mode::AccuracyOnly, Mode::PerformanceOnly]);
        assert_eq!(measured.audits.len(), 1);
        for table in [build, measured] {
            assert_eq!(plan.placement(table).unwrap(), regatta_lab_store::Placement::Each);
        }
    }

    #[test]
    fn the_build_that_calibrates_again_is_the_first() {
        let cells = SubmissionCells {
            calibrates_again: true,
            ..cells()
        };
        let text = submission_plan("s", &[cells], &SubmissionSettings::default()).unwrap();
        let plan = CampaignPlan::read(&text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
        let tables: Vec<_> = plan.cells.iter().map(|table| table.get_ref()).collect();
        let [calibration, build, measured] = tables.as_slice() else {
            panic!("{text}")
        };
        assert_eq!(calibration.scenario, [Scenario::SingleStream]);
        assert!(calibration.priority > build.priority && build.priority > measured.priority);
        assert_eq!(
            text.matches("engine_build = \"recalibrate\"").count(),
            1,
            "{text}"
        );
    }

    #[test]
    fn a_submission_with_defaults_reads_back() {
        let settings = SubmissionSettings {
            round: "v6.1".to_owned(),
            ..SubmissionSettings::default()
        };
        let cells = SubmissionCells {
            builds_engines: false,
            state: None,
            audits: Vec::new(),
            ..cells()
        };
        let text = submission_plan("s", &[cells], &settings).unwrap();
        let plan = CampaignPlan::read(&text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
        assert_eq!(plan.cells.len(), 1);
    }
}
