//! Two network namespaces, one for the device and one for the coordinator, each on a veth pair to the namespace in which
//! the campaign and its proxies live; what the kernel does to those links: cut, lossy, slow.
//!
//! ```text
//! [device 10.77.1.2] --veth-- [10.77.1.1  campaign, proxies, mosquitto  10.77.2.1] --veth-- [coordinator 10.77.2.2]
//! ```

use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    process::Stdio,
};

use anyhow::{Context as _, ensure};

use crate::{plan::Side, shell};

/// MQTT's port, at every address of the campaign.
const PORT: u16 = 1883;

impl Side {
    /// The side's namespace.
    pub(crate) const fn namespace(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Coordinator => "coordinator",
        }
    }

    /// The campaign's end of the side's veth pair.
    const fn link(self) -> &'static str {
        match self {
            Self::Device => "to-device",
            Self::Coordinator => "to-coordinator",
        }
    }

    /// Of nftables, which has the word `device` for itself.
    const fn table(self) -> &'static str {
        match self {
            Self::Device => "lossy_device",
            Self::Coordinator => "lossy_coordinator",
        }
    }

    const fn net(self) -> u8 {
        match self {
            Self::Device => 1,
            Self::Coordinator => 2,
        }
    }

    /// The side's own address.
    pub(crate) fn address(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(10, 77, self.net(), 2), PORT))
    }

    /// The campaign's address on the side's link: where its proxy listens.
    pub(crate) fn proxy(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(10, 77, self.net(), 1), PORT))
    }
}

/// Makes both namespaces and their links. They go with the mount and network namespaces of this process.
///
/// # Errors
/// When the kernel or the tools refuse.
pub(crate) fn lay_out() -> anyhow::Result<()> {
    shell::run("ip link set lo up")?;
    for side in [Side::Device, Side::Coordinator] {
        let (space, link, net) = (side.namespace(), side.link(), side.net());
        shell::run(&format!("ip netns add {space}"))?;
        shell::run(&format!(
            "ip link add {link} type veth peer name uplink netns {space}"
        ))?;
        shell::run(&format!("ip address add 10.77.{net}.1/24 dev {link}"))?;
        shell::run(&format!("ip link set {link} up"))?;
        shell::run(&format!("ip -n {space} address add 10.77.{net}.2/24 dev uplink"))?;
        shell::run(&format!("ip -n {space} link set uplink up"))?;
        shell::run(&format!("ip -n {space} link set lo up"))?;
    }
    Ok(())
}

/// Cuts a side's link, or joins it again.
///
/// # Errors
/// When `ip` refuses.
pub(crate) fn cut(side: Side, is_cut: bool) -> anyhow::Result<()> {
    let state = if is_cut { "down" } else { "up" };
    shell::run(&format!("ip link set {} {state}", side.link()))
}

/// Drops so many percent of a side's packets, in each direction.
///
/// # Errors
/// When nftables refuses.
pub(crate) fn lose(side: Side, percent: i64) -> anyhow::Result<()> {
    let (table, link) = (side.table(), side.link());
    let dice = format!("numgen random mod 100 < {percent} drop");
    let rules = format!(
        "table inet {table} {{\n\
         chain incoming {{ type filter hook input priority 0; iifname \"{link}\" {dice}; }}\n\
         chain outgoing {{ type filter hook output priority 0; oifname \"{link}\" {dice}; }}\n}}\n"
    );
    let mut nft = shell::command("nft")?
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .spawn()?;
    nft.stdin
        .take()
        .context("nft has an input")?
        .write_all(rules.as_bytes())?;
    ensure!(nft.wait()?.success(), "nft refuses {rules}");
    Ok(())
}

/// Drops nothing any more.
///
/// # Errors
/// When nftables refuses.
pub(crate) fn lose_nothing(side: Side) -> anyhow::Result<()> {
    shell::run(&format!("nft delete table inet {}", side.table()))
}

/// Slows a side's link down in both directions.
///
/// # Errors
/// When `tc` refuses.
pub(crate) fn slow_down(side: Side, kbit: i64) -> anyhow::Result<()> {
    let filter = format!("root tbf rate {kbit}kbit burst 8kb latency 200ms");
    shell::run(&format!("tc qdisc add dev {} {filter}", side.link()))?;
    shell::run(&format!(
        "tc -n {} qdisc add dev uplink {filter}",
        side.namespace()
    ))
}

/// Gives a side's link its speed back.
///
/// # Errors
/// When `tc` refuses.
pub(crate) fn speed_up(side: Side) -> anyhow::Result<()> {
    shell::run(&format!("tc qdisc del dev {} root", side.link()))?;
    shell::run(&format!("tc -n {} qdisc del dev uplink root", side.namespace()))
}
