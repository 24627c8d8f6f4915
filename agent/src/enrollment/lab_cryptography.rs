//! The cryptography of connections to the lab. All keys of a lab are of Ed25519, and every peer can exchange keys by X25519. rustls's default
//! would also bring NIST's curves and RSA into the binary (docs/decisions/0064).

use std::sync::Arc;

use rustls::{
    SignatureScheme,
    crypto::{
        CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, WebPkiSupportedAlgorithms,
        ring::{ALL_CIPHER_SUITES, kx_group::X25519, sign},
    },
    pki_types::{PrivateKeyDer, SignatureVerificationAlgorithm},
    sign::SigningKey,
};

/// The signatures of certificates and handshakes.
const SIGNATURES: &[&dyn SignatureVerificationAlgorithm] = &[webpki::ring::ED25519];

/// Returns the cryptography.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: ALL_CIPHER_SUITES.to_vec(),
        kx_groups: vec![X25519],
        signature_verification_algorithms: WebPkiSupportedAlgorithms {
            all: SIGNATURES,
            mapping: &[(SignatureScheme::ED25519, SIGNATURES)],
        },
        secure_random: &SystemRandom,
        key_provider: &Ed25519Keys,
    })
}

/// The system's random numbers.
#[derive(Debug)]
struct SystemRandom;

impl SecureRandom for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        let random = ring::rand::SystemRandom::new();
        ring::rand::SecureRandom::fill(&random, bytes).map_err(|_| GetRandomFailed)
    }
}

/// Reads the private keys of devices.
#[derive(Debug)]
struct Ed25519Keys;

impl KeyProvider for Ed25519Keys {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, rustls::Error> {
        match &key {
            PrivateKeyDer::Pkcs8(key) => sign::any_eddsa_type(key),
            _ => Err(rustls::Error::General("a device's key is PKCS #8".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_labs_kind_of_key_and_one_exchange_are_in_the_binary() {
        let provider = provider();
        let schemes = provider.signature_verification_algorithms.supported_schemes();
        assert_eq!(schemes, [SignatureScheme::ED25519]);
        let groups: Vec<_> = provider.kx_groups.iter().map(|group| group.name()).collect();
        assert_eq!(groups, [rustls::NamedGroup::X25519]);
        let mut bytes = [0; 32];
        provider.secure_random.fill(&mut bytes).unwrap();
        assert_ne!(bytes, [0; 32]);
    }
}
