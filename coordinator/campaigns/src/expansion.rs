//! Expands a plan to combinations and cells, and checks every one of them against the devices, before anything starts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regatta_catalogue::catalogue::Catalogue;
use regatta_text::ErrorChain;
use regatta_types::{Mode, documents::EngineKind};
use toml::Spanned;

use super::{
    audits::Audits,
    cell_table::CellTable,
    choices::{Choice, choices},
    device_selection::selected_devices,
    order::{self, CellOrder},
    plan_file::CampaignPlan,
    plan_problem::PlanProblem,
    power_sessions::{is_measured, meter},
};
use regatta_lab_runs::{KnownRequest, ResolveError, RunFiles};
use regatta_lab_store::{
    AuditedCells, CampaignRow, CampaignState, Combination, DeviceRow, NewCell, Placement, RunDraft,
    RunRequest,
};

/// The largest number of cells of a campaign.
const MAX_CELLS: u64 = 100_000;

/// The devices, benchmarks and assets with which a plan is checked.
pub struct Lab<'a> {
    /// Every device that has not been removed.
    pub devices: &'a [DeviceRow],
    /// The benchmarks, rounds and systems.
    pub catalogue: &'a Catalogue,
    /// The assets.
    pub files: &'a RunFiles<'a>,
    /// The names of the power meters.
    pub meters: &'a [String],
}

/// A plan with all its cells.
#[derive(Debug)]
pub struct ExpandedPlan {
    /// The campaign, as it starts.
    pub campaign: CampaignRow,
    pub combinations: Vec<Combination>,
    /// A draft of each combination for one of its devices.
    pub drafts: Vec<RunDraft>,
    /// The number of times that each combination is run, on each of its devices if it is placed on each.
    pub repeats: Vec<u64>,
    /// The cells in their order.
    pub cells: Vec<NewCell>,
}

/// Expands a plan for a start at `now`.
///
/// # Errors
/// Returns [`PlanProblem`] for the first problem.
pub fn expand(plan: &CampaignPlan, lab: &Lab<'_>, now: Timestamp) -> Result<ExpandedPlan, PlanProblem> {
    let deadline = plan.deadline_from(now)?;
    let mut expansion = Expansion {
        plan,
        lab,
        combinations: Vec::new(),
        drafts: Vec::new(),
        repeats: Vec::new(),
        cells: Vec::new(),
    };
    for table in &plan.cells {
        expansion.add(table)?;
    }
    expansion.cells.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(ExpandedPlan {
        campaign: CampaignRow {
            name: plan.name.clone(),
            plan_sha256: plan.sha256.clone(),
            seed: plan.seed,
            retries: plan.retries,
            rate_retries: plan.rate_retries,
            lose_after_s: plan.lose_after_s,
            deadline: deadline.map(|at| at.to_string()),
            state: CampaignState::Running,
            started: now.to_string(),
            ended: None,
            revision: 0,
        },
        combinations: expansion.combinations,
        drafts: expansion.drafts,
        repeats: expansion.repeats,
        cells: expansion.cells.into_iter().map(|(_, cell)| cell).collect(),
    })
}

struct Expansion<'a> {
    plan: &'a CampaignPlan,
    lab: &'a Lab<'a>,
    combinations: Vec<Combination>,
    drafts: Vec<RunDraft>,
    repeats: Vec<u64>,
    cells: Vec<(CellOrder, NewCell)>,
}

/// A combination whose cells follow those of others.
struct Dependent<'a> {
    /// The kind of the cells.
    kind: DependentKind<'a>,
    /// The place after the table's modes.
    order: usize,
    /// The combination of the performance runs.
    combination: usize,
    /// The first cells that are followed.
    first: AuditedCells,
}

