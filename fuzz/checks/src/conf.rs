//! Checks conf files from anyone: reading them gives settings, or an error that names an existing line. It issues nothing,
//! because absurd durations are allowed and would take long.

use std::hint::black_box;

use regatta_loadgen::effective::{EffectiveSettings, LibraryCounts};
use regatta_loadgen_conf::{Conf, ConfError, ConfKind, TestSettings};
use regatta_types::{Mode, Scenario};

const KINDS: [ConfKind; 3] = [ConfKind::Mlperf, ConfKind::User, ConfKind::Audit];
const LIBRARY: LibraryCounts = LibraryCounts {
    total: 597,
    performance: 256,
};

/// Reads a conf file as each kind for each scenario.
pub fn conf(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let conf = match Conf::parse("fuzzed.conf", text) {
        Ok(conf) => conf,
        Err(error) => return expect_located(text, &error),
    };
    for scenario in Scenario::ALL {
        for kind in KINDS {
            let mut settings = TestSettings::new(scenario, Mode::SubmissionRun);
            match settings.apply(&conf, kind, "digits") {
                Ok(_) => {
                    let (effective, _) = EffectiveSettings::new(&settings, LIBRARY);
                    black_box(effective.effective_accuracy_log_probability());
                }
                Err(error) => expect_located(text, &error),
            }
        }
    }
}

fn expect_located(text: &str, error: &ConfError) {
    assert!((1..=text.lines().count()).contains(&error.line), "{error}");
}
