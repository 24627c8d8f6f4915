//! One exchange with the coordinator over TLS: a request and a response. The functions block.

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    sync::Arc,
    time::Duration,
};

use regatta_text::escape;
use regatta_wire::{
    enrollment::{
        Credentials, EXPORTER_LABEL, EXPORTER_LEN, EnrollPurpose, EnrollRequest, EnrollResponse,
        MAX_RESPONSE_LEN, SERVER_NAME,
    },
    frame::{self, FrameError},
    message::Message as _,
};
use rustls::{
    ClientConfig, ClientConnection, StreamOwned,
    client::Resumption,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    version::TLS13,
};
use sha2::{Digest as _, Sha256};

use super::{pinned::Pinned, provider};
use crate::identity::DeviceIdentity;

/// Longest time without a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// The coordinator cannot be reached, or closed the connection.
    #[error("the coordinator at {address}, where `regatta serve` should run, cannot be reached")]
    Network {
        /// The coordinator's address.
        address: String,
        /// The network error.
        #[source]
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error("TLS with the coordinator cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The response does not parse.
    #[error("the coordinator's answer cannot be read")]
    Answer(#[from] FrameError),
    /// The coordinator refuses this device.
    #[error("the coordinator refuses: {0}")]
    Refused(String),
    /// The device is enrolled under another name than the token's.
    #[error(
        "this device is enrolled as {enrolled} already, and the token is for {token}; hint: `regatta-agent enroll --config FILE TOKEN` \
         enrolls another agent on this machine, --rename renames this device"
    )]
    OtherName {
        /// The name under which the device is enrolled.
        enrolled: String,
        /// The token's name.
        token: String,
    },
    /// The device was removed from the lab.
    #[error(
        "this device was removed from the lab, where it was {name}, and its key stays refused; hint: `regatta-agent enroll \
         --new-identity TOKEN` enrolls it with a new key"
    )]
    Removed {
        /// The name that the device had.
        name: String,
    },
    /// The coordinator is temporarily unable to answer.
    #[error("the coordinator cannot enroll this device now: {0}; hint: the same token works later")]
    NotNow(String),
    /// The response does not match the request.
    #[error("the coordinator's answer is not for this device: {0}")]
    Unfit(&'static str),
}

impl ExchangeError {
    /// Returns whether the same request may succeed later.
    pub(super) const fn is_passing(&self) -> bool {
        match self {
            // A response that does not parse comes from a newer coordinator than this agent.
            Self::Network { .. } | Self::NotNow(_) | Self::Answer(_) => true,
            Self::Tls(_)
            | Self::Refused(_)
            | Self::OtherName { .. }
            | Self::Removed { .. }
            | Self::Unfit(_) => false,
        }
    }
}

/// The address for enrollments, and the expected authority.
pub(super) struct Place {
    /// `host`, without brackets.
    pub(super) host: String,
    /// TCP port.
    pub(super) port: u16,
    /// SHA-256 of the authority's certificate.
    pub(super) authority: [u8; 32],
}

impl Place {
    /// Returns `host:port`, with an IPv6 address in brackets.
    pub(super) fn address(&self) -> String {
        if self.host.contains(':') {
            return format!("[{}]:{}", self.host, self.port);
        }
        format!("{}:{}", self.host, self.port)
    }
}

/// Requests a certificate for this device's key.
///
/// # Errors
/// [`ExchangeError`].
pub(super) fn request(
    place: &Place,
    purpose: EnrollPurpose,
    identity: &DeviceIdentity,
) -> Result<Credentials, ExchangeError> {
    let network = |source| ExchangeError::Network {
        address: place.address(),
        source,
    };
    let mut stream = connect(place).map_err(network)?;
    // Complete the handshake first, because only then the connection has exported keying material.
    stream.conn.complete_io(&mut stream.sock).map_err(network)?;
    let connection = stream
        .conn
        .export_keying_material([0; EXPORTER_LEN], EXPORTER_LABEL, None)?;
    let public_key = identity.public_key();
    let proof = identity.sign(&EnrollRequest::statement(&purpose, &public_key, &connection));
    let request = EnrollRequest {
        purpose,
        public_key,
        proof,
    };
    stream.write_all(&request.to_frame()?).map_err(network)?;
    match read_answer(&mut stream).map_err(network)?? {
        EnrollResponse::Accepted(credentials) => check_credentials(credentials, place),
        EnrollResponse::Refused(why) => Err(ExchangeError::Refused(shown(&why))),
        EnrollResponse::NotNow(why) => Err(ExchangeError::NotNow(shown(&why))),
        EnrollResponse::OtherName { enrolled, token } => Err(ExchangeError::OtherName {
            enrolled: shown(&enrolled),
            token: shown(&token),
        }),
        EnrollResponse::Removed { name } => Err(ExchangeError::Removed { name: shown(&name) }),
    }
}

/// Returns the coordinator's message, truncated and escaped.
fn shown(why: &str) -> String {
    let start: String = why.chars().take(300).collect();
    escape(&start).into_owned()
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

fn connect(place: &Place) -> io::Result<TlsStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned::new(place.authority, provider())))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    let config = Arc::new(config);
    for address in (place.host.as_str(), place.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(socket) => {
                socket.set_read_timeout(Some(PATIENCE))?;
                socket.set_write_timeout(Some(PATIENCE))?;
                let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
                let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
                return Ok(StreamOwned::new(connection, socket));
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn read_answer(stream: &mut TlsStream) -> io::Result<Result<EnrollResponse, FrameError>> {
    let mut bytes = vec![0; frame::HEADER_LEN];
    stream.read_exact(&mut bytes)?;
    let length = match frame::stated_length(&bytes) {
        Ok(length) if length + frame::HEADER_LEN <= MAX_RESPONSE_LEN => length,
        Ok(_) => return Err(io::Error::other("the response is too large")),
        Err(e) => return Ok(Err(e)),
    };
    bytes.resize(frame::HEADER_LEN + length, 0);
    stream.read_exact(bytes.get_mut(frame::HEADER_LEN..).unwrap_or_default())?;
    Ok(EnrollResponse::from_frame(&bytes))
}

/// Checks that the credentials come from this lab's authority. TLS setup later checks that they match this device's
/// key.
fn check_credentials(credentials: Credentials, place: &Place) -> Result<Credentials, ExchangeError> {
    let authority = CertificateDer::from_pem_slice(credentials.authority.as_bytes())
        .map_err(|_| ExchangeError::Unfit("its certificate authority cannot be parsed"))?;
    if Sha256::digest(&authority).as_slice() != place.authority {
        return Err(ExchangeError::Unfit("it was issued by another authority"));
    }
    Ok(credentials)
}
