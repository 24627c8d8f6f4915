//! Certificates that an attacker or a careless lab could make. Some are signed by the lab's own authority, and a broker must still refuse
//! them.

use std::{fs, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ED25519, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use sha2::{Digest as _, Sha256};

use crate::raw_client::ClientIdentity;

/// An authority with a known private key: the lab's, or a new one.
pub struct Authority {
    key: KeyPair,
    params: CertificateParams,
    /// The authority's certificate in DER.
    pub certificate: Vec<u8>,
}

impl Authority {
    /// Loads the lab's own authority from its workspace.
    ///
    /// # Panics
    /// Panics when the workspace has no keys.
    #[must_use]
    pub fn of_lab(workspace: &Path) -> Self {
        let keys = workspace.join("keys");
        let key = fs::read_to_string(keys.join("ca.key")).expect("the lab's key");
        let key = KeyPair::from_pem(&key).expect("an Ed25519 key");
        let pem = fs::read(keys.join("ca.pem")).expect("the lab's certificate");
        let certificate = CertificateDer::from_pem_slice(&pem)
            .expect("a certificate")
            .to_vec();
        Self {
            params: params(&key),
            key,
            certificate,
        }
    }

    /// Creates an authority with the name of the lab's.
    ///
    /// # Panics
    /// Panics when the system provides no random numbers.
    #[must_use]
    pub fn self_made(named_like: &Self) -> Self {
        let key = new_key();
        let mut params = params(&key);
        params.distinguished_name = named_like.params.distinguished_name.clone();
        let certificate = params.self_signed(&key).expect("a certificate").der().to_vec();
        Self {
            key,
            params,
            certificate,
        }
    }

    /// Issues a client certificate for a new key, valid until this year. The default name is the key's fingerprint.
    ///
    /// # Panics
    /// Panics when the library fails.
    #[must_use]
    pub fn issue(
        &self,
        name: Option<&str>,
        usage: ExtendedKeyUsagePurpose,
        until: i32,
    ) -> (ClientIdentity, String) {
        let key = new_key();
        let fingerprint = fingerprint(key.public_key_raw());
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let name = name.unwrap_or(&fingerprint).to_owned();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).expect("a certificate");
        let certificates = ClientIdentity {
            certificate: certificate.der().to_vec(),
            key: key.serialized_der().to_vec(),
        };
        (certificates, fingerprint)
    }
}

/// Returns an enrolled device's certificate, key and id.
///
/// # Panics
/// Panics when the state directory has no enrollment.
#[must_use]
pub fn of_device(state: &Path) -> (ClientIdentity, String) {
    let key = fs::read(state.join("device.key")).expect("the device's key");
    let enrollment = fs::read(state.join("enrollment.json")).expect("the device's enrollment");
    let enrollment: serde_json::Value = serde_json::from_slice(&enrollment).expect("JSON");
    let pem = enrollment["certificate"].as_str().expect("a certificate");
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
        .expect("a certificate")
        .to_vec();
    let pair = KeyPair::try_from(key.as_slice()).expect("an Ed25519 key");
    (
        ClientIdentity { certificate, key },
        fingerprint(pair.public_key_raw()),
    )
}

fn fingerprint(public_key: &[u8]) -> String {
    let digest = Sha256::digest(public_key);
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn new_key() -> KeyPair {
    KeyPair::generate_for(&PKCS_ED25519).expect("the system has randomness")
}

/// Returns the parameters of the lab authority's own certificate.
fn params(key: &KeyPair) -> CertificateParams {
    let digest: String = Sha256::digest(key.public_key_raw())
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, format!("Regatta lab {digest}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}