#[derive(Clone, Copy)]
enum DependentKind<'a> {
    /// Audits by this compliance test.
    Audit(&'a str),
    /// Power sessions with this meter.
    Power(&'a str),
}

/// The place of power sessions: after modes and audits.
const POWER_ORDER: usize = usize::MAX;

impl<'a> Expansion<'a> {
    fn add(&mut self, spanned: &'a Spanned<CellTable>) -> Result<(), PlanProblem> {
        let table = spanned.get_ref();
        let place = table.benchmark.span();
        let placement = self.plan.placement(table)?;
        let devices = selected_devices(self.plan, table, placement, self.lab.devices)?;
        let repeat = match &table.repeat {
            None => 1,
            Some(repeat) if *repeat.get_ref() == 0 => {
                return Err(self
                    .plan
                    .problem(&repeat.span(), "`repeat` is 0, so nothing would run"));
            }
            Some(repeat) => *repeat.get_ref(),
        };
        let choices = choices(self.plan, table, self.lab.catalogue)?;
        let modes: Vec<Mode> = choices.iter().map(|choice| choice.request.mode).collect();
        let audits = Audits::of(
            self.plan,
            table,
            &modes,
            placement,
            devices.len(),
            self.lab.catalogue,
        )?;
        let power = meter(self.plan, table, &modes, devices.len(), self.lab.meters)?;
        let sessions = power.map_or(0, |_| modes.iter().filter(|mode| is_measured(**mode)).count());
        let combinations = choices
            .len()
            .saturating_add(audits.combinations())
            .saturating_add(sessions);
        let per_repeat = match placement {
            Placement::Each => combinations.saturating_mul(devices.len()),
            Placement::Any | Placement::Same => combinations,
        };
        let more = repeat.saturating_mul(per_repeat as u64);
        let total = more.saturating_add(self.cells.len() as u64);
        if total > MAX_CELLS {
            return Err(self
                .plan
                .problem(
                    &place,
                    format!("this table brings the campaign to {total} cells; the maximum is {MAX_CELLS}"),
                )
                .hint("use fewer repeats or shorter lists, or split the plan into several campaigns"));
        }
        let mut numbers = Vec::with_capacity(choices.len());
        for choice in &choices {
            let first_cell = self.cells.len() as u64 + 1;
            numbers.push((self.combinations.len(), first_cell));
            self.add_combination(table, choice, placement, &devices, repeat, None)?;
        }
        for audit in audits.each() {
            let (performance, accuracy) = (numbers.get(audit.performance), numbers.get(audit.accuracy));
            let (Some((combination, performance)), Some((_, accuracy)), Some(choice)) =
                (performance, accuracy, choices.get(audit.performance))
            else {
                continue;
            };
            let audit = Dependent {
                kind: DependentKind::Audit(audit.test),
                order: audit.order,
                combination: *combination,
                first: AuditedCells {
                    performance: *performance,
                    accuracy: *accuracy,
                },
            };
            self.add_combination(table, choice, placement, &devices, repeat, Some(&audit))?;
        }
        let followed = choices.iter().zip(&numbers);
        for (choice, (combination, cell)) in followed.filter(|(choice, _)| is_measured(choice.request.mode)) {
            let Some(meter) = power else { break };
            let session = Dependent {
                kind: DependentKind::Power(meter),
                order: POWER_ORDER,
                combination: *combination,
                first: AuditedCells {
                    performance: *cell,
                    accuracy: *cell,
                },
            };
            self.add_combination(table, choice, placement, &devices, repeat, Some(&session))?;
        }
        Ok(())
    }

    /// Adds a combination with its cells. The cells of a dependent one follow those of the same repetition and device.
    fn add_combination(
        &mut self,
        table: &CellTable,
        choice: &Choice<'_>,
        placement: Placement,
        devices: &[&DeviceRow],
        repeat: u64,
        dependent: Option<&Dependent<'_>>,
    ) -> Result<(), PlanProblem> {
        let number = self.combinations.len() as u64;
        let known = dependent.and_then(|dependent| self.drafts.get(dependent.combination));
        let draft = match known {
            Some(draft) => draft.clone(),
            None => self.check(table, &choice.request, devices)?,
        };
        self.drafts.push(draft);
        let rank = order::combination_rank(self.plan.seed, number);
        let own: Vec<Option<&DeviceRow>> = match placement {
            Placement::Each => devices.iter().map(|device| Some(*device)).collect(),
            Placement::Any | Placement::Same => vec![None],
        };
        let mut audited = dependent.map(|dependent| dependent.first);
        for repetition in 1..=repeat {
            for device in &own {
                let place = CellOrder {
                    after_priority: -i64::from(table.priority),
                    // Assets and engines come before the runs that need them.
                    repetition: if table.task().is_measurement() {
                        repetition
                    } else {
                        0
                    },
                    mode: dependent.map_or(choice.mode_index, |dependent| dependent.order),
                    rank: rank.clone(),
                    device: device
                        .map_or_else(String::new, |row| order::device_rank(self.plan.seed, &row.id)),
                };
                let cell = NewCell {
                    number: self.cells.len() as u64 + 1,
                    combination: number,
                    repetition,
                    device: device.map(|row| row.id.clone()),
                    audited,
                };
                self.cells.push((place, cell));
                // The cells of each combination have consecutive numbers, in the same order of repetitions and devices.
                if let Some(cells) = &mut audited {
                    cells.performance += 1;
                    cells.accuracy += 1;
                }
            }
        }
        self.repeats.push(repeat);
        let kind = dependent.map(|dependent| dependent.kind);
        self.combinations.push(Combination {
            number,
            request: choice.request.clone(),
            variant: choice.variant.map(|variant| variant.name.clone()),
            audit: match kind {
                Some(DependentKind::Audit(test)) => Some(test.to_owned()),
                _ => None,
            },
            meter: match kind {
                Some(DependentKind::Power(meter)) => Some(meter.to_owned()),
                _ => None,
            },
            placement,
            priority: i64::from(table.priority),
            devices: devices.iter().map(|row| row.id.clone()).collect(),
        });
        Ok(())
    }

    /// Returns a draft for the first device, after every device was checked. Devices with the same engines, model and helper are alike.
    fn check(
        &self,
        table: &CellTable,
        request: &RunRequest,
        devices: &[&DeviceRow],
    ) -> Result<RunDraft, PlanProblem> {
        let place = table.benchmark.span();
        let refused = |error: ResolveError, device: Option<&DeviceRow>| {
            let chain = ErrorChain(&error).to_string();
            let what = match device {
                Some(device) if !chain.contains(&device.name) => format!("on {}: {chain}", device.name),
                _ => chain,
            };
            PlanProblem {
                hint: error.hint(),
                ..self.plan.problem(&place, what)
            }
        };
        let known = KnownRequest::find(request, self.lab.catalogue).map_err(|error| refused(error, None))?;
        let mut kinds: BTreeMap<(Vec<EngineKind>, String), &DeviceRow> = BTreeMap::new();
        for device in devices {
            // The default engine depends on the GPUs and on TensorRT.
            let model = device.reported_facts().map(|facts| {
                format!(
                    "{} {:?} {:?} {:?} {:?}",
                    facts.model, facts.module, facts.gpus, facts.tensorrt_obstacle, facts.state_helper
                )
            });
            kinds
                .entry((device.engines.clone(), model.unwrap_or_default()))
                .or_insert(device);
        }
        let mut first = None;
        for device in kinds.values() {
            let on_device = |error| refused(error, Some(device));
            let draft = known.draft_with_files(device, self.lab.files);
            first.get_or_insert(draft.map_err(on_device)?);
        }
        first.ok_or_else(|| self.plan.problem(&place, "these cells have no device"))
    }
}
