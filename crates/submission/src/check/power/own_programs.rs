//! Sessions of Regatta's own power client or server. No round accepts them.

use regatta_config::round::OWN_PROGRAM_PREFIX;
use serde_json::Value;

use super::session;
use crate::tree::Tree;

/// The finding about a session of Regatta's own power programs.
pub const OWN_PROGRAMS: &str = "this session is not valid for submission: Regatta's own power client or server made it, not the official programs";

/// Returns whether a side of the session in `directory` of `tree` (`""` for the root) names itself as Regatta's own program.
#[must_use]
pub fn has_own_programs(tree: &Tree, directory: &str) -> bool {
    ["client.json", "server.json"].into_iter().any(|name| {
        let path = match directory {
            "" => format!("power/{name}"),
            directory => format!("{directory}/power/{name}"),
        };
        let bytes = tree.read(&path, session::LONGEST).unwrap_or_default();
        let description: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let sources = description.get("sources").and_then(Value::as_object);
        sources.is_some_and(|sources| sources.keys().any(|key| key.starts_with(OWN_PROGRAM_PREFIX)))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn one_side_is_enough() {
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
