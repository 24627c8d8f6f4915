//! Decides on one enrollment request: verifies the proof and the token or membership, then issues the certificate. It does not handle
//! connections.

use std::sync::{Arc, Mutex, PoisonError};

use regatta_types::DeviceId;
use regatta_wire::enrollment::{Credentials, EXPORTER_LEN, EnrollPurpose, EnrollRequest, EnrollResponse};
use ring::signature::{ED25519, UnparsedPublicKey};

use regatta_fsutil::hash::sha256_hex;

use crate::{
    fleet::Admission,
    keys::{Issued, Keys},
    token_bucket::{Rate, TokenBuckets},
};
use regatta_lab_store::{self as store, Entry, NewCertificate, Renaming, Store};

/// The rate of renewals of one device. A device needs one a year, and a few more when an answer gets lost.
const RENEWALS: Rate = Rate {
    burst: 4,
    per_second: 1.0 / 3600.0,
};
/// The rate of certificates for one token. A token is used once, and again when an answer gets lost or a board is set up again.
const ENROLLMENTS: Rate = Rate {
    burst: 16,
    per_second: 1.0 / 60.0,
};
/// The longest wait for another process's write. The device gives up after ten seconds, and must first learn that it should
/// retry.
const STORE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(4);

/// The state for answering requests.
pub struct EnrollmentService {
    keys: Arc<Keys>,
    /// The admission to refresh after an enrollment.
    admission: Arc<Admission>,
    addresses: CoordinatorAddresses,
    renewals: TokenBuckets<DeviceId>,
    enrollments: TokenBuckets<DeviceId>,
    /// The store. Requests are handled one at a time, because unknown clients send them.
    store: Mutex<Store>,
}

/// The addresses at which a device finds the coordinator.
pub struct CoordinatorAddresses {
    /// The broker, as `mqtts://host:port`.
    pub broker: String,
    /// The enrollment listener, as `host:port`.
    pub enrollment: String,
}

