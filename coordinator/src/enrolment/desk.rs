//! Judging one request: the proof, the token or the membership, and the certificate that follows. Knows no connection.

use std::sync::Arc;

use regatta_rules::DeviceId;
use regatta_wire::enrolment::{Credentials, EXPORTER_LEN, EnrolAnswer, EnrolRequest, Purpose};
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::{
    fleet::Admission,
    hex::{hex, sha256},
    keys::{Issued, Keys},
    store::{Entry, NewCertificate, Store},
};

/// What every answer needs.
pub(crate) struct Desk {
    /// The lab's keys.
    pub(crate) keys: Arc<Keys>,
    /// Told of everybody who comes in.
    pub(crate) admission: Arc<Admission>,
    /// The broker as devices reach it: `mqtts://host:port`.
    pub(crate) broker: String,
    /// This desk as devices reach it: `host:port`.
    pub(crate) enrolment: String,
}

impl Desk {
    /// Answers a request. `connection` is what both ends derived from their TLS connection.
    pub(super) fn answer(
        &self,
        store: &Store,
        request: &EnrolRequest,
        connection: &[u8; EXPORTER_LEN],
    ) -> EnrolAnswer {
        match self.judge(store, request, connection) {
            Ok(credentials) => EnrolAnswer::Accepted(credentials),
            Err(Refusal::Said(why)) => EnrolAnswer::Refused(why),
            Err(Refusal::Fault(error)) => {
                tracing::error!("an enrolment failed: {error:#}");
                EnrolAnswer::Refused("the coordinator could not do it now; its log says why".to_owned())
            }
        }
    }

    fn judge(
        &self,
        store: &Store,
        request: &EnrolRequest,
        connection: &[u8; EXPORTER_LEN],
    ) -> Result<Credentials, Refusal> {
        let statement = EnrolRequest::statement(&request.purpose, &request.public_key, connection);
        UnparsedPublicKey::new(&ED25519, &request.public_key)
            .verify(&statement, &request.proof)
            .map_err(|_| Refusal::said("the request is not signed by the key that it names"))?;
        let device = DeviceId::of_public_key(&request.public_key);
        let issued = self.keys.authority().device(&device, request.public_key)?;
        let not_after = issued.not_after.to_string();
        let certificate = NewCertificate {
            serial: &issued.serial,
            not_after: &not_after,
        };
        let name = match &request.purpose {
            Purpose::Enrol { secret } => {
                let entry = store.enter(&hex(&sha256(secret)), &device, &request.public_key, certificate)?;
                granted(entry)?
            }
            Purpose::Renew => {
                let member = store.member(&device)?.filter(|member| member.removed.is_none());
                let member = member.ok_or_else(|| Refusal::said("this device is not enrolled here"))?;
                if member.not_after <= crate::store::now() {
                    return Err(Refusal::said(
                        "this device's certificate has run out: enrol it anew with a token of `regatta device add`",
                    ));
                }
                store.keep_certificate(&device, certificate)?;
                member.name
            }
        };
        self.admission.refresh(store)?;
        tracing::info!(device = %device, name, until = not_after, "issued a certificate");
        Ok(self.credentials(name, &issued, not_after))
    }

    fn credentials(&self, name: String, issued: &Issued, not_after: String) -> Credentials {
        Credentials {
            name,
            certificate: issued.certificate.clone(),
            not_after,
            authority: self.keys.authority().pem().to_owned(),
            coordinator_key: self.keys.coordinator_public_key(),
            broker: self.broker.clone(),
            enrolment: self.enrolment.clone(),
        }
    }
}

/// Why a request is not granted.
enum Refusal {
    /// What the device is told.
    Said(String),
    /// What only the coordinator's log is told.
    Fault(anyhow::Error),
}

impl Refusal {
    fn said(why: &str) -> Self {
        Self::Said(why.to_owned())
    }
}

impl<E: Into<anyhow::Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}

fn granted(entry: Entry) -> Result<String, Refusal> {
    let why = match entry {
        Entry::Granted(name) => return Ok(name),
        Entry::UnknownToken => "the coordinator knows no such token",
        Entry::Expired => "the token has expired: make another with `regatta device add`",
        Entry::Used => "the token has been used by another device: make another with `regatta device add`",
        Entry::Removed => {
            "this device was removed, and its key does not come back: delete device.key in its state directory for a \
             new identity"
        }
    };
    Err(Refusal::said(why))
}
