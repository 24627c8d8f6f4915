//! Writes the agent's man pages and completions of shells, generated from its command line, for the packages. A program of its own keeps
//! this code out of the agent.
//!
//!     command_line_documents DIRECTORY

#![expect(clippy::print_stderr, reason = "a program for the build prints why it fails")]

use std::{env, fs, io, path::Path, process::ExitCode};

use clap::CommandFactory as _;
use clap_complete::Shell;

const PROGRAM: &str = "regatta-agent";

fn main() -> ExitCode {
    let Some(directory) = env::args_os().nth(1) else {
        eprintln!("command_line_documents: name the directory to write into");
        return ExitCode::from(2);
    };
    match write(Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "command_line_documents: cannot write to {}: {error}",
                Path::new(&directory).display()
            );
            ExitCode::from(3)
        }
    }
}

fn write(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(regatta_agent::Cli::command(), directory)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        clap_complete::generate_to(shell, &mut regatta_agent::Cli::command(), PROGRAM, directory)?;
    }
    Ok(())
}
