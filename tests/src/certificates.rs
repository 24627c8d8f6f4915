//! Certificates as an attacker, or a careless lab, could make them. Some are signed with the lab's own authority: what a
//! broker must refuse all the same.

use std::{fs, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ED25519, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use sha2::{Digest as _, Sha256};

use crate::raw_client::ClientIdentity;

/// An authority whose private key the test has: the lab's, or one of its own.
pub struct Authority {
    key: KeyPair,
    params: CertificateParams,
    /// Its certificate, DER.
    pub certificate: Vec<u8>,
}

impl Authority {
    /// The lab's own, from its workspace.
    ///
    /// # Panics
    /// When the workspace has none.
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

    /// One that calls itself by the lab's name.
    ///
    /// # Panics
    /// When the system has no randomness.
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

    /// A client's certificate over a new key, for this name (that of the key's fingerprint by default), until this year.
    ///
    /// # Panics
    /// When the library refuses.
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

/// What an enrolled device has: its own certificate and key, and its id.
///
/// # Panics
/// When the state directory holds no enrolment.
#[must_use]
pub fn of_device(state: &Path) -> (ClientIdentity, String) {
    let key = fs::read(state.join("device.key")).expect("the device's key");
    let enrolment = fs::read(state.join("enrolment.json")).expect("the device's enrolment");
    let enrolment: serde_json::Value = serde_json::from_slice(&enrolment).expect("JSON");
    let pem = enrolment["certificate"].as_str().expect("a certificate");
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

/// As the lab's authority describes itself.
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
