//! The end of a certificate's validity, from its DER form (RFC 5280, section 4.1).

use jiff::Timestamp;

/// DER's tag of a sequence.
const SEQUENCE: u8 = 0x30;
/// DER's tag of a time with two digits for the year, from 1950 to 2049.
const UTC_TIME: u8 = 0x17;
/// DER's tag of the certificate's version.
const VERSION: u8 = 0xa0;

/// Returns the time when a certificate expires. `None` if it does not parse.
pub(super) fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    if fields.first() == Some(&VERSION) {
        fields = element(fields)?.2;
    }
    // The validity is behind serial number, signature algorithm and issuer.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (tag, validity, _) = element(fields)?;
    let (_, _, rest) = element(validity).filter(|_| tag == SEQUENCE)?;
    let (tag, time, _) = element(rest)?;
    let digits = std::str::from_utf8(time).ok()?;
    let digits = match tag {
        UTC_TIME if digits < "50" => format!("20{digits}"),
        UTC_TIME => format!("19{digits}"),
        _ => digits.to_owned(),
    };
    let time = jiff::civil::DateTime::strptime("%Y%m%d%H%M%SZ", &digits).ok()?;
    time.to_zoned(jiff::tz::TimeZone::UTC)
        .ok()
        .map(|time| time.timestamp())
}

/// Splits the first element off: its tag, its content, and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let length = bytes.iter().try_fold(0_usize, |length, byte| {
            length.checked_mul(256).map(|length| length + usize::from(*byte))
        });
        (length?, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_forms_of_time_are_read() {
        for (year, expected) in [(2030, "2030-01-01T00:00:00Z"), (2056, "2056-01-01T00:00:00Z")] {
            let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
            let mut params = rcgen::CertificateParams::default();
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
            let certificate = params.self_signed(&key).unwrap();
            assert_eq!(not_after(certificate.der()).unwrap().to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = not_after(&bytes);
        }
    }
}
