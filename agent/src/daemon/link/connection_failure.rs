//! Says why there is no connection to the broker, in a sentence for the device's user. The MQTT client's own error goes to the debug log.

use std::{error::Error, io};

use rumqttc::{ConnectReturnCode, ConnectionError};
use rustls::AlertDescription;

/// Describes an error of the MQTT client. `was_connected` distinguishes a lost connection from one that was never made.
pub(super) fn describe(error: &ConnectionError, was_connected: bool, broker: &str) -> String {
    if is_refused(error) {
        return format!(
            "the coordinator at {broker} refuses this device: it was removed from the lab, or enrolled after the copy from which the lab \
             was restored; hint: enroll it again with a token of `regatta device add NAME` there; `regatta-agent enroll TOKEN` here says \
             whether it needs --new-identity"
        );
    }
    if was_connected {
        return format!("lost the coordinator at {broker}; trying again");
    }
    let why = match (error, io_error(error)) {
        _ if is_full(error) => "it has reached its limit of devices; hint: raise `max_devices` in the coordinator's regatta.toml".to_owned(),
        (ConnectionError::ConnectionRefused(code), _) => format!("it answers {code:?}"),
        (ConnectionError::Timeout(_), _) => "no answer in time".to_owned(),
        (_, Some(error)) => match rustls_error(error) {
            Some(_) => "the TLS handshake failed; hint: check that both clocks are right and that the lab is the one of the \
                        enrollment"
                .to_owned(),
            None => error.to_string(),
        },
        _ => "MQTT failed".to_owned(),
    };
    format!("no connection to the coordinator at {broker}: {why}; trying again")
}

/// Whether the broker does not accept the device: by MQTT's answer, or by refusing a revoked certificate.
fn is_refused(error: &ConnectionError) -> bool {
    let alert = match io_error(error).and_then(rustls_error) {
        Some(rustls::Error::AlertReceived(alert)) => Some(*alert),
        _ => None,
    };
    matches!(
        error,
        ConnectionError::ConnectionRefused(ConnectReturnCode::NotAuthorized | ConnectReturnCode::Banned)
    ) || matches!(
        alert,
        Some(AlertDescription::CertificateRevoked | AlertDescription::AccessDenied)
    )
}

/// Returns whether the broker has no free connection for another device.
pub(super) fn is_full(error: &ConnectionError) -> bool {
    matches!(
        error,
        ConnectionError::ConnectionRefused(ConnectReturnCode::QuotaExceeded)
    )
}

/// Returns whether a new connection got no answer in time or was closed during its handshake, as by a coordinator that gets too little
/// processor time for its devices.
pub(super) fn is_overload(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::Timeout(_))
        || io_error(error).is_some_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::TimedOut
            )
        })
}

/// Returns the system's error in a chain.
fn io_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

fn rustls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_device_must_enroll_again() {
        let refused = ConnectionError::ConnectionRefused(ConnectReturnCode::NotAuthorized);
        let revoked = rustls::Error::AlertReceived(AlertDescription::CertificateRevoked);
        for error in [refused, ConnectionError::Io(io::Error::other(revoked))] {
            let sentence = describe(&error, true, "lab:8883");
            assert!(
                sentence.starts_with(
                    "the coordinator at lab:8883 refuses this device: it was removed from the lab, or enrolled after the copy"
                ),
                "{sentence}"
            );
        }
    }

    #[test]
    fn a_coordinator_that_accepts_and_does_not_answer_is_overloaded() {
        let io = |kind: io::ErrorKind| ConnectionError::Io(kind.into());
        assert!(is_overload(&io(io::ErrorKind::ConnectionReset)));
        assert!(is_overload(&io(io::ErrorKind::UnexpectedEof)));
        // Nobody listens: another attempt costs nothing.
        assert!(!is_overload(&io(io::ErrorKind::ConnectionRefused)));
        let refused = ConnectionError::ConnectionRefused(ConnectReturnCode::NotAuthorized);
        assert!(!is_overload(&refused));
    }

    #[test]
    fn a_sentence_has_no_words_of_the_libraries() {
        let eof = || ConnectionError::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "docs.rs/rustls"));
        assert_eq!(
            describe(&eof(), true, "lab:8883"),
            "lost the coordinator at lab:8883; trying again"
        );
        let refused = ConnectionError::Io(io::Error::from_raw_os_error(111));
        assert_eq!(
            describe(&refused, false, "lab:8883"),
            "no connection to the coordinator at lab:8883: Connection refused (os error 111); trying again"
        );
        let full = ConnectionError::ConnectionRefused(ConnectReturnCode::QuotaExceeded);
        assert_eq!(
            describe(&full, false, "lab:8883"),
            "no connection to the coordinator at lab:8883: it has reached its limit of devices; hint: raise \
             `max_devices` in the coordinator's regatta.toml; trying again"
        );
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let sentence = describe(&ConnectionError::Io(io::Error::other(expired)), false, "lab:8883");
        assert!(
            sentence.contains("the TLS handshake failed; hint: check"),
            "{sentence}"
        );
    }
}
