//! The transport of the link to its broker: the embedded broker's connector, TLS, or plain TCP.

use std::{io, sync::Arc};

use regatta_types::BrokerAddress;
use regatta_wire::enrollment::SERVER_NAME;
use rumqttc::MqttOptions;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::loopback_connector::LoopbackConnector;

/// The transport to a broker.
#[derive(Debug, Clone)]
pub enum Transport {
    /// The connector of this process's broker.
    LoopbackConnector(LoopbackConnector),
    /// TLS 1.3, with the coordinator's certificate.
    Tls(Arc<ClientConfig>),
    /// Plain TCP, on this machine or where the configuration allows it.
    Plain,
}

impl Transport {
    /// Configures a client for this transport.
    pub(super) fn set_up(&self, options: &mut MqttOptions, address: &BrokerAddress) {
        let address = address.clone();
        match self.clone() {
            Self::LoopbackConnector(connector) => options.set_socket_connector(move |_, _| {
                let connector = connector.clone();
                async move { connector.open().await }
            }),
            Self::Tls(config) => options.set_socket_connector(move |_, _| {
                secure(address.clone(), TlsConnector::from(Arc::clone(&config)))
            }),
            Self::Plain => options.set_socket_connector(move |_, _| plain(address.clone())),
        };
    }
}

async fn plain(address: BrokerAddress) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn secure(address: BrokerAddress, connector: TlsConnector) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
    connector.connect(name, plain(address).await?).await
}
