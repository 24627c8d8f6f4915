//! The byte stream to the broker: plain TCP, or TLS with what the device got when it enrolled. The enrolment is read at every
//! connection, so that a renewed certificate is used from the next one on.

use std::{io, path::PathBuf, sync::Arc};

use regatta_wire::enrolment::SERVER_NAME;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::counted_stream::CountedStream;
use crate::{enrolment::Enrolment, identity::DeviceIdentity};

/// What a TLS connection is made with.
#[derive(Debug, Clone)]
pub(crate) struct SecureLink {
    /// Where the enrolment lies.
    pub(crate) state_dir: PathBuf,
    /// Whose key it is for.
    pub(crate) identity: Arc<DeviceIdentity>,
}

/// Bytes to and from a broker.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> ByteStream for S {}

/// Makes a connected socket what the broker expects.
pub(super) async fn wrap(
    socket: CountedStream<TcpStream>,
    secure: Option<SecureLink>,
) -> io::Result<Box<dyn ByteStream>> {
    let Some(SecureLink { state_dir, identity }) = secure else {
        return Ok(Box::new(socket));
    };
    let enrolment = Enrolment::load(&state_dir)
        .map_err(io::Error::other)?
        .ok_or_else(|| io::Error::other("the device is not enrolled any more"))?;
    let config = enrolment.tls(&identity).map_err(io::Error::other)?;
    let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
    let stream = TlsConnector::from(config).connect(name, socket).await?;
    Ok(Box::new(stream))
}
