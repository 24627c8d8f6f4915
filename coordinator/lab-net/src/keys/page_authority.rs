//! The authority of the live page's certificate. Browsers do not accept Ed25519 certificates, so it needs a separate P-256 key. People import
//! it into their browsers; its name constraints keep a thief of the key from vouching for any other site.
//!
//! ```text
//! keys/page-ca.key    its private key
//! keys/page-ca.pem    its certificate: what browsers, curl and Prometheus import
//! ```
//!
//! The key is made once. The certificate is made again when this machine's names change or its end is near; browsers then import it again.

use std::{net::IpAddr, path::Path, sync::Arc};

use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, PKCS_ECDSA_P256_SHA256, SanType,
    SerialNumber, date_time_ymd,
};
use regatta_fsutil::{atomic_file::AtomicFile, hash::sha256_hex, regular_file};
use rustls::{
    RootCertStore, ServerConfig,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    server::NoServerSessionStorage,
    version::TLS13,
};

use super::{
    KeysError,
    authority::{IssueError, midnight, serial},
    private_key::{TlsError, private_key},
    read_private, tls, validity, write_new,
};

const KEY: &str = "page-ca.key";
/// The certificate that browsers import, below the directory of keys.
pub const PAGE_CERTIFICATE: &str = "page-ca.pem";
/// The validity of the authority's certificate in days.
const AUTHORITY_DAYS: i64 = 3_650;
/// The certificate is made again when it ends within this many days.
const RENEWED_BEFORE_DAYS: i64 = 365;
/// The validity of a server's certificate in days. Some browsers refuse more than 825.
const SERVER_DAYS: i64 = 800;

/// The authority and its certificate.
pub struct PageAuthority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
}

impl PageAuthority {
    /// Loads the authority of `directory`, and makes the parts that are missing or no longer serve `hosts`. Returns it, and whether
    /// browsers must import its certificate again.
    ///
    /// # Errors
    /// Returns [`KeysError`], also when other users can read the private key.
    pub fn open(directory: &Path, hosts: &[String]) -> Result<(Self, bool), KeysError> {
        let path = directory.join(KEY);
        if !path.exists() {
            let key = new_key()?.serialize_pem();
            write_new(&path, &key, 0o600).map_err(|source| KeysError::Io { path, source })?;
        }
        let path = directory.join(KEY);
        let key = KeyPair::from_pem(&read_private(&path)?).map_err(|_| KeysError::Malformed {
            what: "P-256 key",
            path,
        })?;
        let path = directory.join(PAGE_CERTIFICATE);
        let issuer = Issuer::new(params(&key, hosts)?, key);
        if let Ok(text) = regular_file::read_text(&path)
            && let Ok(der) = CertificateDer::from_pem_slice(text.as_bytes())
        {
            let known = Self { issuer, der };
            if known.serves(hosts) {
                return Ok((known, false));
            }
            return Self::certified(known.issuer, hosts, &path).map(|new| (new, true));
        }
        let is_new = !path.exists();
        Self::certified(issuer, hosts, &path).map(|new| (new, !is_new))
    }

    /// Makes a new certificate.
    fn certified(issuer: Issuer<'static, KeyPair>, hosts: &[String], path: &Path) -> Result<Self, KeysError> {
        let certificate = params(issuer.key(), hosts)?
            .self_signed(issuer.key())
            .map_err(IssueError::from)?;
        AtomicFile::new(path)
            .write(certificate.pem().as_bytes())
            .map_err(|source| KeysError::Io {
                path: path.to_owned(),
                source,
            })?;
        let der = certificate.der().clone();
        Ok(Self { issuer, der })
    }

    /// Returns whether clients that trust this certificate accept servers of these names for long enough.
    fn serves(&self, hosts: &[String]) -> bool {
        let lasts = validity::not_after(&self.der)
            .is_some_and(|end| end.duration_since(Timestamp::now()).as_hours() > RENEWED_BEFORE_DAYS * 24);
        lasts && self.accepts(hosts).unwrap_or(false)
    }

