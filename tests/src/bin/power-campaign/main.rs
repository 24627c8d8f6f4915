//! The fault campaign of power sessions: `regatta power run` with the official server and client, a simulated PTDaemon, a real agent and
//! sshds, one fault per session after a seed, and a check afterwards. It needs root and leaves nothing behind.
//!
//! `cargo run -p regatta-tests --bin power-campaign -- --faults 6 --seed 1`
//!
//! The official programs wait for 40 s in each session. In one lab of eight they do; in the others their Python sleeps for 2 s instead of 10.
//! `docs/testing.md` describes the faults.

#![expect(
    clippy::print_stderr,
    reason = "a command line tool: progress goes to standard error"
)]

mod cases;
mod inject;
mod lab;
mod losses;
mod plan;
mod session;
mod session_checker;
#[cfg(test)]
mod session_checker_tests;
mod session_mutation;
mod session_writes;
mod verdict;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use regatta_tests::{
    faults::{FaultCampaign, LabOrder, Options, Report, Sizes, run_campaign},
    power_dev,
};

use crate::{
    lab::{PowerLab, Settle},
    plan::SessionFault,
};

/// The variants of labs: the official programs' own waits, and shorter ones.
const OFFICIAL_WAITS: &str = "official-waits";
const SHORT_WAITS: &str = "short-waits";

/// One lab of so many has the official programs' own waits.
const OFFICIAL_WAITS_EVERY: usize = 8;

/// Inject faults into power sessions, and check that none that failed is taken for a good one, and that nothing was lost.
#[derive(Debug, Clone, Parser)]
#[command(name = Self::NAME)]
struct Cli {
    #[command(flatten)]
    options: Options,
    /// Inject only the kinds of faults whose names contain this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

fn main() -> ExitCode {
    run_campaign::<Cli>()
}

impl FaultCampaign for Cli {
    type Case = SessionFault;
    type Lab = PowerLab;

    const NAME: &'static str = "power-campaign";
    const TOOLS: &'static [(&'static str, &'static str)] = &[
        ("ip", "iproute2"),
        ("nft", "nftables"),
        ("unshare", "util-linux"),
        ("mount", "mount"),
        ("sshd", "openssh-server"),
        ("ssh-keygen", "openssh-client"),
    ];
    const COLUMNS: &'static [&'static str] = &["injected", "refused", "failed", "good", "longest s"];
    const SIZES: Sizes = Sizes {
        faults: 6,
        faults_per_lab: 8,
        parallel: 6,
    };

    fn options(&self) -> &Options {
        &self.options
    }

    fn variants(&self) -> Vec<&'static str> {
        let mut variants = vec![SHORT_WAITS; OFFICIAL_WAITS_EVERY];
        variants[0] = OFFICIAL_WAITS;
        variants
    }

    fn check_machine(&self) -> anyhow::Result<()> {
        power_dev()
            .map(drop)
            .context("the official power programs are missing")
    }

    fn plan(&self, order: &LabOrder) -> anyhow::Result<Vec<SessionFault>> {
        plan::plan(order, self.only.as_deref())
    }

    fn set_up(&self, order: &LabOrder, _report: &mut Report) -> anyhow::Result<PowerLab> {
        let settle = match order.variant {
            OFFICIAL_WAITS => Settle::Official,
            _ => Settle::Short,
        };
        PowerLab::set_up(settle)
    }
}
