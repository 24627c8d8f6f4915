//! Tests of reading plans.

use proptest::prelude::*;

use regatta_lab_store::SystemChoice;
use regatta_types::{
    EngineKind, Mode, Scenario,
    documents::{RunLength, RunTask},
};

use super::*;
use crate::cell_table::CellValues;

const CELLS: &str = "[[cells]]\nbenchmark = 'digits'\nscenario = ['Offline']\n";

fn problem(head: &str) -> String {
    CampaignPlan::read(&format!("schema = 1\n{head}{CELLS}"))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_plan_has_defaults_and_a_hash() {
    let plan = CampaignPlan::read(&format!("schema = 1\nname = 'weekend'\n{CELLS}")).unwrap();
    assert_eq!((plan.retries, plan.rate_retries, plan.lose_after_s), (2, 2, 600));
    assert_eq!(plan.sha256.len(), 64);
    assert_eq!(plan.placement(plan.cells[0].get_ref()).unwrap(), Placement::Any);
    assert_eq!(plan.deadline_from(Timestamp::UNIX_EPOCH).unwrap(), None);
}

#[test]
fn the_example_is_a_plan() {
    let plan = CampaignPlan::read(include_str!("../../../../configs/examples/campaign.toml")).unwrap();
    assert_eq!((plan.name.as_str(), plan.cells.len()), ("weekend", 1));
}

#[test]
fn problems_have_their_line() {
    for (head, expected) in [
        ("name = 'a b'\n", "line 2: invalid campaign name `a b`: use 1 to"),
        ("name = 'a'\nseed = -1\n", "line 3: "),
        ("name = 'a'\nsed = 1\n", "line 3: unknown field `sed`"),
        (
            "name = 'a'\ndeadline = 'soon'\n",
            "line 3: the deadline `soon` is neither",
        ),
        (
            "name = 'a'\n\nlose_device_after = '10'\n",
            "line 4: `10` is not a duration",
        ),
        (
            "name = 'a'\n[gate]\nmax_temperature = 'hot'\n",
            "line 4: `hot` is not a temperature",
        ),
        ("name = 'a'\nrun_limit = '1'\n", "line 3: `1` is not a duration"),
        (
            "name = 'a'\nsoftware = 'old'\n",
            "line 3: unknown variant `old`, expected `same` or `any`",
        ),
        ("name = 'a'\ngate = { wait = '5m' }\n", "line 3: the gate has no"),
    ] {
        let found = problem(head);
        assert!(found.starts_with(expected), "{found}");
    }
    let newer = CampaignPlan::read("schema = 9\nname = 'a'").unwrap_err();
    assert!(newer.to_string().starts_with("line 1: the plan has schema 9"));
    let empty = CampaignPlan::read("schema = 1\nname = 'a'").unwrap_err();
    assert_eq!(empty.to_string(), "the plan has no [[cells]]");
}

#[test]
fn other_tasks_are_for_each_device_and_have_no_keys_of_measurements() {
    let read = |keys: &str| {
        let plan = CampaignPlan::read(&format!("schema = 1\nname = 'a'\n{CELLS}{keys}")).unwrap();
        let placed = plan
            .placement(plan.cells[0].get_ref())
            .map_err(|problem| problem.to_string());
        let values = CellValues {
            scenario: Scenario::Offline,
            mode: Mode::PerformanceOnly,
            state: None,
            variant: None,
        };
        (placed, plan.cells[0].get_ref().request(&values).unwrap())
    };
    let (placed, request) = read("task = 'engine-build'\n");
    assert_eq!(placed, Ok(Placement::Each));
    assert_eq!(
        (request.task, request.engine.kind),
        (RunTask::EngineBuild, Some(EngineKind::Tensorrt))
    );
    let (placed, request) = read("task = 'tune'\nduration = '30m'\n");
    assert_eq!(placed, Ok(Placement::Each));
    assert_eq!(
        (request.system, request.length),
        (SystemChoice::None, RunLength::Duration(1_800_000))
    );
    for (key, value) in [
        ("mode", "'AccuracyOnly'"),
        ("repeat", "2"),
        ("placement", "'any'"),
        ("audits", "'TEST01'"),
        ("power", "'wt310'"),
        ("duration", "'3s'"),
    ] {
        let (refused, _) = read(&format!("task = 'asset-fetch'\n{key} = {value}\n"));
        let expected = format!("line 6: `{key}` does not apply to cells with task `asset-fetch`");
        assert_eq!(refused, Err(expected));
    }
    let unknown = problem("name = 'a'\n[[cells]]\nbenchmark = 'a'\nscenario = 'Offline'\ntask = 'sleep'\n");
    assert!(
        unknown.starts_with("line 6: unknown variant `sleep`"),
        "{unknown}"
    );
}

#[test]
fn a_deadline_is_a_time_or_a_duration() {
    let now: Timestamp = "2026-11-27T18:00:00Z".parse().unwrap();
    let end = |deadline: &str| {
        let text = format!("schema = 1\nname = 'a'\ndeadline = {deadline}\n{CELLS}");
        CampaignPlan::read(&text).unwrap().deadline_from(now)
    };
    let monday: Timestamp = "2026-11-30T06:00:00Z".parse().unwrap();
    assert_eq!(end("'60h'").unwrap(), Some(monday));
    assert_eq!(end("2026-11-30T06:00:00Z").unwrap(), Some(monday));
    assert_eq!(end("'2026-11-30T06:00:00Z'").unwrap(), Some(monday));
    let passed = end("'2026-11-01T00:00:00Z'").unwrap_err();
    assert!(
        passed
            .to_string()
            .starts_with("line 3: the deadline 2026-11-01T00:00:00Z has passed")
    );
    let beyond = end("'99999999d'").unwrap_err().to_string();
    assert!(beyond.ends_with("is beyond the calendar"), "{beyond}");
}

#[test]
fn single_value_needs_no_list_in_a_campaign() {
    let read = |scenario: &str| {
        CampaignPlan::read(&format!(
            "schema = 1\nname = 'a'\n[[cells]]\nbenchmark = 'digits'\nlabels = 'rack-3'\nscenario = {scenario}\n"
        ))
    };
    let plan = read("'Offline'").unwrap();
    let table = plan.cells[0].get_ref();
    assert_eq!(table.labels[0].get_ref(), "rack-3");
    assert_eq!(table.scenario, [Scenario::Offline]);
    assert_eq!(plan.problem(&table.labels[0].span(), "").line, Some(5));
    let unknown = read("['Offline', 'Onlin']").unwrap_err().to_string();
    assert!(
        unknown.starts_with("line 6: unknown scenario `Onlin`; known are"),
        "{unknown}"
    );
    let refused = read("7").unwrap_err().to_string();
    assert_eq!(
        refused,
        "line 6: `scenario`: expected a string or a list of strings, found integer `7`"
    );
}

proptest! {
    #[test]
    fn no_text_panics(text in "(schema = 1\n)?(name = '[a-z]{0,3}'\n)?(deadline = [0-9TZ:'h-]{0,12}\n)?(\\[\\[cells\\]\\]\n)?.{0,40}") {
        drop(CampaignPlan::read(&text));
    }
}
