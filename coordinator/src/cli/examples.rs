//! Examples for the help of commands whose declaration has none.

/// Commands with examples: a command line, and what it does.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "status",
        &[(
            "regatta status",
            "what the lab is doing, and what needs attention",
        )],
    ),
    (
        "events",
        &[
            (
                "regatta events --current",
                "the present states, then every change",
            ),
            (
                "regatta events --format json | jq -c .",
                "the changes for a program",
            ),
        ],
    ),
    (
        "history",
        &[
            (
                "regatta history device:boat-1 --benchmark resnet50",
                "the figures of boat-1, and when they changed",
            ),
            (
                "regatta history --include short --since 7d",
                "the last week, with runs that are shorter than a submission allows",
            ),
        ],
    ),
    (
        "prep",
        &[
            (
                "regatta prep resnet50 --data val",
                "prepare the images in the directory val",
            ),
            (
                "regatta prep resnet50 --data val --dtype int8",
                "the same as INT8 samples, with the published scale",
            ),
        ],
    ),
    (
        "runs",
        &[
            ("regatta runs list", "the newest runs"),
            (
                "regatta runs show last",
                "one run with its verdict, figures and files",
            ),
            ("regatta runs watch", "follow the runs that have not ended"),
            ("regatta runs logs last detail", "a log of the newest run"),
            (
                "regatta runs prune --older-than 90d --dry-run",
                "what could be removed",
            ),
        ],
    ),
    (
        "runs watch",
        &[("regatta runs watch", "follow every run that has not ended")],
    ),
    (
        "runs wait",
        &[(
            "regatta runs wait last --timeout 30m && regatta runs show last",
            "for scripts: go on only if the run is good",
        )],
    ),
    (
        "runs verify",
        &[
            (
                "regatta runs verify",
                "check that no recorded run was changed since its device delivered it",
            ),
            (
                "regatta runs verify exported --device boat-1",
                "an exported run, which boat-1 must have signed",
            ),
        ],
    ),
    ("runs abort", &[("regatta runs abort last", "end the newest run")]),
    (
        "runs remove",
        &[("regatta runs remove last --dry-run", "what would be removed")],
    ),
    (
        "runs prune",
        &[
            (
                "regatta runs prune --older-than 30d --dry-run",
                "what would be removed",
            ),
            (
                "regatta runs prune --failed --yes",
                "remove failed and aborted runs without a question",
            ),
        ],
    ),
    (
        "campaign plan",
        &[(
            "regatta campaign plan weekend.toml",
            "what would run where, for how long, and what is missing",
        )],
    ),
    (
        "campaign status",
        &[(
            "regatta campaign status --watch",
            "follow the present campaign until it has ended",
        )],
    ),
    (
        "campaign retry",
        &[
            ("regatta campaign retry weekend", "try all failed cells again"),
            (
                "regatta campaign retry weekend --cause device",
                "those that failed because of their devices",
            ),
        ],
    ),
    (
        "campaign report",
        &[(
            "regatta campaign report weekend --format csv",
            "every attempt with its run and figure, for a spreadsheet",
        )],
    ),
    (
        "device",
        &[
            ("regatta device list", "the devices, with their state and engines"),
            (
                "regatta device deploy boat-1 user@192.168.1.20",
                "install the agent on a board and enroll it",
            ),
            (
                "regatta device show boat-1",
                "its board, software, engines and health",
            ),
            (
                "regatta device doctor boat-1",
                "what would disturb measurements there",
            ),
        ],
    ),
    (
        "device add",
        &[(
            "regatta device add boat-1",
            "print a token with which an agent that runs already enrolls",
        )],
    ),
    (
        "device list",
        &[("regatta device list", "the devices, with their state and engines")],
    ),
    (
        "device show",
        &[(
            "regatta device show boat-1",
            "its board, software, engines and health",
        )],
    ),
    (
        "device doctor",
        &[(
            "regatta device doctor boat-1",
            "what would disturb measurements there, and how to change it",
        )],
    ),
    (
        "device check",
        &[(
            "regatta device check boat-1",
            "two short runs that clear a quarantined device if they are good",
        )],
    ),
    (
        "device drain",
        &[(
            "regatta device drain boat-1 --note \"new fan\" --wait",
            "take it out of service, and wait for the end of its run",
        )],
    ),
    (
        "device label",
        &[(
            "regatta device label boat-1 +edge -spare",
            "add the label edge and remove spare",
        )],
    ),
    (
        "device remove",
        &[(
            "regatta device remove boat-1 --dry-run",
            "what its removal would end",
        )],
    ),
    (
        "asset",
        &[
            (
                "regatta asset add --benchmark resnet50",
                "let devices download its model and samples",
            ),
            ("regatta asset list", "the assets, with their sizes"),
        ],
    ),
    (
        "asset fetch",
        &[(
            "regatta asset fetch --device all --benchmark resnet50 --scenario Offline",
            "copy the files to the devices before the first run",
        )],
    ),
    (
        "audit",
        &[(
            "regatta audit run --device boat-1 --benchmark resnet50",
            "all audits that a submission needs",
        )],
    ),
    (
        "audit run",
        &[
            (
                "regatta audit run --device boat-1 --benchmark resnet50",
                "all audits that a submission needs",
            ),
            (
                "regatta audit run TEST04 --device boat-1 --benchmark resnet50 --scenario Offline",
                "one of them",
            ),
        ],
    ),
    (
        "benchmark",
        &[
            (
                "regatta benchmark list",
                "the benchmarks, and which files are missing",
            ),
            (
                "regatta benchmark show resnet50",
                "its targets, and where its files belong",
            ),
        ],
    ),
    (
        "data",
        &[(
            "regatta data show resnet50",
            "where data set and model are published, with their terms",
        )],
    ),
    (
        "data show",
        &[(
            "regatta data show resnet50 --verify",
            "compare the files that are present with their checksums",
        )],
    ),
    (
        "settings",
        &[(
            "regatta settings list --engine tensorrt",
            "the settings of an engine",
        )],
    ),
    (
        "engine",
        &[(
            "regatta engine list --device boat-1",
            "the built engines of a device",
        )],
    ),
    (
        "power",
        &[(
            "regatta power run --device boat-1 --benchmark resnet50 --scenario Offline --preflight",
            "check whether a session can succeed",
        )],
    ),
    (
        "submission",
        &[
            ("regatta submission status", "what a submission still needs"),
            (
                "regatta submission stage --rehearsal --output tree",
                "put the runs into a submission tree, for practice",
            ),
            (
                "regatta submission check --input tree",
                "check a tree as the round's checker does, with fixes",
            ),
        ],
    ),
    (
        "submission truncate",
        &[(
            "regatta submission truncate --input tree --submitter ACME --output cut --verify",
            "shorten the accuracy logs in a copy",
        )],
    ),
];

