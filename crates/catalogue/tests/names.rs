//! Tests of names that people type: any case means the same, and the canonical spelling results.

use regatta_catalogue::known;
use regatta_types::{
    Division, Mode, Scenario,
    documents::{EngineKind, LoadgenChoice, PowerSetting},
};

#[test]
fn names_are_taken_in_any_case() {
    let changes: [fn(&str) -> String; 2] = [str::to_ascii_lowercase, str::to_ascii_uppercase];
    for change in changes {
        for scenario in Scenario::ALL {
            assert_eq!(change(scenario.as_str()).parse::<Scenario>().unwrap(), scenario);
        }
        for mode in Mode::ALL {
            assert_eq!(change(mode.as_str()).parse::<Mode>().unwrap(), mode);
        }
        for division in [Division::Closed, Division::Open, Division::Network] {
            assert_eq!(change(division.as_str()).parse::<Division>().unwrap(), division);
        }
        for engine in EngineKind::ALL {
            assert_eq!(change(engine.as_str()).parse::<EngineKind>().unwrap(), engine);
        }
        for power in [PowerSetting::MaxP, PowerSetting::MaxQ] {
            assert_eq!(change(power.as_str()).parse::<PowerSetting>().unwrap(), power);
        }
        for name in known::round_names() {
            assert_eq!(known::round(&change(name)).unwrap().unwrap().name, name);
        }
        assert_eq!(
            change("native").parse::<LoadgenChoice>().unwrap(),
            LoadgenChoice::Native
        );
    }
    // A revision is a name in a repository, where case counts.
    assert_eq!(
        "Official:v5.0-Test".parse::<LoadgenChoice>().unwrap(),
        LoadgenChoice::Official {
            revision: Some("v5.0-Test".to_owned())
        }
    );
}
