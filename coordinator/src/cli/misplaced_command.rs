//! Finds what a user meant by a command that is not where it was typed: `regatta list`, or `regatta run show` for `regatta runs show`.

use std::{ffi::OsString, path::Path};

use clap::Command;

use crate::exit::Failure;

/// Returns the failure for a command line whose command is elsewhere, with the commands that exist.
pub(super) fn failure(words: &[OsString], command: &Command) -> Option<Failure> {
    let mut words = positional(words, command).into_iter();
    let first = words.next()?;
    if first == "run" {
        let second = words.next()?;
        let is_command = command
            .find_subcommand("runs")?
            .find_subcommand(&second)
            .is_some();
        return (is_command && !Path::new(&second).exists()).then(|| {
            let rest: Vec<String> = words.collect();
            let meant = format!("regatta runs {second} {}", rest.join(" "));
            Failure::misuse(format!(
                "`regatta run` requests runs; `{second}` is a command of `regatta runs`"
            ))
            .hint(format!("`{}`", meant.trim_end()))
        });
    }
    if command.find_subcommand(&first).is_some() {
        return None;
    }
    let groups = command
        .get_subcommands()
        .filter(|group| group.find_subcommand(&first).is_some());
    let meant: Vec<String> = groups
        .map(|group| format!("`regatta {} {first}`", group.get_name()))
        .collect();
    (!meant.is_empty()).then(|| {
        Failure::misuse(format!("`{first}` is not a command of regatta"))
            .hint(format!("there is {}", meant.join(", ")))
    })
}

/// Returns the words that are neither the program nor its options.
pub(super) fn positional(words: &[OsString], command: &Command) -> Vec<String> {
    let takes_value = |word: &str| {
        let found = command
            .get_arguments()
            .find(|arg| arg.get_long().is_some_and(|long| word == format!("--{long}")));
        found.is_some_and(|arg| arg.get_action().takes_values())
    };
    let mut found = Vec::new();
    let mut rest = words.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = rest.next() {
        if takes_value(&word) {
            rest.next();
        } else if !word.starts_with('-') {
            found.push(word.into_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_elsewhere_is_named() {
        let meant = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            failure(&words, &super::super::command_tree::command()).map(|failure| failure.to_string())
        };
        assert_eq!(
            meant("regatta --workspace lab run show last").unwrap(),
            "regatta: `regatta run` requests runs; `show` is a command of `regatta runs`\n  `regatta runs show last`"
        );
        let list = meant("regatta list").unwrap();
        assert!(
            list.contains("`regatta runs list`") && list.contains("`regatta device list`"),
            "{list}"
        );
        for line in [
            "regatta runs list",
            "regatta run --device a",
            "regatta nosuch",
            "regatta run plan.toml",
        ] {
            assert_eq!(meant(line), None, "{line}");
        }
    }
}