/// Returns the examples of a command, without the program's name in it.
pub(super) fn of(command: &str) -> Option<String> {
    let (_, examples) = EXAMPLES.iter().find(|(name, _)| *name == command)?;
    let title = if examples.len() == 1 {
        "Example"
    } else {
        "Examples"
    };
    let lines = examples
        .iter()
        .map(|(line, does)| format!("\n  {line}\n      {does}"));
    Some(format!("{title}:{}", lines.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    use crate::cli::command_tree::command;

    /// Returns the example commands in the help of a command and of its subcommands.
    fn shown(command: &Command, found: &mut Vec<String>) {
        let help = command
            .get_after_help()
            .map_or_else(String::new, ToString::to_string);
        let help = help.replace("\\\n", " ");
        let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
        found.extend(
            lines
                .filter(|line| line.starts_with("regatta "))
                .map(str::to_owned),
        );
        command
            .get_subcommands()
            .for_each(|subcommand| shown(subcommand, found));
    }

    #[test]
    fn every_example_is_a_command_line() {
        let mut lines = Vec::new();
        shown(&command(), &mut lines);
        assert!(lines.len() > 100, "{}", lines.len());
        for line in lines {
            let first = line
                .split(['|', '>', '#'])
                .next()
                .unwrap_or_default()
                .split(" && ")
                .next()
                .unwrap_or_default();
            let words = first
                .replace("\"new fan\"", "new")
                .replace("\"fan unplugged\"", "fan");
            if let Err(error) = command().try_get_matches_from(words.split_whitespace()) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn every_command_with_an_example_exists() {
        for (path, _) in EXAMPLES {
            let mut found = command();
            for name in path.split(' ') {
                found = found
                    .find_subcommand(name)
                    .unwrap_or_else(|| panic!("{path}"))
                    .clone();
            }
            assert!(of(path).is_some());
        }
    }
}
