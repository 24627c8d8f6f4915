//! The command line as clap parses, completes and documents it: the declarations of [`Cli`], with the commands of the program in groups, the
//! options of every command in one line, and completion from the workspace.

use std::io;

use clap::{Arg, Command, CommandFactory as _};

use super::{Cli, completers, examples};

/// The groups of the program's commands in its help.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Lab",
        &[
            "quickstart",
            "init",
            "serve",
            "status",
            "top",
            "events",
            "dashboard",
            "store",
        ],
    ),
    (
        "Devices",
        &["device", "asset", "engine", "settings", "system", "tune"],
    ),
    ("Runs", &["run", "runs", "campaign", "audit"]),
    ("Results", &["compare", "history", "accuracy", "submission"]),
    ("Benchmarks", &["benchmark", "round", "data", "prep"]),
    ("Power and model servers", &["meter", "power", "endpoints"]),
    ("Other", &["completions", "man", "help"]),
];

/// The last line of every subcommand's help.
const COMMON: &str = "Every command has --workspace, --format, --utc, --verbose, --quiet and --log-format: see `regatta --help`.";

/// Returns the command line.
pub(super) fn command() -> Command {
    let command = Cli::command();
    let common: Vec<Arg> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .cloned()
        .collect();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\nOptions of every command:\n{}{{after-help}}",
        groups(&command),
        options(&common)
    );
    command
        .help_template(template)
        .mut_subcommands(|subcommand| with_common_line(subcommand, "", &common))
        .mut_subcommands(|subcommand| completers::add(subcommand, ""))
}

/// Lists the commands with what they do, by group.
fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{title}:\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(|| "Show the help of a command".to_owned(), ToString::to_string);
            text.push_str(&format!("  {name:<12} {about}\n"));
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

/// Lists the options of every command, without the details that clap adds.
fn options(common: &[Arg]) -> String {
    const INDENT: usize = 27;
    let columns = regatta_terminal::columns(&io::stdout())
        .unwrap_or(80)
        .clamp(60, 100);
    let described = common.iter().map(|arg| {
        let short = arg
            .get_short()
            .map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
        let value = arg
            .get_action()
            .takes_values()
            .then(|| arg.get_value_names()?.first());
        let value = value
            .flatten()
            .map_or_else(String::new, |name| format!(" <{name}>"));
        let help = arg.get_help().map_or_else(String::new, ToString::to_string);
        (
            format!("{short}--{}{value}", arg.get_long().unwrap_or_default()),
            help,
        )
    });
    let own = [("-h, --help", "Print help"), ("-V, --version", "Print version")];
    let own = own.map(|(option, help)| (option.to_owned(), help.to_owned()));
    let lines = described.chain(own).map(|(option, help)| {
        let help = regatta_text::wrap(&help, columns - INDENT).replace('\n', &format!("\n{:INDENT$}", ""));
        format!("  {option:<width$}{help}\n", width = INDENT - 2)
    });
    lines.collect()
}

/// Hides the options of every command in a subcommand's help, and ends the help with its examples and a line that names the options.
fn with_common_line(command: Command, parent: &str, common: &[Arg]) -> Command {
    let path = format!("{parent} {}", command.get_name()).trim_start().to_owned();
    let missing: Vec<Arg> = common
        .iter()
        .filter(|arg| command.get_arguments().all(|own| own.get_id() != arg.get_id()))
        .map(|arg| arg.clone().hide(true))
        .collect();
    let declared = command.get_after_help().map(ToString::to_string);
    let parts = [declared, examples::of(&path), Some(COMMON.to_owned())];
    let help = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    command
        .args(missing)
        .after_help(help)
        .mut_subcommands(|subcommand| with_common_line(subcommand, &path, common))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_fits_a_line() {
        command().debug_assert();
        let command = Cli::command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        grouped.retain(|name| *name != "help");
        let mut declared: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        declared.sort_unstable();
        assert_eq!(grouped, declared);
        let listed = groups(&command);
        let long: Vec<&str> = listed.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
    }
}
