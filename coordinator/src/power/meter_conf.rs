//! The official server's configuration for a meter of the lab.

use regatta_power::{
    ptd,
    server_conf::{AnalyzerConf, ServerConf},
};

use crate::store::MeterSettings;

/// Returns the configuration with which the official server uses a meter.
pub(crate) fn server_conf(settings: &MeterSettings) -> ServerConf {
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
    conf
}
