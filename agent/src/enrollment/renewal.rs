//! Renewal of the certificate before it expires. The request only needs the device's key. The next connection to the
//! broker uses the new certificate.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use regatta_wire::enrollment::EnrollPurpose;

use super::{
    Enrollment,
    exchange::{self, Place},
};
use crate::identity::DeviceIdentity;

/// A certificate is valid for a year. It is renewed when a third of that is left.
const TIME_TO_RENEW: SignedDuration = SignedDuration::from_hours(120 * 24);

/// Renews the certificate in a state directory when it is due, at the host of the enrollment or at `coordinator`, if
/// set. Errors are logged, because months remain for further attempts.
pub(crate) fn renew_when_due(state_dir: &Path, coordinator: Option<&str>, identity: &DeviceIdentity) {
    match Enrollment::load(state_dir) {
        Ok(Some(enrollment)) if is_due(&enrollment.not_after, Timestamp::now()) => {
            match renew(&enrollment, state_dir, coordinator, identity) {
                Ok(renewed) => {
                    tracing::info!("the certificate is renewed and valid until {}", renewed.not_after)
                }
                Err(e) => tracing::warn!(
                    "the certificate ends at {} and could not be renewed: {e:#}",
                    enrollment.not_after
                ),
            }
        }
        // The device is not enrolled, the renewal is not due, or the error was reported at the daemon's start.
        _ => {}
    }
}

fn is_due(not_after: &str, now: Timestamp) -> bool {
    // An end that does not parse counts as due.
    let has_time = |end: Timestamp| end.duration_since(now) >= TIME_TO_RENEW;
    !not_after.parse().is_ok_and(has_time)
}

fn renew(
    enrollment: &Enrollment,
    state_dir: &Path,
    coordinator: Option<&str>,
    identity: &DeviceIdentity,
) -> anyhow::Result<Enrollment> {
    let (host, port) = enrollment
        .enrollment
        .rsplit_once(':')
        .ok_or_else(|| anyhow::anyhow!("the enrollment has no address for renewal"))?;
    let place = Place {
        host: coordinator.unwrap_or(host.trim_matches(['[', ']'])).to_owned(),
        port: port.parse()?,
        authority: enrollment.authority_fingerprint()?,
    };
    let mut credentials = exchange::request(&place, EnrollPurpose::Renew, identity)?;
    // As at the enrollment, store the address that answered.
    credentials.enrollment = place.address();
    Ok(Enrollment::keep(credentials, state_dir, identity)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_with_a_third_left() {
        let now: Timestamp = "2026-11-21T00:00:00Z".parse().unwrap();
        assert!(!is_due("2027-11-21T00:00:00Z", now));
        assert!(!is_due("2027-03-22T00:00:00Z", now));
        assert!(is_due("2027-03-20T00:00:00Z", now));
        assert!(
            is_due("2026-11-20T00:00:00Z", now),
            "also when it is too late: the answer says so"
        );
        assert!(
            is_due("never", now),
            "nobody would notice that it is never renewed"
        );
    }
}
