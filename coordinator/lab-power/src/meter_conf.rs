//! The official server's configuration for a meter of the lab.

use std::net::Ipv4Addr;

use regatta_power::{
    ptd,
    server_conf::{AnalyzerConf, ServerConf},
};
use regatta_types::documents::MeterSettings;

/// The address of a director that only its own machine reaches.
const LOOPBACK: &str = "127.0.0.1";

/// Returns the configuration with which the official server uses a meter.
///
/// `is_local` is whether the client is on the same machine.
pub fn server_conf(settings: &MeterSettings, is_local: bool) -> ServerConf {
    let analyzer = AnalyzerConf {
        device_type: settings.device_type,
        interface_flag: settings.interface.clone(),
        device_port: settings.device_port.clone(),
        network_port: settings.ptd_port,
        channel: settings.channel.clone(),
        gpib_board: settings.gpib_board,
        dc_flag: ptd::DC.contains(&settings.device_type).then(|| "-D".to_owned()),
    };
    let mut conf = ServerConf::new(&settings.ntp, &settings.ptd, analyzer);
    conf.listen.1 = settings.port;
    // The server has no access control. Where nothing else needs it, only this machine reaches it.
    if is_local || settings.address.as_deref() == Some(LOOPBACK) {
        conf.listen.0 = Ipv4Addr::LOCALHOST.into();
    }
    conf
}
