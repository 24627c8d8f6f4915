//! Checks the keys that a user sets for one run, where LoadGen would silently ignore a mistake. Values are checked when they are applied.

use regatta_text::nearest;
use regatta_types::Scenario;

use super::keys::{Key, user_keys};

/// The error for a user's key that would have no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserKeyError {
    /// The key is neither a name nor a full path.
    #[error("`{0}` is neither a conf key such as target_qps nor of the form model.scenario.key")]
    Form(String),
    /// LoadGen knows no such key.
    #[error("LoadGen has no conf key `{key}`; {}", known_keys(.key))]
    Unknown {
        /// The key without model and scenario.
        key: String,
    },
    /// The scenario of a full path is unknown.
    #[error("the conf key `{full_key}` is for the scenario `{scenario}`, which does not exist; {}", known_scenarios(.scenario))]
    Scenario {
        /// The full path.
        full_key: String,
        /// Its scenario.
        scenario: String,
    },
    /// The full path is for another model than the run's.
    #[error(
        "the conf key `{full_key}` has no effect: the model of this run is `{model}`; hint: name that, or `*`"
    )]
    Model {
        /// The full path.
        full_key: String,
        /// The run's model.
        model: String,
    },
    /// LoadGen reads the key only from the round's own conf, or not at all.
    #[error("the conf key `{key}` has no effect in user.conf: {reason}")]
    NoEffect {
        /// The key without model and scenario.
        key: String,
        /// Where LoadGen reads it, or what to use.
        reason: &'static str,
    },
}

/// Checks a key, either bare or as `model.scenario.key`, for a run of `model`, and returns its full path. `scenario` is the run's.
///
/// # Errors
/// [`UserKeyError`] when the line would have no effect in any run of the model.
pub fn full_user_key(key: &str, model: &str, scenario: Scenario) -> Result<String, UserKeyError> {
    // A model's name may contain dots.
    let mut parts = key.rsplitn(3, '.');
    let (name, of_scenario, of_model) = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, None) if !name.is_empty() => (name, scenario.as_str(), model),
        (Some(name), Some(of_scenario), Some(of_model)) => (name, of_scenario, of_model),
        _ => return Err(UserKeyError::Form(key.to_owned())),
    };
    let is_scenario = Scenario::ALL.iter().any(|known| known.as_str() == of_scenario);
    if of_scenario != "*" && !is_scenario {
        return Err(UserKeyError::Scenario {
            full_key: key.to_owned(),
            scenario: of_scenario.to_owned(),
        });
    }
    if of_model != "*" && of_model != model {
        return Err(UserKeyError::Model {
            full_key: key.to_owned(),
            model: model.to_owned(),
        });
    }
    let known = Key::of(of_scenario, name).ok_or_else(|| UserKeyError::Unknown { key: name.to_owned() })?;
    let reason = match name {
        "mode" => Some("use `--mode`"),
        _ if known.is_official => Some("LoadGen reads it from mlperf.conf only"),
        _ if known.is_unread() => Some("LoadGen does not read it"),
        _ => None,
    };
    match reason {
        Some(reason) => Err(UserKeyError::NoEffect {
            key: name.to_owned(),
            reason,
        }),
        None => Ok(format!("{of_model}.{of_scenario}.{name}")),
    }
}

fn known_keys(key: &str) -> String {
    match nearest(key, user_keys()) {
        Some(near) => format!("hint: did you mean `{near}`?"),
        None => format!("known are {}", user_keys().collect::<Vec<_>>().join(", ")),
    }
}

fn known_scenarios(scenario: &str) -> String {
    let names = || Scenario::ALL.iter().map(|known| known.as_str());
    match nearest(scenario, names()) {
        Some(near) => format!("hint: did you mean `{near}`?"),
        None => format!("known are {} and *", names().collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_effect_is_refused_with_the_nearest_one() {
        let refused = |key: &str| {
            full_user_key(key, "wan-2.2-t2v-a14b", Scenario::Offline)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused("min_query_cuont"),
            "LoadGen has no conf key `min_query_cuont`; hint: did you mean `min_query_count`?"
        );
        assert_eq!(
            refused("*.Ofline.target_qps"),
            "the conf key `*.Ofline.target_qps` is for the scenario `Ofline`, which does not exist; hint: did you mean \
             `Offline`?"
        );
        assert_eq!(
            refused("resnet50.Offline.target_qps"),
            "the conf key `resnet50.Offline.target_qps` has no effect: the model of this run is `wan-2.2-t2v-a14b`; hint: \
             name that, or `*`"
        );
        assert_eq!(
            refused("qsl_rng_seed"),
            "the conf key `qsl_rng_seed` has no effect in user.conf: LoadGen reads it from mlperf.conf only"
        );
        assert!(refused("mode").contains("use `--mode`"));
        assert!(refused("speed").contains("known are use_token_latencies, "));
        assert!(refused("a.b").contains("neither"));
    }

    #[test]
    fn setting_without_prefix_gets_its_full_key() {
        let full = |key: &str| full_user_key(key, "wan-2.2-t2v-a14b", Scenario::Offline).unwrap();
        assert_eq!(full("target_qps"), "wan-2.2-t2v-a14b.Offline.target_qps");
        assert_eq!(
            full("wan-2.2-t2v-a14b.Server.target_latency"),
            "wan-2.2-t2v-a14b.Server.target_latency"
        );
        assert_eq!(full("*.*.min_duration"), "*.*.min_duration");
    }
}
