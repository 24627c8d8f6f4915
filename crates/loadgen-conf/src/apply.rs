//! Applies conf files to a run's settings: LoadGen's `FromConfig`, key by key and in its order.

use regatta_types::{Mode, Scenario};

use super::{Conf, ConfError, ConfKind, ConfProblem, ConfWarning, Entry, Number, keys::Key};
use crate::TestSettings;

const NS_PER_MS: u64 = 1_000_000;

/// The keys of a round's seeds.
const SEEDS: [&str; 3] = ["qsl_rng_seed", "sample_index_rng_seed", "schedule_rng_seed"];

impl TestSettings {
    /// Applies the entries of `conf` for `model` and these settings' scenario. Call it for `mlperf.conf` first, then `user.conf`, then
    /// (within LoadGen) `audit.config`, which ignores `model`.
    ///
    /// Returns warnings for entries that have no effect: unknown keys, unknown scenarios, and seeds outside of `mlperf.conf`. Values of
    /// which LoadGen reads only a part also cause a warning.
    ///
    /// # Errors
    /// When a value for `model` cannot be what the user meant. Examples are a negative count, an integer above 2^64 - 1, `nan`, a flag
    /// that is neither 0 nor 1, and an unknown mode. The official LoadGen reads such a value as a different one. Also when a user's conf is
    /// an `mlperf.conf`.
    pub fn apply(&mut self, conf: &Conf, kind: ConfKind, model: &str) -> Result<Vec<ConfWarning>, ConfError> {
        conf.check(model)?;
        if kind == ConfKind::User {
            conf.refuse_seeds()?;
        }
        let reader = Reader {
            conf,
            model: if kind == ConfKind::Audit { "*" } else { model },
        };
        let own = self.scenario.as_str();
        self.apply_mode(&reader, own)?;
        if kind == ConfKind::Mlperf {
            self.apply_official(&reader, own);
        }
        self.apply_tokens(&reader, own);
        self.apply_scenarios(&reader);
        self.apply_sampling(&reader, own);
        self.apply_length(&reader, own);
        reader.integer(own, "accuracy_log_rng_seed", &mut self.accuracy_log_rng_seed);
        reader.integer(
            own,
            "accuracy_log_sampling_target",
            &mut self.accuracy_log_sampling_target,
        );
        Ok(conf.warnings(kind))
    }

    fn apply_mode(&mut self, reader: &Reader<'_>, own: &str) -> Result<(), ConfError> {
        let Some(entry) = reader.conf.find(reader.model, own, "mode") else {
            return Ok(());
        };
        let number = entry.value.as_u64();
        let mode = usize::try_from(number)
            .ok()
            .and_then(|index| Mode::ALL.get(index));
        self.mode = *mode.ok_or_else(|| reader.conf.error(entry, ConfProblem::UnknownMode(number)))?;
        Ok(())
    }

    fn apply_official(&mut self, reader: &Reader<'_>, own: &str) {
        reader.integer(own, "qsl_rng_seed", &mut self.qsl_rng_seed);
        reader.integer(own, "sample_index_rng_seed", &mut self.sample_index_rng_seed);
        reader.integer(own, "schedule_rng_seed", &mut self.schedule_rng_seed);
        reader.decimal(
            own,
            "accuracy_log_probability",
            0.01,
            &mut self.accuracy_log_probability,
        );
        reader.exactly_one(own, "test05", &mut self.test05);
        reader.integer(own, "test05_qsl_rng_seed", &mut self.test05_qsl_rng_seed);
        reader.integer(
            own,
            "test05_sample_index_rng_seed",
            &mut self.test05_sample_index_rng_seed,
        );
        reader.integer(
            own,
            "test05_schedule_rng_seed",
            &mut self.test05_schedule_rng_seed,
        );
    }

