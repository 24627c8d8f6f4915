//! `regatta power client`: Regatta's own power client, for labs without the licence. Its sessions are never valid for submission.

use std::{path::PathBuf, sync::Arc};

use regatta_power::{
    OwnProgram, is_label,
    power_client::{ClientError, ClientOptions},
    server_conf,
};
use regatta_types::ExitCode;
use serde_json::json;

use super::super::{Context, context::tell, interrupts, runtime};
use crate::exit::{CommandResult, Failure};

/// Flags of `power client`: the official client's.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ClientArgs {
    /// The power server's address
    #[arg(short = 'a', long = "addr", value_name = "ADDR")]
    address: String,
    /// The shell command to measure; it runs twice
    #[arg(short = 'w', long = "run-workload", value_name = "CMD")]
    workload: String,
    /// The directory below which the workload writes LoadGen's logs
    #[arg(short = 'L', long = "loadgen-logs", value_name = "INDIR")]
    logs: PathBuf,
    /// The directory for the session
    #[arg(short = 'o', long, value_name = "OUTDIR")]
    output: PathBuf,
    /// The NTP server with which this machine's clock is compared
    #[arg(short = 'n', long, value_name = "ADDR")]
    ntp: String,
    /// The power server's port
    #[arg(short = 'p', long, value_name = "PORT", default_value_t = server_conf::DEFAULT_PORT)]
    port: u16,
    /// A word in the session's name: letters, digits, - and _
    #[arg(short = 'l', long, value_name = "LABEL", default_value = "")]
    label: String,
    /// Put the session directly into OUTDIR
    #[arg(short = 'T', long, overrides_with = "timestamp_path")]
    no_timestamp_path: bool,
    /// Put the session into a subdirectory of OUTDIR with the session's name [default]
    #[arg(short = 't', long)]
    timestamp_path: bool,
    /// Remove INDIR first
    #[arg(short = 'f', long)]
    force: bool,
    /// End the server after this session
    #[arg(short = 'S', long)]
    stop_server: bool,
    /// Maximum current in amperes, together with -V; the session then has no ranging run
    #[arg(short = 'A', long, value_name = "A", requires = "max_volts")]
    max_amps: Option<f64>,
    /// Maximum voltage in volts, together with -A
    #[arg(short = 'V', long, value_name = "V", requires = "max_amps")]
    max_volts: Option<f64>,
}

pub(super) fn measure(args: &ClientArgs, context: &Context) -> CommandResult {
    if !is_label(&args.label) {
        return Err(Failure::misuse(format!("`{}` is not a valid label", args.label))
            .hint("a label has at most 100 letters, digits, - and _"));
    }
    let options = ClientOptions {
        address: args.address.clone(),
        port: args.port,
        ntp: args.ntp.clone(),
        workload: args.workload.clone(),
        logs: args.logs.clone(),
        output: args.output.clone(),
        into_output: args.no_timestamp_path,
        label: args.label.clone(),
        remove_logs: args.force,
        stop_server: args.stop_server,
        manual_ranges: manual_ranges(args)?,
    };
    let runtime = runtime()?;
    let interrupted = interrupts::end_requested(&runtime)?;
    let program = OwnProgram::identify("client")?;
    match options.execute(&program, &(Arc::new(tell) as _), &interrupted) {
        Ok(session) => {
            let session = session.display().to_string();
            context.print(&json!({ "session": session, "informative": true }), || {
                format!("session: {session}\nIt is not valid for submission: Regatta's own client made it")
            })?;
            Ok(ExitCode::Success)
        }
        Err(error @ ClientError::Interrupted) => Err(Failure::interrupted(error)),
        Err(error) => {
            let hint = error.hint();
            Err(Failure::from(error).optional_hint(hint))
        }
    }
}

/// The ranges of a session without a ranging run. As in the official client, 0 means unset.
fn manual_ranges(args: &ClientArgs) -> Result<Option<(f64, f64)>, Failure> {
    match (args.max_volts, args.max_amps) {
        (Some(volts), Some(amps)) if volts > 0.0 && amps > 0.0 && volts.is_finite() && amps.is_finite() => {
            Ok(Some((volts, amps)))
        }
        (Some(0.0), _) | (_, Some(0.0)) | (None, _) | (_, None) => Ok(None),
        _ => Err(Failure::misuse("-A and -V are numbers above 0")),
    }
}
