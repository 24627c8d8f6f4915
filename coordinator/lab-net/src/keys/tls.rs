//! The coordinator's TLS configuration: version 1.3 only, and the lab's authority as the only root. Sessions are not resumed, because a
//! resumed session would not be verified again.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    client::Resumption,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier},
    version::TLS13,
};

use super::{
    Keys, TlsIdentity,
    private_key::{TlsError, private_key},
};

/// The prefix of an Ed25519 SubjectPublicKeyInfo (RFC 8410, section 4).
const ED25519_SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// Returns the embedded broker's TLS configuration. It requires a client certificate of the lab.
///
/// # Errors
/// Returns `TlsError`.
pub fn broker_server(keys: &Keys, hosts: &[String]) -> Result<Arc<ServerConfig>, TlsError> {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(keys)?), provider()).build()?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier);
    server(builder, keys, hosts)
}

/// Returns the enrollment listener's TLS configuration. Clients have no certificate yet.
///
/// # Errors
/// Returns `TlsError`.
pub fn enrollment_server(keys: &Keys, hosts: &[String]) -> Result<Arc<ServerConfig>, TlsError> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth();
    server(builder, keys, hosts)
}

fn server(
    builder: rustls::ConfigBuilder<ServerConfig, rustls::server::WantsServerCert>,
    keys: &Keys,
    hosts: &[String],
) -> Result<Arc<ServerConfig>, TlsError> {
    let identity = keys.authority().server(hosts)?;
    // The chain includes the authority's certificate, because an enrolling device only knows its fingerprint.
    let (certificate, key) = parsed(&identity)?;
    let mut config = builder.with_single_cert(vec![certificate, keys.authority().der().clone()], key)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Returns the coordinator's TLS configuration as a client of an external broker.
///
/// # Errors
/// Returns `TlsError`.
pub fn client(keys: &Keys) -> Result<Arc<ClientConfig>, TlsError> {
    let (certificate, key) = parsed(&keys.coordinator_identity()?)?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots(keys)?)
        .with_client_auth_cert(vec![certificate], key)?;
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Returns the Ed25519 public key of a certificate. `None` when it has another type of key.
pub fn public_key_of(certificate: &CertificateDer<'_>) -> Option<[u8; 32]> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    parsed
        .subject_public_key_info()
        .as_ref()
        .strip_prefix(&ED25519_SPKI)?
        .try_into()
        .ok()
}

fn parsed(identity: &TlsIdentity) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), TlsError> {
    let certificate =
        CertificateDer::from_pem_slice(identity.certificate.as_bytes()).map_err(TlsError::Pem)?;
    Ok((certificate, PrivateKeyDer::Pkcs8(private_key(&identity.key)?)))
}

fn roots(keys: &Keys) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add(keys.authority().der().clone())?;
    Ok(roots)
}

/// Returns the cryptography of every connection.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
