//! `regatta power simulate-ptd`: the simulated PTDaemon as a program, with PTDaemon's own arguments.

use std::path::PathBuf;

use anyhow::Context as _;
use regatta_power::{
    ptd,
    simulated_ptd::{PtdFault, SimulatedLoad, SimulatedPtd},
};
use regatta_types::ExitCode;

use crate::exit::{CommandResult, Failure};

/// What the simulated meter is and shows.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SimulationArgs {
    /// PTDaemon's name for the meter
    #[arg(long, value_name = "NAME", default_value = "YokogawaWT310E")]
    model: String,
    /// PTDaemon's version
    #[arg(long, value_name = "X.Y.Z", default_value = "1.11.1")]
    ptd_version: String,
    /// Watts outside the runs
    #[arg(long, value_name = "W", default_value_t = 8.0, value_parser = amount)]
    idle_watts: f64,
    /// Watts of the ranging run
    #[arg(long, value_name = "W", default_value_t = 31.0, value_parser = amount)]
    ranging_watts: f64,
    /// Watts of the testing run
    #[arg(long, value_name = "W", default_value_t = 30.0, value_parser = amount)]
    testing_watts: f64,
    /// Maximum deviation of a sample, as a fraction
    #[arg(long, value_name = "SHARE", default_value_t = 0.02, value_parser = amount)]
    noise: f64,
    /// RMS voltage in volts
    #[arg(long, value_name = "V", default_value_t = 230.0, value_parser = amount)]
    volts: f64,
    /// The power factor
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = amount)]
    power_factor: f64,
    /// The fault to simulate: slow-start=SECONDS, refused-range, or stall, crash, error, uncertainty =ranging:SAMPLE or =testing:SAMPLE
    #[arg(long, value_name = "FAULT")]
    fault: Vec<PtdFault>,
}

/// A finite number that is not negative.
fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("not a number of 0 or more".to_owned()),
    }
}

impl SimulationArgs {
    /// The same as words of a command line.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![
            format!("--model={}", self.model),
            format!("--ptd-version={}", self.ptd_version),
            format!("--idle-watts={}", self.idle_watts),
            format!("--ranging-watts={}", self.ranging_watts),
            format!("--testing-watts={}", self.testing_watts),
            format!("--noise={}", self.noise),
            format!("--volts={}", self.volts),
            format!("--power-factor={}", self.power_factor),
        ];
        words.extend(self.fault.iter().map(|fault| format!("--fault={fault}")));
        words
    }

    /// PTDaemon's name for the meter.
    pub(super) fn model(&self) -> &str {
        &self.model
    }
}

/// Flags of `power simulate-ptd`: those of the simulation, and PTDaemon's.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SimulatePtdArgs {
    #[command(flatten)]
    simulation: SimulationArgs,
    /// The file to which a line per sample is written
    #[arg(short = 'l', value_name = "FILE")]
    log: PathBuf,
    /// The TCP port on loopback
    #[arg(short = 'p', value_name = "PORT", default_value_t = ptd::DEFAULT_PORT)]
    port: u16,
    /// The GPIB board (ignored)
    #[arg(short = 'b', value_name = "BOARD")]
    _board: Option<u32>,
    /// The channels: their count, or the first and the count
    #[arg(short = 'c', value_name = "A[,B]", value_delimiter = ',')]
    channels: Vec<usize>,
    /// Direct current (ignored: the device type determines it)
    #[arg(short = 'D')]
    _direct: bool,
    /// TCP/IP (ignored)
    #[arg(short = 'n')]
    _network: bool,
    /// GPIB (ignored)
    #[arg(short = 'g')]
    _gpib: bool,
    /// TMCTL (ignored)
    #[arg(short = 'y')]
    _tmctl: bool,
    /// USB (ignored)
    #[arg(short = 'U')]
    _usb: bool,
    /// PTDaemon's number of the meter
    #[arg(value_name = "DEVICE-TYPE")]
    device_type: i64,
    /// Where the meter is connected (ignored)
    #[arg(value_name = "DEVICE-PORT")]
    _device_port: String,
}

pub(super) fn serve(args: &SimulatePtdArgs) -> CommandResult {
    let channels = match args.channels.as_slice() {
        [] => 1,
        [count] if args.device_type == ptd::WT500_MULTICHANNEL => *count,
        [_] => 1,
        [first, count, ..] => first + count - 1,
    };
    if !(1..=6).contains(&channels) {
        return Err(
            Failure::misuse(format!("a meter has 1 to 6 channels, not {channels}"))
                .hint("give -c the first channel and the count, such as -c 1,2"),
        );
    }
    let simulation = &args.simulation;
    let ptd = SimulatedPtd {
        model: simulation.model.clone(),
        version: simulation.ptd_version.clone(),
        device_type: args.device_type,
        channels,
        port: args.port,
        log: args.log.clone(),
        load: SimulatedLoad {
            idle_watts: simulation.idle_watts,
            ranging_watts: simulation.ranging_watts,
            testing_watts: simulation.testing_watts,
            noise: simulation.noise,
            volts: simulation.volts,
            power_factor: simulation.power_factor,
        },
        faults: simulation.fault.clone(),
    };
    ptd.serve().with_context(|| {
        format!(
            "cannot write {} and listen on port {}",
            args.log.display(),
            args.port
        )
    })?;
    Ok(ExitCode::Success)
}
