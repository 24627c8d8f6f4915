//! The device's place in a lab: what it got when it enrolled, on its own disk, and how it asks for it. The private key is
//! made here and goes nowhere; see `regatta_wire::enrolment` for the exchange.

mod command;
mod exchange;
mod first_boot;
mod identity_command;
mod pinned;
mod renewal;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use regatta_fsutil::atomic_file::AtomicFile;
use regatta_fsutil::regular_file::{self, LARGEST_TEXT};
use regatta_wire::enrolment::Credentials;
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    crypto::{CryptoProvider, KeyProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::SigningKey,
    version::TLS13,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub(crate) use self::{
    command::enroll,
    first_boot::{FirstBoot, TOKEN_FILE},
    identity_command::identity,
    renewal::renew_when_due,
};
use crate::identity::DeviceIdentity;

/// The document's name in the state directory.
const FILE: &str = "enrolment.json";
/// Its schema number.
const SCHEMA: u16 = 1;

/// An enrolment that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnrolmentError {
    /// The file cannot be read or written.
    #[error("the enrolment {} cannot be {what}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not what was written.
    #[error("the enrolment {} does not read: enrol the device anew", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A certificate in it does not read.
    #[error("a certificate of the enrolment does not read: enrol the device anew")]
    Certificate(#[source] rustls::pki_types::pem::Error),
    /// The TLS library refused.
    #[error("TLS cannot be set up with this enrolment")]
    Tls(#[from] rustls::Error),
}

/// What a device got when it enrolled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Enrolment {
    /// Schema number of this document.
    schema: u16,
    /// The name under which the coordinator knows the device.
    pub(crate) name: String,
    /// The broker: `mqtts://host:port`.
    pub(crate) broker: String,
    /// Where to ask for the next certificate: `host:port`.
    enrolment: String,
    /// When the certificate ends: RFC 3339, UTC.
    pub(crate) not_after: String,
    /// The key by which the coordinator signs its commands.
    pub(crate) coordinator_key: [u8; 32],
    /// The lab's authority, PEM.
    authority: String,
    /// The device's certificate, PEM.
    certificate: String,
}

impl Enrolment {
    /// Reads the enrolment of a state directory; `None` when the device is not enrolled.
    ///
    /// # Errors
    /// [`EnrolmentError`].
    pub(crate) fn load(state_dir: &Path) -> Result<Option<Self>, EnrolmentError> {
        let path = state_dir.join(FILE);
        let text = match regular_file::read(&path, LARGEST_TEXT) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(EnrolmentError::File {
                    path,
                    what: "read",
                    source,
                });
            }
        };
        let enrolment: Self =
            serde_json::from_slice(&text).map_err(|source| EnrolmentError::Malformed { path, source })?;
        Ok(Some(enrolment))
    }

    /// Takes over what the coordinator answered: on disk, the old or the new at any moment.
    fn keep(
        credentials: Credentials,
        state_dir: &Path,
        identity: &DeviceIdentity,
    ) -> Result<Self, EnrolmentError> {
        let enrolment = Self {
            schema: SCHEMA,
            name: credentials.name,
            broker: credentials.broker,
            enrolment: credentials.enrolment,
            not_after: credentials.not_after,
            coordinator_key: credentials.coordinator_key,
            authority: credentials.authority,
            certificate: credentials.certificate,
        };
        // Only what works is kept: the certificate must be over this device's key.
        enrolment.tls(identity)?;
        let path = state_dir.join(FILE);
        let written = serde_json::to_vec_pretty(&enrolment)
            .map_err(io::Error::from)
            .and_then(|text| AtomicFile::new(&path).mode(0o600).write(&text));
        written.map_err(|source| EnrolmentError::File {
            path,
            what: "written",
            source,
        })?;
        Ok(enrolment)
    }

    /// SHA-256 of the lab authority's certificate.
    fn authority_fingerprint(&self) -> Result<[u8; 32], EnrolmentError> {
        Ok(Sha256::digest(self.authority()?).into())
    }

    /// The lab's authority.
    fn authority(&self) -> Result<CertificateDer<'static>, EnrolmentError> {
        CertificateDer::from_pem_slice(self.authority.as_bytes()).map_err(EnrolmentError::Certificate)
    }

    /// TLS towards the broker: version 1.3, the lab's authority as the only root, this device's certificate.
    ///
    /// # Errors
    /// [`EnrolmentError`].
    pub(crate) fn tls(&self, identity: &DeviceIdentity) -> Result<Arc<ClientConfig>, EnrolmentError> {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())
            .map_err(EnrolmentError::Certificate)?;
        let mut roots = RootCertStore::empty();
        roots.add(self.authority()?)?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], PrivateKeyDer::Pkcs8(identity.private_key()))?;
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        key_provider: &Ed25519Keys,
        ..ring::default_provider()
    })
}

/// A device's key is Ed25519: signing by the other kinds, which rustls brings along, is left out of the binary.
#[derive(Debug)]
struct Ed25519Keys;

impl KeyProvider for Ed25519Keys {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, rustls::Error> {
        match &key {
            PrivateKeyDer::Pkcs8(key) => ring::sign::any_eddsa_type(key),
            _ => Err(rustls::Error::General("a device's key is PKCS #8".to_owned())),
        }
    }
}
