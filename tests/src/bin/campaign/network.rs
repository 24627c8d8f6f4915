//! Two network namespaces, one for the device and one for the coordinator. A veth pair connects each to the namespace of the campaign and
//! its proxies. The kernel makes these links cut, lossy or slow.
//!
//! ```text
//! [device 10.77.1.2] --veth-- [10.77.1.1  campaign, proxies, mosquitto  10.77.2.1] --veth-- [coordinator 10.77.2.2]
//! ```

use std::net::{Ipv4Addr, SocketAddr};

use regatta_tests::shell;

use crate::plan::Side;

/// The MQTT port at every address of the campaign.
const PORT: u16 = 1883;

impl Side {
    pub(crate) const fn namespace(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Coordinator => "coordinator",
        }
    }

    /// Returns the name of the campaign's end of the side's veth pair.
    const fn link(self) -> &'static str {
        match self {
            Self::Device => "to-device",
            Self::Coordinator => "to-coordinator",
        }
    }

    /// Returns the name of the side's nftables table. nftables reserves the word `device`.
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

    pub(crate) fn address(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(10, 77, self.net(), 2), PORT))
    }

    /// Returns the campaign's address on the side's link, where its proxy listens.
    pub(crate) fn proxy(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(10, 77, self.net(), 1), PORT))
    }
}

/// Creates both namespaces and their links. They end with this process's mount and network namespaces.
pub(crate) fn lay_out() -> anyhow::Result<()> {
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

pub(crate) fn cut(side: Side, is_cut: bool) -> anyhow::Result<()> {
    let state = if is_cut { "down" } else { "up" };
    shell::run(&format!("ip link set {} {state}", side.link()))
}

/// Drops `percent` percent of a side's packets in each direction.
pub(crate) fn lose(side: Side, percent: i64) -> anyhow::Result<()> {
    let (table, link) = (side.table(), side.link());
    let dice = format!("numgen random mod 100 < {percent} drop");
    let rules = format!(
        "table inet {table} {{\n\
         chain incoming {{ type filter hook input priority 0; iifname \"{link}\" {dice}; }}\n\
         chain outgoing {{ type filter hook output priority 0; oifname \"{link}\" {dice}; }}\n}}\n"
    );
    shell::load_packet_rules(&rules)
}

pub(crate) fn lose_nothing(side: Side) -> anyhow::Result<()> {
    shell::run(&format!("nft delete table inet {}", side.table()))
}

/// Limits a side's link to `kbit` kbit/s in both directions.
pub(crate) fn slow_down(side: Side, kbit: i64) -> anyhow::Result<()> {
    let filter = format!("root tbf rate {kbit}kbit burst 8kb latency 200ms");
    shell::run(&format!("tc qdisc add dev {} {filter}", side.link()))?;
    shell::run(&format!(
        "tc -n {} qdisc add dev uplink {filter}",
        side.namespace()
    ))
}

pub(crate) fn speed_up(side: Side) -> anyhow::Result<()> {
    shell::run(&format!("tc qdisc del dev {} root", side.link()))?;
    shell::run(&format!("tc -n {} qdisc del dev uplink root", side.namespace()))
}
