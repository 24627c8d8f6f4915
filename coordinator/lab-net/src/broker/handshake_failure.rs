//! Says why a TLS handshake with the broker failed, in a sentence with a hint for the lab's operator. The library's own error goes to the debug
//! log.

use std::io;

use jiff::Timestamp;
use rustls::{AlertDescription, CertificateError, Error};

/// Returns why a handshake failed. `None` when the cause is the connection and not TLS.
pub(super) fn describe(error: &io::Error, now: Timestamp) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ");
    Some(match error {
        Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => format!(
            "the device's certificate is not valid yet by this machine's clock, which shows {now}; hint: set the clock"
        ),
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => format!(
            "the device's certificate has expired by this machine's clock, which shows {now}; hint: check the clock; `regatta device add NAME --again` creates a token with which the device enrolls again"
        ),
        Error::AlertReceived(AlertDescription::CertificateExpired) => {
            "the device does not accept this coordinator's certificate at the time of the device's clock; hint: check that clock".to_owned()
        }
        _ => "hint: a device of another lab must enroll here first".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_clock_is_not_reported_as_another_lab() {
        let described =
            |error: Error| describe(&io::Error::other(error), Timestamp::UNIX_EPOCH).unwrap_or_default();
        let invalid = |error| described(Error::InvalidCertificate(error));
        for (error, words) in [
            (
                CertificateError::NotValidYet,
                "which shows 1970-01-01T00:00:00Z; hint: set the clock",
            ),
            (CertificateError::Expired, "has expired by this machine's clock"),
            (
                CertificateError::UnknownIssuer,
                "a device of another lab must enroll here first",
            ),
        ] {
            let text = invalid(error.clone());
            assert!(text.contains(words), "{error:?}: {text}");
        }
        let alert = described(Error::AlertReceived(AlertDescription::CertificateExpired));
        assert!(alert.contains("check that clock"), "{alert}");
        let lost = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(describe(&lost, Timestamp::UNIX_EPOCH), None);
    }
}
