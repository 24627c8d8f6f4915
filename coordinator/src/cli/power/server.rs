//! `regatta power server`: Regatta's own power server, for labs without the licence. Its sessions are never valid for submission.

use std::{path::PathBuf, sync::Arc};

use regatta_fsutil::regular_file;
use regatta_power::{
    OwnProgram,
    power_server::{PowerServer, ServerError},
    server_conf::ServerConf,
};
use regatta_types::ExitCode;

use super::super::{Context, context::tell, interrupts, runtime};
use crate::exit::{CommandResult, Failure};

/// The official programs' switch for short waits. The official checker refuses such a session.
pub(super) const DEBUG_SWITCH: &str = "MLPP_DEBUG";

/// Flags of `power server`: the official server's.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ServerArgs {
    /// The configuration, in the format of the official server
    #[arg(short = 'c', long = "configurationFile", value_name = "FILE")]
    conf: PathBuf,
}

pub(super) fn serve(args: &ServerArgs, _context: &Context) -> CommandResult {
    let text = regular_file::read_text(&args.conf)
        .map_err(|error| Failure::from(error).context(format!("cannot read {}", args.conf.display())))?;
    let conf = ServerConf::read(&text).map_err(|error| {
        let hint = error.hint();
        Failure::usage(error).context(args.conf.display()).hint(hint)
    })?;
    let runtime = runtime()?;
    let interrupted = interrupts::end_requested(&runtime)?;
    let program = OwnProgram::identify("server")?;
    let debug = std::env::var_os(DEBUG_SWITCH).is_some();
    let server = PowerServer::prepare(conf, program, debug, Arc::new(tell), &interrupted);
    match server.and_then(|server| server.serve(&interrupted)) {
        Ok(()) => Ok(ExitCode::Success),
        Err(ServerError::Interrupted) => Err(Failure::interrupted("interrupted before a client connected")),
        Err(error) => {
            let hint = error.hint();
            Err(Failure::from(error).optional_hint(hint))
        }
    }
}