    fn apply_tokens(&mut self, reader: &Reader<'_>, own: &str) {
        reader.exactly_one(own, "use_token_latencies", &mut self.use_token_latencies);
        if self.use_token_latencies {
            reader.scaled("Server", "ttft_latency", NS_PER_MS, &mut self.server_ttft_latency);
            reader.scaled("Server", "tpot_latency", NS_PER_MS, &mut self.server_tpot_latency);
        }
        reader.exactly_one(own, "infer_token_latencies", &mut self.infer_token_latencies);
        if self.infer_token_latencies {
            reader.integer(
                own,
                "token_latency_scaling_factor",
                &mut self.token_latency_scaling_factor,
            );
        }
    }

    /// Applies keys of all scenarios, independent of the run's scenario.
    fn apply_scenarios(&mut self, reader: &Reader<'_>) {
        let percentile = "target_latency_percentile";
        reader.decimal(
            "SingleStream",
            percentile,
            0.01,
            &mut self.single_stream_target_latency_percentile,
        );
        reader.decimal(
            "SingleStream",
            "target_latency",
            1e6,
            &mut self.single_stream_expected_latency_ns,
        );

        reader.decimal(
            "MultiStream",
            percentile,
            0.01,
            &mut self.multi_stream_target_latency_percentile,
        );
        reader.decimal(
            "MultiStream",
            "target_latency",
            1e6,
            &mut self.multi_stream_expected_latency_ns,
        );
        reader.integer(
            "MultiStream",
            "samples_per_query",
            &mut self.multi_stream_samples_per_query,
        );

        reader.decimal(
            "Server",
            percentile,
            0.01,
            &mut self.server_target_latency_percentile,
        );
        reader.scaled(
            "Server",
            "target_latency",
            NS_PER_MS,
            &mut self.server_target_latency_ns,
        );
        reader.decimal("Server", "target_qps", 1.0, &mut self.server_target_qps);
        reader.nonzero("Server", "coalesce_queries", &mut self.server_coalesce_queries);
        if let Some(value) = reader.number("Server", "max_async_queries") {
            self.server_max_async_queries = through_c_int(value.as_u64());
        }

        reader.decimal("Offline", "target_qps", 1.0, &mut self.offline_expected_qps);
    }

    fn apply_sampling(&mut self, reader: &Reader<'_>, own: &str) {
        reader.nonzero(
            own,
            "performance_issue_unique",
            &mut self.performance_issue_unique,
        );
        reader.nonzero(own, "performance_issue_same", &mut self.performance_issue_same);
        reader.integer(
            own,
            "performance_issue_same_index",
            &mut self.performance_issue_same_index,
        );
        reader.exactly_one(
            own,
            "sample_concatenate_permutation",
            &mut self.sample_concatenate_permutation,
        );
        reader.integer(
            own,
            "performance_sample_count_override",
            &mut self.performance_sample_count_override,
        );
        reader.integer(
            own,
            "accuracy_sample_count_override",
            &mut self.accuracy_sample_count_override,
        );
        reader.nonzero(own, "print_timestamps", &mut self.print_timestamps);
    }

    fn apply_length(&mut self, reader: &Reader<'_>, own: &str) {
        reader.integer(own, "min_duration", &mut self.min_duration_ms);
        reader.integer(own, "max_duration", &mut self.max_duration_ms);
        reader.integer(own, "min_query_count", &mut self.min_query_count);
        reader.integer(own, "max_query_count", &mut self.max_query_count);
    }
}

/// Converts a value as the official code does, which passes this one value through a C `int`.
const fn through_c_int(value: u64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "this is what LoadGen computes"
    )]
    {
        value as u32 as i32 as i64 as u64
    }
}

/// Looks up keys for one model and writes their values into settings.
struct Reader<'a> {
    conf: &'a Conf,
    model: &'a str,
}

