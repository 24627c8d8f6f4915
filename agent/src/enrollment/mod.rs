//! The device's enrollment in a lab: the stored credentials and how the device requests them. The private key is created
//! on the device and never leaves it. `regatta_wire::enrollment` describes the exchange.

mod command;
mod exchange;
mod first_boot;
mod former_identity;
mod identity_command;
mod lab_cryptography;
mod pinned;
mod renewal;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use regatta_fsutil::atomic_file::AtomicFile;
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_wire::enrollment::Credentials;
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    version::TLS13,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

#[cfg(feature = "simulate")]
pub(crate) use self::command::{Renaming, enroll_with};
use self::lab_cryptography::provider;
pub(crate) use self::{
    command::enroll,
    first_boot::{FirstBoot, TOKEN_FILE},
    identity_command::identity,
    renewal::renew_when_due,
};
use crate::identity::DeviceIdentity;

/// The document's file name in the state directory.
const FILE: &str = "enrollment.json";
const SCHEMA: u16 = 1;

/// Why an enrollment cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnrollmentError {
    /// The file cannot be read or written.
    #[error("the enrollment {} cannot be {what}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file does not parse.
    #[error("the enrollment {} cannot be parsed; hint: enroll the device again", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// A certificate in it does not parse.
    #[error("a certificate of the enrollment cannot be parsed; hint: enroll the device again")]
    Certificate(#[source] rustls::pki_types::pem::Error),
    /// The TLS library rejected it.
    #[error("TLS cannot be set up with this enrollment")]
    Tls(#[from] rustls::Error),
}

/// The credentials that a device received at its enrollment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Enrollment {
    /// Schema number of this document.
    schema: u16,
    /// The device's name at the coordinator.
    pub(crate) name: String,
    /// The broker: `mqtts://host:port`.
    pub(crate) broker: String,
    /// Address for the renewal of the certificate: `host:port`.
    enrollment: String,
    /// End of the certificate's validity: RFC 3339, UTC.
    pub(crate) not_after: String,
    /// The public key of the coordinator, which signs its commands.
    pub(crate) coordinator_key: [u8; 32],
    /// The lab's authority, PEM.
    authority: String,
    /// The device's certificate, PEM.
    certificate: String,
}

impl Enrollment {
    /// Reads the enrollment in a state directory. Returns `None` if the device is not enrolled.
    ///
    /// # Errors
    /// [`EnrollmentError`].
    pub(crate) fn load(state_dir: &Path) -> Result<Option<Self>, EnrollmentError> {
        let path = state_dir.join(FILE);
        let text = match regular_file::read(&path, MAX_TEXT) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(EnrollmentError::File {
                    path,
                    what: "read",
                    source,
                });
            }
        };
        let enrollment: Self =
            serde_json::from_slice(&text).map_err(|source| EnrollmentError::Malformed { path, source })?;
        Ok(Some(enrollment))
    }

    /// Stores the coordinator's response. The disk always has either the old or the new document.
    fn keep(
        credentials: Credentials,
        state_dir: &Path,
        identity: &DeviceIdentity,
    ) -> Result<Self, EnrollmentError> {
        let enrollment = Self {
            schema: SCHEMA,
            name: credentials.name,
            broker: credentials.broker,
            enrollment: credentials.enrollment,
            not_after: credentials.not_after,
            coordinator_key: credentials.coordinator_key,
            authority: credentials.authority,
            certificate: credentials.certificate,
        };
        // Only store credentials that work: the certificate must match this device's key.
        enrollment.tls(identity)?;
        let path = state_dir.join(FILE);
        let written = serde_json::to_vec_pretty(&enrollment)
            .map_err(io::Error::from)
            .and_then(|text| AtomicFile::new(&path).mode(0o600).write(&text));
        written.map_err(|source| EnrollmentError::File {
            path,
            what: "written",
            source,
        })?;
        Ok(enrollment)
    }

    /// Reports a configured name that is not the one in the lab.
    pub(crate) fn other_name(&self, configured: &str) -> Option<String> {
        (configured != self.name).then(|| {
            format!(
                "agent.toml calls this device `{configured}`, but the lab calls it `{}`, and that name counts; hint: write the same name \
                 into agent.toml",
                self.name
            )
        })
    }

    /// Returns the SHA-256 of the lab authority's certificate.
    fn authority_fingerprint(&self) -> Result<[u8; 32], EnrollmentError> {
        Ok(Sha256::digest(self.authority()?).into())
    }

    /// Returns the lab authority's certificate.
    fn authority(&self) -> Result<CertificateDer<'static>, EnrollmentError> {
        CertificateDer::from_pem_slice(self.authority.as_bytes()).map_err(EnrollmentError::Certificate)
    }

    /// Returns the TLS configuration for the broker: version 1.3, the lab's authority as the only root, and this
    /// device's certificate.
    ///
    /// # Errors
    /// [`EnrollmentError`].
    pub(crate) fn tls(&self, identity: &DeviceIdentity) -> Result<Arc<ClientConfig>, EnrollmentError> {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())
            .map_err(EnrollmentError::Certificate)?;
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