    fn accepts(&self, hosts: &[String]) -> Result<bool, TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone())?;
        let Ok(verifier) =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), tls::provider()).build()
        else {
            return Ok(false);
        };
        let (leaf, _) = self.leaf(hosts)?;
        Ok(hosts.iter().all(|host| {
            ServerName::try_from(host.clone()).is_ok_and(|name| {
                verifier
                    .verify_server_cert(&leaf, &[], &name, &[], UnixTime::now())
                    .is_ok()
            })
        }))
    }

    /// Returns the live page's TLS configuration, with a new key.
    ///
    /// # Errors
    /// Returns `TlsError`.
    pub fn server(&self, hosts: &[String]) -> Result<Arc<ServerConfig>, TlsError> {
        let (certificate, key) = self.leaf(hosts)?;
        let key = PrivateKeyDer::Pkcs8(private_key(&key)?);
        let mut config = ServerConfig::builder_with_provider(tls::provider())
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// Returns a server's certificate and its key in PEM.
    fn leaf(&self, hosts: &[String]) -> Result<(CertificateDer<'static>, String), IssueError> {
        let key = new_key()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, "Regatta live page");
        for host in hosts {
            params.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(host.as_str().try_into()?),
            });
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(SerialNumber::from(serial()?));
        lasts(&mut params, SERVER_DAYS);
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate.der().clone(), key.serialize_pem()))
    }
}

fn new_key() -> Result<KeyPair, IssueError> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
}

/// Returns the parameters of the authority's certificate, which vouches for `hosts` only.
fn params(key: &KeyPair, hosts: &[String]) -> Result<CertificateParams, IssueError> {
    let digits = sha256_hex(key.public_key_raw());
    let name = format!("Regatta live page {}", digits.get(..16).unwrap_or_default());
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let permitted = |host: &String| match host.parse::<IpAddr>() {
        Ok(address @ IpAddr::V4(_)) => GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, 32)),
        Ok(address @ IpAddr::V6(_)) => GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, 128)),
        Err(_) => GeneralSubtree::DnsName(host.clone()),
    };
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: hosts.iter().map(permitted).collect(),
        excluded_subtrees: Vec::new(),
    });
    params.serial_number = Some(SerialNumber::from(serial()?));
    lasts(&mut params, AUTHORITY_DAYS);
    Ok(params)
}

/// Makes a certificate valid from yesterday, because a reader's clock may be slow, for some days.
fn lasts(params: &mut CertificateParams, days: i64) {
    let now = Timestamp::now();
    let day = |hours: i64| {
        let at = now.saturating_add(hours.hours()).unwrap_or(now);
        at.to_zoned(TimeZone::UTC).date()
    };
    params.not_before = midnight!(day(-24));
    params.not_after = midnight!(day((days - 2) * 24));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_authority_stays_until_its_names_change_and_vouches_for_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let certificate = || std::fs::read(directory.path().join(PAGE_CERTIFICATE)).unwrap();
        let here = hosts(&["localhost", "127.0.0.1", "::1", "lab"]);
        let (first, is_again) = PageAuthority::open(directory.path(), &here).unwrap();
        assert!(!is_again && first.serves(&here));
        let written = certificate();
        assert!(!PageAuthority::open(directory.path(), &here).unwrap().1);
        assert_eq!(certificate(), written);
        for other in ["example.org", "192.0.2.7"] {
            let other = hosts(&[other]);
            assert!(!first.serves(&other), "{other:?}");
        }
        let moved = hosts(&["localhost", "127.0.0.1", "192.0.2.7"]);
        let (second, is_again) = PageAuthority::open(directory.path(), &moved).unwrap();
        assert!(is_again && second.serves(&moved) && certificate() != written);
        assert!(second.server(&moved).is_ok());
    }

    #[test]
    fn a_private_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let here = hosts(&["localhost"]);
        PageAuthority::open(directory.path(), &here).map(drop).unwrap();
        let key = directory.path().join(KEY);
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = PageAuthority::open(directory.path(), &here).map(drop);
        assert!(matches!(refused, Err(KeysError::Exposed { .. })), "{refused:?}");
    }
}
