//! Parses private keys from PEM, and the error of setting up TLS.

use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject as _};

use super::authority::IssueError;

/// An error of setting up TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate can be issued.
    #[error("no certificate for the connection")]
    Issue(#[from] IssueError),
    /// A PEM text cannot be parsed.
    #[error("a certificate or key cannot be read")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// The library rejected the configuration.
    #[error("the TLS library refused")]
    Library(#[from] rustls::Error),
    /// The library rejected the client verification.
    #[error("the TLS library refused to check clients")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// Parses a private key in PEM.
pub(super) fn private_key(pem: &str) -> Result<PrivatePkcs8KeyDer<'static>, TlsError> {
    PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(TlsError::Pem)
}
