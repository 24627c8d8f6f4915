//! The lab's certificate authority: the content of each certificate. It does not decide who gets one.
//!
//! A device's certificate has the device's id and is valid for clients. A server's is valid for servers. Neither can replace the other.
//!
//! Certificates of servers and of the authority are valid from the year 2000. A board without a clock battery starts in the past and must
//! still reach its coordinator.

use sha2::{Digest as _, Sha256};
use std::net::IpAddr;

use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PKCS_ED25519,
    PublicKeyData, RevocationReason, RevokedCertParams, SanType, SerialNumber, SignatureAlgorithm,
    date_time_ymd,
};
use regatta_fsutil::hash::sha256_hex;
use regatta_types::DeviceId;
use regatta_wire::enrollment::SERVER_NAME;
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// The validity of a device's certificate in days. The device renews it when a third remains.
const DEVICE_DAYS: i64 = 365;
/// The validity of a mosquitto's certificate in years. It is not renewed automatically.
const SERVER_YEARS: i16 = 10;
/// The validity of the authority's certificate in years.
const AUTHORITY_YEARS: i16 = 30;
/// The coordinator's name at brokers.
pub const COORDINATOR: &str = "coordinator";

/// Midnight of a date in the certificate library's time type. A macro, because the type is not exported here.
macro_rules! midnight {
    ($date:expr) => {{
        let date: jiff::civil::Date = $date;
        date_time_ymd(
            i32::from(date.year()),
            date.month().unsigned_abs(),
            date.day().unsigned_abs(),
        )
    }};
}
pub(super) use midnight;

/// An error of issuing a certificate.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The library failed.
    #[error("the certificate library refused")]
    Library(#[from] rcgen::Error),
    /// The system provides no random numbers.
    #[error("the system has no random bytes")]
    Randomness,
}

/// A certificate and its private key in PEM.
pub struct TlsIdentity {
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// A new certificate for a device.
pub struct Issued {
    /// The certificate in PEM.
    pub certificate: String,
    pub serial: Vec<u8>,
    /// The time when it expires.
    pub not_after: Timestamp,
}

/// The certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
}

/// A device's public key for the certificate library.
struct Ed25519PublicKey([u8; 32]);

impl PublicKeyData for Ed25519PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ED25519
    }
}

/// The prefix of an Ed25519 private key in PKCS #8 version 1 (RFC 8410, section 7).
const PKCS8_V1: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Generates a private key in PEM.
pub(super) fn new_key() -> Result<String, IssueError> {
    Ok(new_key_pair()?.serialize_pem())
}

/// Generates a key in PKCS #8 version 1, because OpenSSL and mosquitto cannot read the version 2 that ring writes.
fn new_key_pair() -> Result<KeyPair, IssueError> {
    let mut pkcs8 = PKCS8_V1.to_vec();
    pkcs8.extend(random::<32>()?);
    let pkcs8 = PrivatePkcs8KeyDer::from(pkcs8);
    Ok(KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519)?)
}

impl Authority {
    /// Creates an authority and its private key in PEM.
    pub(super) fn create() -> Result<(Self, String), IssueError> {
        let key = new_key_pair()?;
        let pem = key.serialize_pem();
        let mut params = params(&key);
        params.serial_number = Some(SerialNumber::from(serial()?));
        let certificate = params.self_signed(&key)?;
        Ok((Self::load(&certificate.pem(), &pem)?, pem))
    }

    /// Loads an authority from its certificate and private key in PEM.
    pub(super) fn load(certificate: &str, key: &str) -> Result<Self, IssueError> {
        use rustls::pki_types::pem::PemObject as _;
        let key = KeyPair::from_pem(key)?;
        let der = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        Ok(Self {
            issuer: Issuer::new(params(&key), key),
            pem: certificate.to_owned(),
            der,
        })
    }

    /// Returns the authority's certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the authority's certificate in DER.
    pub const fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// Returns the public key of the authority's private key.
    pub(super) fn public_key(&self) -> [u8; 32] {
        let mut key = [0; 32];
        let raw = self.issuer.key().public_key_raw();
        if let Some(whole) = raw.first_chunk::<32>().filter(|_| raw.len() == 32) {
            key = *whole;
        }
        key
    }

    /// Returns the time at which the authority's certificate expires. `None` if it does not parse.
    pub fn not_after(&self) -> Option<Timestamp> {
        super::validity::not_after(&self.der)
    }

    /// Returns the SHA-256 of the authority's certificate, as in tokens.
    pub fn fingerprint(&self) -> [u8; 32] {
        Sha256::digest(&self.der).into()
    }

