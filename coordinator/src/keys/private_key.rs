//! Private keys as PEM text, and why TLS cannot be set up with one.

use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject as _};

use super::authority::IssueError;

/// TLS that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// No certificate.
    #[error("no certificate for the connection")]
    Issue(#[from] IssueError),
    /// A PEM text that is none.
    #[error("a certificate or key does not read")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// The library refused.
    #[error("the TLS library refused")]
    Library(#[from] rustls::Error),
    /// It refused to check clients.
    #[error("the TLS library refused to check clients")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// A private key's PEM text.
pub(super) fn private_key(pem: &str) -> Result<PrivatePkcs8KeyDer<'static>, TlsError> {
    PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(TlsError::Pem)
}
