//! The search space: the search rules of the declared settings on a machine, limited to what its engines support. This
//! module does not measure.

use regatta_types::{
    EngineKind, Scenario,
    engine_settings::{Bound, EngineSettings, SETTINGS, SearchRule, SearchValues, Setting, SettingValue},
};

use super::engines::EngineLimits;

#[derive(Debug, Clone)]
struct SearchedSetting {
    setting: &'static Setting,
    values: Vec<SettingValue>,
    /// Positions of the values in the first round.
    coarse: Vec<usize>,
    /// Whether the setting has no effect without DLA cores.
    of_dla: bool,
}

/// A choice: the position of each setting's value.
pub(super) type Candidate = Vec<usize>;

/// All settings of the search.
#[derive(Debug, Clone)]
pub(super) struct Space {
    dimensions: Vec<SearchedSetting>,
}

/// The properties of a machine that affect the space.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// Logical processors.
    pub(super) cpus: usize,
    /// DLA cores.
    pub(super) dlas: usize,
    /// Samples of a MultiStream query.
    pub(super) samples_per_query: usize,
    /// The existing engines, if no engine is to be built.
    pub(super) engines: Option<EngineLimits>,
}

/// The setting for the number of DLA cores.
const MAX_DLAS: &str = "max_dlas";
/// The setting for the number of GPU batches in flight.
const GPU_STREAMS: &str = "gpu_copy_streams";

impl Space {
    /// Returns the settings of an engine in a scenario, except those that the user has `fixed`. Values of the
    /// configurations in `seeds` are added.
    pub(super) fn new(
        engine: EngineKind,
        scenario: Scenario,
        machine: &Machine,
        fixed: &EngineSettings,
        seeds: &[EngineSettings],
    ) -> Self {
        let searched = SETTINGS.iter().filter_map(|setting| {
            let rule = setting.search_rule(engine, scenario)?;
            SearchedSetting::of(setting, rule, machine)
        });
        let mut dimensions: Vec<SearchedSetting> = searched.collect();
        dimensions.retain(|dimension| fixed.value(dimension.setting.name).is_none());
        for dimension in &mut dimensions {
            for seed in seeds {
                dimension.learn(seed.value(dimension.setting.name));
            }
        }
        Self { dimensions }
    }

    /// Returns the number of choices.
    pub(super) fn size(&self) -> usize {
        self.dimensions
            .iter()
            .map(|dimension| dimension.values.len())
            .fold(1, usize::saturating_mul)
    }

    /// Returns the settings' names, in the order of a candidate's positions.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.dimensions.iter().map(|dimension| dimension.setting.name)
    }

    /// Returns the most GPU streams of any choice.
    pub(super) fn most_streams(&self, fixed: &EngineSettings) -> usize {
        let searched = self
            .dimensions
            .iter()
            .filter(|dimension| dimension.setting.name == GPU_STREAMS);
        let values = searched
            .flat_map(|dimension| &dimension.values)
            .filter_map(number);
        values.chain(fixed.gpu_copy_streams).max().unwrap_or(1)
    }

    /// Returns the unique choices of the first round.
    pub(super) fn coarse(&self) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = vec![Vec::new()];
        for dimension in &self.dimensions {
            all = all
                .iter()
                .flat_map(|begun| {
                    dimension
                        .coarse
                        .iter()
                        .map(|&position| begun.iter().copied().chain([position]).collect())
                })
                .collect();
        }
        let mut once: Vec<Candidate> = Vec::new();
        for candidate in all {
            self.add(candidate, &mut once);
        }
        once
    }

    /// Returns a configuration as a choice. Missing settings have their first value of the first round.
    pub(super) fn of_settings(&self, settings: &EngineSettings) -> Candidate {
        let position = |dimension: &SearchedSetting| {
            let known = settings
                .value(dimension.setting.name)
                .and_then(|found| dimension.values.iter().position(|value| *value == found));
            known.or_else(|| dimension.coarse.first().copied()).unwrap_or(0)
        };
        self.canonical(self.dimensions.iter().map(position).collect())
    }

    /// Returns the choices that differ by one step of one setting.
    pub(super) fn neighbours(&self, candidate: &Candidate) -> Vec<Candidate> {
        let mut near = Vec::new();
        for (place, dimension) in self.dimensions.iter().enumerate() {
            let position = candidate[place];
            let up = (position + 1 < dimension.values.len()).then_some(position + 1);
            for step in up.into_iter().chain(position.checked_sub(1)) {
                let mut other = candidate.clone();
                other[place] = step;
                self.add(other, &mut near);
            }
        }
        near.retain(|other| other != candidate);
        near
    }

    /// Returns the settings of a choice.
    pub(super) fn settings(&self, candidate: &Candidate) -> EngineSettings {
        let without_dla = self.without_dla(candidate);
        let mut settings = EngineSettings::default();
        for (dimension, &position) in self.dimensions.iter().zip(candidate) {
            if !(dimension.of_dla && without_dla) {
                // Every value of the space is valid.
                let _ = settings.set(dimension.setting, &dimension.values[position]);
            }
        }
        settings
    }

    /// Returns the cost of a choice besides its time: the sum of its positions.
    pub(super) fn cost(candidate: &Candidate) -> usize {
        candidate.iter().sum()
    }

    fn add(&self, candidate: Candidate, to: &mut Vec<Candidate>) {
        let candidate = self.canonical(candidate);
        if !to.contains(&candidate) {
            to.push(candidate);
        }
    }

    /// Returns the canonical one of equivalent choices.
    fn canonical(&self, mut candidate: Candidate) -> Candidate {
        if self.without_dla(&candidate) {
            for (dimension, position) in self.dimensions.iter().zip(&mut candidate) {
                if dimension.of_dla {
                    *position = dimension.coarse.first().copied().unwrap_or(0);
                }
            }
        }
        candidate
    }

    fn without_dla(&self, candidate: &Candidate) -> bool {
        let mut dimensions = self.dimensions.iter().zip(candidate);
        dimensions.any(|(dimension, &position)| {
            dimension.setting.name == MAX_DLAS && number(&dimension.values[position]) == Some(0)
        })
    }
}

