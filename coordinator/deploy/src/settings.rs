//! The lines of `agent.toml` that a deployment sets. All other lines are left unchanged.

/// The settings for `agent.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The device's name.
    pub name: String,
    /// The broker. `None` uses the enrollment's.
    pub broker: Option<String>,
    /// The coordinator's host for assets and renewals. `None` uses the one that the coordinator sends.
    pub coordinator: Option<String>,
    /// Whether plain MQTT to another machine is allowed.
    pub allow_plain: bool,
}

impl Settings {
    /// Returns the file's text with these settings. Returns the same text when they are set already.
    pub fn applied_to(&self, text: &str) -> String {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        set(&mut lines, "name", Some(&string(&self.name)));
        set(
            &mut lines,
            "broker",
            self.broker.as_deref().map(string).as_deref(),
        );
        set(
            &mut lines,
            "coordinator",
            self.coordinator.as_deref().map(string).as_deref(),
        );
        set(&mut lines, "allow_plain", self.allow_plain.then_some("true"));
        let mut text = lines.join("\n");
        text.push('\n');
        text
    }
}

/// Formats a TOML string. Names and addresses are already validated, so no escape is needed.
fn string(text: &str) -> String {
    format!("\"{text}\"")
}

/// Sets a key of a flat file: on its own line, otherwise below the comment with its default, otherwise at the end. `None` removes it.
fn set(lines: &mut Vec<String>, key: &str, value: Option<&str>) {
    let is_at = |line: &str| {
        line.split_once('=')
            .is_some_and(|(before, _)| before.trim() == key)
    };
    let own = lines.iter().position(|line| is_at(line));
    let Some(value) = value else {
        if let Some(at) = own {
            lines.remove(at);
        }
        return;
    };
    let line = format!("{key} = {value}");
    if let Some(at) = own {
        if let Some(place) = lines.get_mut(at) {
            *place = line;
        }
        return;
    }
    let comment = lines
        .iter()
        .position(|line| line.strip_prefix('#').is_some_and(is_at));
    match comment {
        Some(at) => lines.insert(at + 1, line),
        None => lines.push(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_gets_its_lines_and_keeps_the_rest() {
        let example = include_str!("../../../agent/agent.example.toml");
        let settings = Settings {
            name: "boat-3".to_owned(),
            broker: Some("mqtts://10.0.0.5:8883".to_owned()),
            coordinator: Some("10.0.0.5".to_owned()),
            allow_plain: false,
        };
        let once = settings.applied_to(example);
        assert!(once.contains("\nname = \"boat-3\"\n"));
        assert!(
            once.contains("# broker = \"mqtts://192.168.1.5:8883\"\nbroker = \"mqtts://10.0.0.5:8883\"\n")
        );
        assert_eq!(once.lines().count(), example.lines().count() + 2);
        assert!(once.contains("# coordinator = \"192.168.1.5\"\ncoordinator = \"10.0.0.5\"\n"));
        assert_eq!(settings.applied_to(&once), once, "nothing to do the second time");
        let by_enrollment = Settings {
            broker: None,
            coordinator: None,
            name: "board-1".to_owned(),
            ..settings
        };
        assert_eq!(by_enrollment.applied_to(&once), example);
    }

    #[test]
    fn deploy_keeps_the_owners_agent_settings() {
        let text = "state_dir = \"/data\"  # mine\nname='x'\nscratch = \"/mnt\"";
        let settings = Settings {
            name: "boat".to_owned(),
            broker: None,
            coordinator: None,
            allow_plain: true,
        };
        assert_eq!(
            settings.applied_to(text),
            "state_dir = \"/data\"  # mine\nname = \"boat\"\nscratch = \"/mnt\"\nallow_plain = true\n"
        );
    }
}
