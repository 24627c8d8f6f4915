//! The fault campaign: real coordinators, agents and brokers in network namespaces, random faults from a seed, and a check of
//! every byte. It needs root and leaves nothing behind, however it ends.
//!
//! `cargo run -p regatta-tests --bin campaign -- --faults 60 --seed 1 --broker embedded`
//!
//! How faults are made is described in `docs/testing.md`.

mod daemon;
mod inject;
mod keys;
mod lab;
mod network;
mod plan;
mod proxy;
mod steps;
mod verdict;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use regatta_tests::{
    Broker,
    faults::{FaultCampaign, LabOrder, Options, Report, Rng, Sizes, run_campaign},
    shell,
};

use crate::{
    keys::KILLED_DURING_ENROLLMENT,
    lab::{Lab, Programs},
    plan::{Kind, Moment, Step},
};

/// The brokers, as variants of labs.
const EMBEDDED: &str = "embedded";
const MOSQUITTO: &str = "mosquitto";

/// Inject faults into labs of real processes, and check that nothing was lost.
#[derive(Debug, Clone, Parser)]
#[command(name = Self::NAME)]
struct Cli {
    #[command(flatten)]
    options: Options,
    /// Broker of the labs
    #[arg(long, value_enum, default_value_t = Brokers::Both)]
    broker: Brokers,
    /// Agent of another build
    #[arg(long, value_name = "PROGRAM")]
    agent: Option<PathBuf>,
    /// Coordinator of another build
    #[arg(long, value_name = "PROGRAM")]
    coordinator: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Brokers {
    Embedded,
    Mosquitto,
    /// In turn
    Both,
}

fn main() -> ExitCode {
    run_campaign::<Cli>()
}

impl FaultCampaign for Cli {
    type Case = Step;
    type Lab = Lab;

    const NAME: &'static str = "campaign";
    const TOOLS: &'static [(&'static str, &'static str)] = &[
        ("ip", "iproute2"),
        ("tc", "iproute2"),
        ("nft", "nftables"),
        ("unshare", "util-linux"),
        ("nsenter", "util-linux"),
        ("mount", "mount"),
        ("timeout", "coreutils"),
        ("bindfs", "bindfs"),
        ("mosquitto", "mosquitto"),
    ];
    const COLUMNS: &'static [&'static str] = &[EMBEDDED, MOSQUITTO];
    const SIZES: Sizes = Sizes {
        faults: 60,
        faults_per_lab: 50,
        parallel: 2,
    };

    fn options(&self) -> &Options {
        &self.options
    }

    fn variants(&self) -> Vec<&'static str> {
        match self.broker {
            Brokers::Embedded => vec![EMBEDDED],
            Brokers::Mosquitto => vec![MOSQUITTO],
            Brokers::Both => vec![EMBEDDED, MOSQUITTO],
        }
    }

    fn min_labs(&self) -> usize {
        self.variants().len()
    }

    fn check_machine(&self) -> anyhow::Result<()> {
        let library = shell::libfaketime();
        library
            .map(drop)
            .context("libfaketime is not installed (Debian: libfaketime)")
    }

    fn plan(&self, order: &LabOrder) -> anyhow::Result<Vec<Step>> {
        let faults = order.faults.saturating_sub(KILLED_DURING_ENROLLMENT.len());
        let is_external = broker(order) == Broker::Mosquitto;
        Ok(plan::plan(faults, is_external, &mut Rng::new(order.seed)))
    }

    fn set_up(&self, order: &LabOrder, report: &mut Report) -> anyhow::Result<Lab> {
        // Work has its own generator, so that the plan depends on the seed alone.
        let lab = Lab::set_up(broker(order), self.programs()?, Rng::new(!order.seed))?;
        for side in KILLED_DURING_ENROLLMENT {
            lab.count(Kind::KillAt(Moment::Enrolling(side)), report);
        }
        Ok(lab)
    }
}

impl Cli {
    fn programs(&self) -> anyhow::Result<Programs> {
        let absolute = |path: &Option<PathBuf>, own: fn() -> PathBuf| {
            let path = path.clone().unwrap_or_else(own);
            std::path::absolute::<&Path>(&path).with_context(|| path.display().to_string())
        };
        Ok(Programs {
            agent: absolute(&self.agent, regatta_tests::agent)?,
            coordinator: absolute(&self.coordinator, regatta_tests::regatta)?,
        })
    }
}

fn broker(order: &LabOrder) -> Broker {
    match order.variant {
        MOSQUITTO => Broker::Mosquitto,
        _ => Broker::Embedded,
    }
}