impl SearchedSetting {
    /// Returns a setting on a machine. `None` if there is nothing to search.
    fn of(setting: &'static Setting, rule: &SearchRule, machine: &Machine) -> Option<Self> {
        if rule.needs_dla && !machine.uses_dla() {
            return None;
        }
        let numbers = match rule.values {
            SearchValues::Words(words) => return Some(Self::words(setting, words)),
            SearchValues::Doublings(most) => {
                regatta_unit_sharing::unit_profiler::doublings(machine.number(most))
            }
            SearchValues::UpTo(most) => (0..=machine.number(most)).collect(),
            SearchValues::Numbers(numbers) => numbers.to_vec(),
        };
        let first: Vec<usize> = rule.first.iter().map(|&bound| machine.number(bound)).collect();
        let mut dimension = Self::counts(setting, machine.possible(setting.name, numbers), &first);
        dimension.of_dla = rule.needs_dla && setting.name != MAX_DLAS;
        Some(dimension)
    }

    /// Returns a setting with numeric values. The first round tries those in `coarse`.
    fn counts(setting: &'static Setting, mut values: Vec<usize>, coarse: &[usize]) -> Self {
        values.sort_unstable();
        values.dedup();
        let place = |value: &usize| values.iter().position(|known| known == value);
        let mut places: Vec<usize> = coarse.iter().filter_map(place).collect();
        if places.is_empty() {
            places.push(0);
        }
        Self {
            setting,
            coarse: places,
            values: values
                .iter()
                .map(|&value| SettingValue::Integer(value as u64))
                .collect(),
            of_dla: false,
        }
    }

    /// Returns a setting with words as values. The first round tries the first one.
    fn words(setting: &'static Setting, values: &[&str]) -> Self {
        Self {
            setting,
            values: values
                .iter()
                .filter_map(|text| setting.parse(text).ok())
                .collect(),
            coarse: vec![0],
            of_dla: false,
        }
    }

    /// Inserts a number in its order, if it is missing.
    fn learn(&mut self, value: Option<SettingValue>) {
        let Some(value) = value.filter(|value| !self.values.contains(value)) else {
            return;
        };
        let Some(found) = number(&value) else { return };
        let before = |known: &&SettingValue| number(known).is_some_and(|known| known < found);
        let place = self.values.iter().take_while(before).count();
        self.values.insert(place, value);
        for position in self.coarse.iter_mut().filter(|position| **position >= place) {
            *position += 1;
        }
    }
}

fn number(value: &SettingValue) -> Option<usize> {
    match value {
        SettingValue::Integer(number) => usize::try_from(*number).ok(),
        _ => None,
    }
}