impl EnrollmentService {
    /// Creates a service that issues certificates with `keys` and records them in `store`.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn new(
        keys: Arc<Keys>,
        admission: Arc<Admission>,
        addresses: CoordinatorAddresses,
        store: Store,
    ) -> store::Result<Self> {
        store.set_patience(STORE_PATIENCE)?;
        Ok(Self {
            keys,
            admission,
            addresses,
            renewals: TokenBuckets::new(RENEWALS),
            enrollments: TokenBuckets::new(ENROLLMENTS),
            store: Mutex::new(store),
        })
    }

    /// Answers a request. `connection` is the keying material that both ends export from their TLS connection.
    pub(super) fn answer(&self, request: &EnrollRequest, connection: &[u8; EXPORTER_LEN]) -> EnrollResponse {
        match self.judge(request, connection) {
            Ok(credentials) => EnrollResponse::Accepted(credentials),
            Err(EnrollmentRefusal::WithReason(why)) => EnrollResponse::Refused(why),
            Err(EnrollmentRefusal::NotNow(why)) => EnrollResponse::NotNow(why),
            Err(EnrollmentRefusal::OtherName { enrolled, token }) => {
                EnrollResponse::OtherName { enrolled, token }
            }
            Err(EnrollmentRefusal::Removed { name }) => EnrollResponse::Removed { name },
            Err(EnrollmentRefusal::Fault(error)) => {
                tracing::error!("an enrollment failed: {error:#}");
                EnrollResponse::NotNow("the reason is in the coordinator's log".to_owned())
            }
        }
    }

    /// Checks every right before it signs or writes anything.
    fn judge(
        &self,
        request: &EnrollRequest,
        connection: &[u8; EXPORTER_LEN],
    ) -> Result<Credentials, EnrollmentRefusal> {
        let statement = EnrollRequest::statement(&request.purpose, &request.public_key, connection);
        UnparsedPublicKey::new(&ED25519, &request.public_key)
            .verify(&statement, &request.proof)
            .map_err(|_| {
                EnrollmentRefusal::with_reason("the request is not signed by the key that it names")
            })?;
        let device = DeviceId::of_public_key(&request.public_key);
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, issued) = match &request.purpose {
            EnrollPurpose::Enroll { secret } => {
                self.enroll(&store, &device, request.public_key, secret, Renaming::Refused)?
            }
            EnrollPurpose::Rename { secret } => {
                self.enroll(&store, &device, request.public_key, secret, Renaming::Allowed)?
            }
            EnrollPurpose::Renew => {
                let name = self.claim_renewal(&store, &device)?;
                let issued = self.issue(&device, request.public_key)?;
                store.members().add_certificate(&device, issued.row())?;
                (name, issued)
            }
        };
        self.admission.refresh(&store)?;
        tracing::info!(device = %device, name, until = issued.not_after, "issued a certificate");
        Ok(self.credentials(name, issued))
    }

    /// Enrolls a device with a token. Returns its name.
    fn enroll(
        &self,
        store: &Store,
        device: &DeviceId,
        public_key: [u8; 32],
        secret: &[u8; 16],
        renaming: Renaming,
    ) -> Result<(String, Certificate), EnrollmentRefusal> {
        let secret = sha256_hex(secret);
        granted(store.enrollment_tokens().look_up(&secret, device, renaming)?)?;
        if !self.enrollments.try_take(device.clone()) {
            let why = "this device has enrolled many times within minutes";
            return Err(EnrollmentRefusal::NotNow(why.to_owned()));
        }
        let issued = self.issue(device, public_key)?;
        let entry = store
            .members()
            .enroll(&secret, device, &public_key, issued.row(), renaming)?;
        Ok((granted(entry)?, issued))
    }

    fn issue(&self, device: &DeviceId, public_key: [u8; 32]) -> Result<Certificate, EnrollmentRefusal> {
        let issued = self.keys.authority().device(device, public_key)?;
        let not_after = issued.not_after.to_string();
        Ok(Certificate { issued, not_after })
    }

    /// Returns the name of a device that may renew its certificate now.
    fn claim_renewal(&self, store: &Store, device: &DeviceId) -> Result<String, EnrollmentRefusal> {
        let member = store
            .members()
            .get(device)?
            .filter(|member| member.removed.is_none());
        let member =
            member.ok_or_else(|| EnrollmentRefusal::with_reason("this device is not enrolled here"))?;
        if member.not_after <= store::now() {
            return Err(EnrollmentRefusal::with_reason(
                "this device's certificate has expired: enroll it again with a token of `regatta device add`",
            ));
        }
        if !self.renewals.try_take(device.clone()) {
            let why = "this device has had several certificates within the hour";
            return Err(EnrollmentRefusal::NotNow(why.to_owned()));
        }
        Ok(member.name)
    }

    fn credentials(&self, name: String, certificate: Certificate) -> Credentials {
        Credentials {
            name,
            certificate: certificate.issued.certificate,
            not_after: certificate.not_after,
            authority: self.keys.authority().pem().to_owned(),
            coordinator_key: self.keys.coordinator_public_key(),
            broker: self.addresses.broker.clone(),
            enrollment: self.addresses.enrollment.clone(),
        }
    }
}

/// An issued certificate, and its expiry as text.
struct Certificate {
    issued: Issued,
    not_after: String,
}

impl Certificate {
    fn row(&self) -> NewCertificate<'_> {
        NewCertificate {
            serial: &self.issued.serial,
            not_after: &self.not_after,
        }
    }
}

/// The reason why a request is not granted.
enum EnrollmentRefusal {
    /// The device gets the reason. Repeating the request does not help.
    WithReason(String),
    /// The device gets the reason, and may retry later.
    NotNow(String),
    /// The device is enrolled under another name.
    OtherName { enrolled: String, token: String },
    /// The device was removed.
    Removed { name: String },
    /// Only the coordinator's log gets the reason.
    Fault(anyhow::Error),
}

impl EnrollmentRefusal {
    fn with_reason(why: &str) -> Self {
        Self::WithReason(why.to_owned())
    }
}

impl<E: Into<anyhow::Error>> From<E> for EnrollmentRefusal {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}

fn granted(entry: Entry) -> Result<String, EnrollmentRefusal> {
    let why = match entry {
        Entry::Granted(name) => return Ok(name),
        Entry::OtherName { enrolled, token } => return Err(EnrollmentRefusal::OtherName { enrolled, token }),
        Entry::Removed { name } => return Err(EnrollmentRefusal::Removed { name }),
        Entry::NameTaken(name) => {
            return Err(EnrollmentRefusal::WithReason(format!(
                "the token is for {name}, which is another device: make one for this device with `regatta device add`"
            )));
        }
        Entry::UnknownToken => {
            "unknown token: it was revoked or mistyped; make another with `regatta device add`"
        }
        Entry::Expired => "the token has expired: make another with `regatta device add`",
        Entry::Used => "the token has been used by another device: make another with `regatta device add`",
    };
    Err(EnrollmentRefusal::with_reason(why))
}
