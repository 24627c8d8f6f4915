//! Sessions of Regatta's own power client or server. No round accepts them.

use regatta_catalogue::round::{OWN_PROGRAM_PREFIX, PowerRules};
use serde_json::Value;

use super::session;
use crate::tree::Tree;

/// The finding about a session of Regatta's own power programs.
pub const OWN_PROGRAMS: &str = "this session is not valid for submission: Regatta's own power client or server made it, not the official programs";

/// The checks that sessions of Regatta's own programs always fail.
pub const SOURCES: [&str; 2] = ["Check client sources checksum", "Check server sources checksum"];

/// Returns a round's rules that also accept the meter and the PTDaemon of the session in `directory` of `tree`, for informative sessions.
#[must_use]
pub fn with_any_meter(tree: &Tree, directory: &str, rules: &PowerRules) -> PowerRules {
    let mut rules = rules.clone();
    // Regatta's own server describes its analyzers as those of the newest rounds do.
    rules.analyzers_listed = true;
    let server = description(tree, directory, "server.json");
    let messages = server.get("ptd_messages").and_then(Value::as_array);
    let identify = |message: &&Value| message.get("cmd").is_some_and(|command| command == "Identify");
    let identity = messages.and_then(|messages| messages.iter().find(identify));
    let Some(identity) = identity.and_then(|message| message.get("reply")?.as_str()) else {
        return rules;
    };
    if let Some((_, rest)) = identity.split_once("version=") {
        rules
            .ptd_versions
            .extend(rest.split('-').next().map(str::to_owned));
    }
    if let Some(meter) = identity.split(',').next() {
        let kind = server
            .pointer("/ptd_config/0/device_type")
            .and_then(Value::as_i64);
        rules.meters.extend(kind.map(|kind| (meter.to_owned(), kind)));
    }
    rules
}

/// Returns whether a side of the session in `directory` of `tree` (`""` for the root) names itself as Regatta's own program.
#[must_use]
pub fn has_own_programs(tree: &Tree, directory: &str) -> bool {
    ["client.json", "server.json"].into_iter().any(|name| {
        let description = description(tree, directory, name);
        let sources = description.get("sources").and_then(Value::as_object);
        sources.is_some_and(|sources| sources.keys().any(|key| key.starts_with(OWN_PROGRAM_PREFIX)))
    })
}

/// Reads a side's description of a session. One that is missing or no JSON is empty.
fn description(tree: &Tree, directory: &str, name: &str) -> Value {
    let path = match directory {
        "" => format!("power/{name}"),
        directory => format!("{directory}/power/{name}"),
    };
    let bytes = tree.read(&path, session::MAX).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn informative_sessions_may_have_any_meter() {
        let directory = tempfile::tempdir().unwrap();
        let power = directory.path().join("power");
        fs::create_dir_all(&power).unwrap();
        let server = r#"{"ptd_messages": [{"cmd": "Identify", "reply": "Plug,1,version=0.9-ab-cd,OS=x"}],
            "ptd_config": [{"device_type": 4711}]}"#;
        fs::write(power.join("server.json"), server).unwrap();
        let rounds = regatta_catalogue::known::rounds().unwrap();
        let rules = rounds.last().unwrap().power.clone().unwrap();
        let tree = Tree::scan(directory.path()).unwrap();
        let relaxed = with_any_meter(&tree, "", &rules);
        assert_eq!(relaxed.meters.get("Plug"), Some(&4711));
        assert!(relaxed.ptd_versions.contains(&"0.9".to_owned()));
        assert_eq!(relaxed.meters.len(), rules.meters.len() + 1);
        let none = with_any_meter(&tree, "elsewhere", &rules);
        assert_eq!(none.meters, rules.meters, "a session without descriptions");
    }

    #[test]
    fn own_program_on_one_side_is_reported() {
        let own = r#"{"sources": {"regatta-power-client 0.1.0": "aa"}}"#;
        let official = r#"{"sources": {"client.py": "aa"}, "ptd_config": ["/opt/regatta-power-ptd"]}"#;
        for (client, server, expected) in [
            (official, official, false),
            (own, official, true),
            (official, own, true),
            ("no JSON", "[]", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let power = directory.path().join("results/power");
            fs::create_dir_all(&power).unwrap();
            fs::write(power.join("client.json"), client).unwrap();
            fs::write(power.join("server.json"), server).unwrap();
            let tree = Tree::scan(directory.path()).unwrap();
            assert_eq!(has_own_programs(&tree, "results"), expected, "{client} {server}");
        }
    }
}