impl Reader<'_> {
    fn number(&self, scenario: &str, key: &str) -> Option<Number> {
        self.conf.lookup(self.model, scenario, key)
    }

    fn integer(&self, scenario: &str, key: &str, setting: &mut u64) {
        self.scaled(scenario, key, 1, setting);
    }

    fn scaled(&self, scenario: &str, key: &str, factor: u64, setting: &mut u64) {
        if let Some(value) = self.number(scenario, key) {
            *setting = value.as_u64().saturating_mul(factor);
        }
    }

    fn decimal(&self, scenario: &str, key: &str, factor: f64, setting: &mut f64) {
        if let Some(value) = self.number(scenario, key) {
            *setting = value.as_f64() * factor;
        }
    }

    /// Reads a flag that LoadGen compares with 1.
    fn exactly_one(&self, scenario: &str, key: &str, setting: &mut bool) {
        if let Some(value) = self.number(scenario, key) {
            *setting = value.as_u64() == 1;
        }
    }

    /// Reads a flag that LoadGen compares with 0.
    fn nonzero(&self, scenario: &str, key: &str, setting: &mut bool) {
        if let Some(value) = self.number(scenario, key) {
            *setting = value.as_u64() != 0;
        }
    }
}

impl Conf {
    /// Rejects values that LoadGen would read as different ones, in entries for `model` or for all models.
    fn check(&self, model: &str) -> Result<(), ConfError> {
        for (full_key, entry) in &self.entries {
            let Some((of_model, key)) = model_and_key(full_key) else {
                continue;
            };
            if of_model == "*" || of_model == model {
                let checked = key.check(full_key, &entry.word, entry.value);
                checked.map_err(|problem| self.error(entry, problem))?;
            }
        }
        Ok(())
    }

    /// Rejects a file with all seeds of a round, which was read as the wrong kind.
    fn refuse_seeds(&self) -> Result<(), ConfError> {
        let seeds = SEEDS.map(|key| self.find("*", "*", key));
        match seeds {
            [Some(seed), Some(_), Some(_)] => {
                let problem = ConfProblem::NotUserConf(format!("*.*.{}", SEEDS[0]));
                Err(self.error(seed, problem))
            }
            _ => Ok(()),
        }
    }

    fn error(&self, entry: &Entry, problem: ConfProblem) -> ConfError {
        ConfError {
            file: self.file.clone(),
            line: entry.line,
            problem,
        }
    }

    fn warnings(&self, kind: ConfKind) -> Vec<ConfWarning> {
        self.entries
            .iter()
            .filter_map(|(key, entry)| {
                let reason = why_ineffective(key, kind).or_else(|| why_truncated(key, entry))?;
                Some(ConfWarning {
                    file: self.file.clone(),
                    line: entry.line,
                    key: key.clone(),
                    reason,
                })
            })
            .collect()
    }
}

/// Returns a full key's model, and its key if LoadGen knows it. A model's name may contain dots.
fn model_and_key(full_key: &str) -> Option<(&str, &'static Key)> {
    let mut parts = full_key.rsplitn(3, '.');
    let (key, scenario, model) = (parts.next()?, parts.next()?, parts.next()?);
    Some((model, Key::of(scenario, key)?))
}

fn why_truncated(full_key: &str, entry: &Entry) -> Option<&'static str> {
    let (_, key) = model_and_key(full_key)?;
    key.truncates(entry.value)
        .then_some("is read as an integer, without what follows the first digits, such as a fraction")
}

/// Returns the reason why an entry has no effect. The key is split from its end, because a model's name may contain dots
/// (`wan-2.2-t2v-a14b`).
fn why_ineffective(full_key: &str, kind: ConfKind) -> Option<&'static str> {
    let mut parts = full_key.rsplitn(3, '.');
    let (Some(key), Some(scenario), Some(model)) = (parts.next(), parts.next(), parts.next()) else {
        return Some("has no effect: it is not of the form model.scenario.key");
    };
    if scenario != "*" && !Scenario::ALL.iter().any(|known| known.as_str() == scenario) {
        return Some("has no effect: the scenario must be SingleStream, MultiStream, Server, Offline or *");
    }
    let Some(key) = Key::of(scenario, key) else {
        return Some("has no effect: LoadGen does not know this key");
    };
    if key.is_official {
        return (kind != ConfKind::Mlperf).then_some("has no effect: LoadGen reads it from mlperf.conf only");
    }
    (kind == ConfKind::Audit && model != "*")
        .then_some("has no effect: in audit.config LoadGen reads only model *")
}
