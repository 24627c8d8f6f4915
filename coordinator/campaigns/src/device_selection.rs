//! The devices that a table of a plan selects by name, id and label.

use toml::Spanned;

use super::{cell_table::CellTable, plan_file::CampaignPlan, plan_problem::PlanProblem};
use regatta_lab_store::{DeviceRow, Placement};

/// Returns the selected devices, each once. Without a selection it is the only device.
///
/// # Errors
/// Returns [`PlanProblem`] for an unknown or ambiguous device and for a label that no device has.
pub(super) fn selected_devices<'a>(
    plan: &CampaignPlan,
    table: &CellTable,
    placement: Placement,
    known: &'a [DeviceRow],
) -> Result<Vec<&'a DeviceRow>, PlanProblem> {
    let place = &table.benchmark.span();
    if known.is_empty() {
        return Err(plan
            .problem(place, "no device has connected yet")
            .hint("start `regatta serve` here and `regatta-agent serve` on the devices"));
    }
    if table.devices.is_empty() && table.labels.is_empty() {
        return match known {
            [only] => Ok(vec![only]),
            _ => Err(plan
                .problem(
                    place,
                    format!(
                        "these cells name no device, and {} are known; placement is {placement}",
                        known.len()
                    ),
                )
                .hint("add devices = [\"NAME\"], devices = [\"all\"] or labels = [\"LABEL\"]")),
        };
    }
    let mut selected: Vec<&DeviceRow> = Vec::new();
    for name in &table.devices {
        selected.extend(named(plan, name, known)?);
    }
    for label in &table.labels {
        selected.extend(labelled(plan, label, known)?);
    }
    selected.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
    selected.dedup_by(|one, other| one.id == other.id);
    Ok(selected)
}

fn named<'a>(
    plan: &CampaignPlan,
    name: &Spanned<String>,
    known: &'a [DeviceRow],
) -> Result<Vec<&'a DeviceRow>, PlanProblem> {
    /// The name of every device.
    const ALL: &str = "all";
    let word = name.get_ref().as_str();
    if word == ALL {
        return Ok(known.iter().collect());
    }
    let found: Vec<_> = known
        .iter()
        .filter(|row| row.name == word || row.id.as_str() == word)
        .collect();
    match found.as_slice() {
        [_] => Ok(found),
        [] => {
            let names: Vec<&str> = known.iter().map(|row| row.name.as_str()).collect();
            let what = format!("unknown device `{word}`; known are {}", names.join(", "));
            Err(plan
                .problem(&name.span(), what)
                .hint("`regatta device list` shows them"))
        }
        _ => {
            let what = format!("{} devices are called `{word}`", found.len());
            Err(plan
                .problem(&name.span(), what)
                .hint("name it by its id, which `regatta device list` shows"))
        }
    }
}

fn labelled<'a>(
    plan: &CampaignPlan,
    label: &Spanned<String>,
    known: &'a [DeviceRow],
) -> Result<Vec<&'a DeviceRow>, PlanProblem> {
    let word = label.get_ref();
    let found: Vec<_> = known
        .iter()
        .filter(|row| row.labels.iter().any(|own| own.to_string() == *word))
        .collect();
    if found.is_empty() {
        return Err(plan
            .problem(&label.span(), format!("no device has the label `{word}`"))
            .hint(format!("`regatta device label NAME +{word}` gives it to one")));
    }
    Ok(found)
}
