//! The keys of `audit.config` that a revision of LoadGen ignores. Without them a run is not the audit that it claims to be, and LoadGen
//! reports nothing.

use regatta_loadgen::{load_gen::LoadgenError, request::RunRequest};
use regatta_loadgen_conf::Conf;

/// Keys that LoadGen 4.1.x reads from `mlperf.conf` only. Its `FromConfig` has a flag for that file, which `StartTest` does not set for
/// `audit.config`. Seen with 4.1.30, which has the change of October 2024 (ecb88016). The LoadGen of tag v4.1 itself, with version 4.1, and 5.0
/// and later read them.
const IGNORED_BY_4_1: [&str; 3] = ["accuracy_log_rng_seed", "accuracy_log_sampling_target", "test05"];

/// Refuses an audit whose settings this version of LoadGen ignores.
///
/// # Errors
/// Returns [`LoadgenError`] with the ignored keys, or when `audit.config` cannot be parsed.
pub(crate) fn refuse(version: &str, request: &RunRequest) -> Result<(), LoadgenError> {
    let Some(audit) = request
        .audit_config
        .as_ref()
        .filter(|_| version.starts_with("4.1."))
    else {
        return Ok(());
    };
    let conf = Conf::parse(&audit.name, &audit.text).map_err(LoadgenError::Conf)?;
    let is_set = |key: &&str| conf.lookup("*", request.scenario.as_str(), key).is_some();
    let ignored: Vec<&str> = IGNORED_BY_4_1.into_iter().filter(is_set).collect();
    if ignored.is_empty() {
        return Ok(());
    }
    let problem = format!(
        "the official LoadGen {version} ignores {} of {}, so the run would not be this audit; hint: use a plug-in of another revision \
         with the round's rules for the runs and their audits",
        ignored.join(" and "),
        audit.name
    );
    Err(LoadgenError::Settings {
        scenario: request.scenario,
        problem,
    })
}
