//! `regatta completions` and `regatta man`: shell completions and man pages, generated from the command line's definition.

use std::{fs, io, path::PathBuf};

use clap_complete::{Shell, env::Shells};

use super::command_tree;
use crate::exit::{CommandResult, Failure};
use regatta_types::ExitCode;

/// Flags of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regatta completions bash >~/.local/share/bash-completion/completions/regatta
  regatta completions zsh >~/.zfunc/_regatta          # any directory of fpath
  regatta completions fish >~/.config/fish/completions/regatta.fish")]
pub(super) struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// Flags of `man`.
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// The directory to write into, such as ~/.local/share/man/man1
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

/// The variable by which the completion scripts call this program.
pub(super) const COMPLETION_VARIABLE: &str = "REGATTA_COMPLETE";

/// Prints the completion script of a shell, which calls this program for the values.
pub(super) fn completions(args: &CompletionArgs) -> CommandResult {
    const PROGRAM: &str = "regatta";
    let mut text = Vec::new();
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let completer = shells
        .completer(&shell)
        .ok_or_else(|| Failure::misuse(format!("there are no completions for {shell}")))?;
    completer.write_registration(COMPLETION_VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut text)?;
    super::context::print(String::from_utf8_lossy(&text).trim_end())?;
    Ok(ExitCode::Success)
}

/// Writes a man page for every command.
pub(super) fn man(args: &ManArgs) -> CommandResult {
    let write = || -> io::Result<()> {
        fs::create_dir_all(&args.output)?;
        clap_mangen::generate_to(command_tree::command(), &args.output)
    };
    write().map_err(|error| {
        Failure::from(error)
            .context(format!("cannot write man pages to {}", args.output.display()))
            .hint("name another directory with --output")
    })?;
    Ok(ExitCode::Success)
}