    /// Issues a server certificate with a new key, for the name that devices request and for `hosts`.
    ///
    /// # Errors
    /// Returns [`IssueError`].
    pub fn server(&self, hosts: &[String]) -> Result<TlsIdentity, IssueError> {
        let key = new_key_pair()?;
        let mut params = leaf(SERVER_NAME, ExtendedKeyUsagePurpose::ServerAuth)?;
        for host in std::iter::once(SERVER_NAME).chain(hosts.iter().map(String::as_str)) {
            params.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(host.try_into()?),
            });
        }
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(i32::from(this_year() + SERVER_YEARS), 1, 1);
        Ok(TlsIdentity {
            certificate: params.signed_by(&key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }

    /// Issues the coordinator's client certificate for brokers.
    pub(super) fn coordinator(&self, public_key: [u8; 32], key: &str) -> Result<TlsIdentity, IssueError> {
        let mut params = leaf(COORDINATOR, ExtendedKeyUsagePurpose::ClientAuth)?;
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(i32::from(this_year() + SERVER_YEARS), 1, 1);
        let certificate = params.signed_by(&Ed25519PublicKey(public_key), &self.issuer)?;
        Ok(TlsIdentity {
            certificate: certificate.pem(),
            key: key.to_owned(),
        })
    }

    /// Issues a certificate for a device's own key.
    ///
    /// # Errors
    /// Returns [`IssueError`].
    pub fn device(&self, id: &DeviceId, public_key: [u8; 32]) -> Result<Issued, IssueError> {
        let mut params = leaf(id.as_str(), ExtendedKeyUsagePurpose::ClientAuth)?;
        let serial = serial()?;
        params.serial_number = Some(SerialNumber::from(serial.clone()));
        let now = Timestamp::now();
        let day = |at: Timestamp| at.to_zoned(TimeZone::UTC).date();
        // The clock of a broker on another machine may be slow.
        let begin = day(now.saturating_sub(24.hours()).unwrap_or(now));
        let end = day(now.saturating_add((DEVICE_DAYS * 24).hours()).unwrap_or(now));
        params.not_before = midnight!(begin);
        params.not_after = midnight!(end);
        let certificate = params.signed_by(&Ed25519PublicKey(public_key), &self.issuer)?;
        Ok(Issued {
            certificate: certificate.pem(),
            serial,
            not_after: end
                .to_zoned(TimeZone::UTC)
                .map_or(now, |midnight| midnight.timestamp()),
        })
    }

    /// Returns the certificate revocation list in PEM, for brokers that read one. `number` must grow with every list.
    ///
    /// # Errors
    /// Returns [`IssueError`].
    pub fn revocations(&self, serials: &[Vec<u8>], number: u64) -> Result<String, IssueError> {
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2000, 1, 1),
            next_update: date_time_ymd(i32::from(today.year() + SERVER_YEARS), 1, 1),
            crl_number: SerialNumber::from(number),
            issuing_distribution_point: None,
            revoked_certs: serials
                .iter()
                .map(|serial| RevokedCertParams {
                    serial_number: SerialNumber::from(serial.clone()),
                    revocation_time: midnight!(today),
                    reason_code: Some(RevocationReason::PrivilegeWithdrawn),
                    invalidity_date: None,
                })
                .collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Ok(list.signed_by(&self.issuer)?.pem()?)
    }
}

/// Returns the parameters of the authority's certificate. The name is derived from the key. Two labs' authorities therefore differ in name,
/// and a loaded key gives the same name again.
fn params(key: &KeyPair) -> CertificateParams {
    let digits = sha256_hex(key.public_key_raw());
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let name = format!("Regatta lab {}", digits.get(..16).unwrap_or_default());
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(i32::from(this_year() + AUTHORITY_YEARS), 1, 1);
    params
}

/// Returns the parameters of every certificate except the authority's.
fn leaf(name: &str, usage: ExtendedKeyUsagePurpose) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    params.serial_number = Some(SerialNumber::from(serial()?));
    Ok(params)
}

fn this_year() -> i16 {
    Timestamp::now().to_zoned(TimeZone::UTC).year()
}

/// Generates an unpredictable serial number: 16 bytes, positive, of full length.
pub(super) fn serial() -> Result<Vec<u8>, IssueError> {
    let mut serial = random::<16>()?.to_vec();
    if let Some(first) = serial.first_mut() {
        *first = (*first & 0x7f) | 0x40;
    }
    Ok(serial)
}

fn random<const N: usize>() -> Result<[u8; N], IssueError> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| IssueError::Randomness)?;
    Ok(bytes)
}
