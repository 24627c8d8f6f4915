//! The byte stream to the broker: plain TCP, or TLS with the certificate of the device's enrollment. The enrollment is
//! read for every connection, so the next connection uses a renewed certificate.

use std::{io, path::PathBuf, sync::Arc};

use regatta_wire::enrollment::SERVER_NAME;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::counted_stream::CountedStream;
use crate::{enrollment::Enrollment, identity::DeviceIdentity};

/// The parameters of a TLS connection.
#[derive(Debug, Clone)]
pub(crate) struct SecureLink {
    /// The state directory, which contains the enrollment.
    pub(crate) state_dir: PathBuf,
    /// The device's identity, which has the certificate's private key.
    pub(crate) identity: Arc<DeviceIdentity>,
}

/// A bidirectional byte stream to a broker.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> ByteStream for S {}

/// Wraps a connected socket in TLS, if required.
pub(super) async fn wrap(
    socket: CountedStream<TcpStream>,
    secure: Option<SecureLink>,
) -> io::Result<Box<dyn ByteStream>> {
    let Some(SecureLink { state_dir, identity }) = secure else {
        return Ok(Box::new(socket));
    };
    let enrollment = Enrollment::load(&state_dir)
        .map_err(io::Error::other)?
        .ok_or_else(|| io::Error::other("the device is no longer enrolled"))?;
    let config = enrollment.tls(&identity).map_err(io::Error::other)?;
    let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
    let stream = TlsConnector::from(config).connect(name, socket).await?;
    Ok(Box::new(stream))
}