impl Machine {
    /// Returns whether the search may use DLA cores.
    fn uses_dla(&self) -> bool {
        let here = self.engines.as_ref();
        self.dlas > 0 && here.is_none_or(|here| !here.dla_batches.is_empty())
    }

    const fn number(&self, bound: Bound) -> usize {
        match bound {
            Bound::Number(number) => number,
            Bound::Processors => self.cpus,
            Bound::DlaCores => self.dlas,
            Bound::SamplesPerQuery => self.samples_per_query,
        }
    }

    /// Returns the values that the existing engines support, if no engine is to be built.
    fn possible(&self, setting: &str, values: Vec<usize>) -> Vec<usize> {
        let Some(here) = &self.engines else {
            return values;
        };
        let most = match setting {
            "gpu_batch_size" => here.gpu_batch,
            GPU_STREAMS => here.profiles,
            // A DLA engine has one batch size.
            "dla_batch_size" => return here.dla_batches.clone(),
            _ => return values,
        };
        values.into_iter().filter(|&value| value <= most.max(1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIN: Machine = Machine {
        cpus: 12,
        dlas: 2,
        samples_per_query: 8,
        engines: None,
    };

    fn description(space: &Space) -> String {
        let first = space.coarse();
        let dimensions = space.dimensions.iter().map(|dimension| {
            let values: Vec<String> = dimension.values.iter().map(ToString::to_string).collect();
            format!("{}={}", dimension.setting.name, values.join("/"))
        });
        format!(
            "{} choices, {} at first: {}",
            space.size(),
            first.len(),
            dimensions.collect::<Vec<_>>().join(" ")
        )
    }

    #[test]
    fn every_engine_and_scenario_has_a_space() {
        let nothing = EngineSettings::default();
        let mut lines = Vec::new();
        for engine in EngineKind::ALL {
            for scenario in Scenario::ALL {
                let space = Space::new(engine, scenario, &ORIN, &nothing, &[]);
                lines.push(format!("{engine} {scenario}: {}", description(&space)));
            }
        }
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn fixed_settings_are_not_searched_and_seed_values_are() {
        let fixed = EngineSettings {
            gpu_batch_size: Some(64),
            ..EngineSettings::default()
        };
        let seed = EngineSettings {
            dla_batch_size: Some(15),
            max_dlas: Some(2),
            ..EngineSettings::default()
        };
        let space = Space::new(
            EngineKind::Sim,
            Scenario::Offline,
            &ORIN,
            &fixed,
            std::slice::from_ref(&seed),
        );
        assert!(space.names().all(|name| name != "gpu_batch_size"));
        let settings = space.settings(&space.of_settings(&seed));
        assert_eq!(settings.dla_batch_size, Some(15));
        assert!(
            space
                .coarse()
                .iter()
                .all(|one| { space.settings(one).dla_batch_size.is_none_or(|batch| batch == 8) })
        );
    }

    #[test]
    fn without_dla_cores_their_settings_are_one_choice_and_are_left_out() {
        let nothing = EngineSettings::default();
        let space = Space::new(EngineKind::Sim, Scenario::Offline, &ORIN, &nothing, &[]);
        let without = space.of_settings(&EngineSettings {
            max_dlas: Some(0),
            ..EngineSettings::default()
        });
        assert_eq!(space.settings(&without).dla_batch_size, None);
        let near = space.neighbours(&without);
        let changed: Vec<_> = near
            .iter()
            .filter(|one| space.settings(one).max_dlas == Some(0))
            .collect();
        assert_eq!(changed.len(), 5, "batch up and down, streams up and down, spin");
    }

    #[test]
    fn without_building_only_what_the_engines_there_are_can_do_is_searched() {
        let machine = Machine {
            engines: Some(EngineLimits {
                gpu_batch: 100,
                profiles: 1,
                dla_batches: vec![3],
            }),
            ..ORIN
        };
        let of = |machine: &Machine| {
            let nothing = EngineSettings::default();
            description(&Space::new(
                EngineKind::Tensorrt,
                Scenario::Offline,
                machine,
                &nothing,
                &[],
            ))
        };
        let all = of(&machine);
        assert!(
            all.contains(
                "gpu_batch_size=1/2/4/8/16/32/64 gpu_copy_streams=1 max_dlas=0/1/2 dla_batch_size=3 "
            ),
            "{all}"
        );
        let without = of(&Machine {
            engines: Some(EngineLimits::default()),
            ..machine
        });
        assert!(!without.contains("dla"), "{without}");
    }
}
