//! `regatta`: everything that runs on the workstation. The rooms below do the work; this file only calls the command
//! that was asked for and turns its answer into an exit code.

mod assets;
mod broker;
mod cli;
mod daemon;
mod deploy;
mod descriptors;
mod enrolment;
mod exit;
mod fair_slots;
mod fleet;
mod hex;
mod ingest;
mod keys;
mod link;
mod quickstart;
mod runs;
mod store;
mod tables;
mod token_bucket;
mod waiting_room;
mod workspace;

use std::{io::Write as _, process::ExitCode};

fn main() -> ExitCode {
    match cli::run() {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            // Nobody is left to tell when standard error is gone.
            let _ = writeln!(std::io::stderr(), "{failure}");
            ExitCode::from(failure.code())
        }
    }
}
