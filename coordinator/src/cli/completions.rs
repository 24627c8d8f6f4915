//! `regatta completions` and `regatta man`: shell completions and man pages, generated from the command line's definition.

use std::{fs, io, path::PathBuf};

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;
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

/// Prints the completions of a shell.
pub(super) fn completions(args: &CompletionArgs) -> CommandResult {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "regatta", &mut text);
    super::context::print(String::from_utf8_lossy(&text).trim_end())?;
    Ok(ExitCode::Success)
}

/// Writes a man page for every command.
pub(super) fn man(args: &ManArgs) -> CommandResult {
    let write = || -> io::Result<()> {
        fs::create_dir_all(&args.output)?;
        clap_mangen::generate_to(Cli::command(), &args.output)
    };
    write().map_err(|error| {
        Failure::from(error)
            .context(format!("cannot write man pages to {}", args.output.display()))
            .hint("name another directory with --output")
    })?;
    Ok(ExitCode::Success)
}
