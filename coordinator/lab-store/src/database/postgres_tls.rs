//! TLS to a PostgreSQL server, with the authority that the lab's configuration names.

use std::path::Path;

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::DatabaseError;

/// Returns the connector for servers with a certificate of the authority in a PEM file.
pub(super) fn connector(ca: &Path) -> Result<MakeRustlsConnect, DatabaseError> {
    let authority = |source: Box<dyn std::error::Error + Send + Sync>| DatabaseError::Authority {
        path: ca.to_owned(),
        source,
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).map_err(|error| authority(error.into()))? {
        let certificate = certificate.map_err(|error| authority(error.into()))?;
        roots.add(certificate).map_err(|error| authority(error.into()))?;
    }
    if roots.is_empty() {
        return Err(authority("it has no certificate".into()));
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| authority(error.into()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
