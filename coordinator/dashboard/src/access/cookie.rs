//! The cookie of a session: its id, for this host only, sent over TLS and with requests from the page's own site only.

use axum::http::{HeaderMap, HeaderValue, header};

use super::secret::Secret;

/// The cookie's name. Browsers take the prefix only from a secure origin, without `Domain`, for every path.
const NAME: &str = "__Host-regatta";

/// Returns the session's id in a request. `None` for none, and for more than one.
pub(super) fn session_id(headers: &HeaderMap) -> Option<Secret> {
    let mut values = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .filter(|(name, _)| *name == NAME);
    match (values.next(), values.next()) {
        (Some((_, value)), None) => Secret::parse(value),
        _ => None,
    }
}

/// Returns the header that sets the cookie for some seconds.
pub(super) fn set(id: &Secret, seconds: u64) -> Option<HeaderValue> {
    header(&id.text(), seconds)
}

/// Returns the header that removes the cookie.
pub(super) fn removed() -> Option<HeaderValue> {
    header("", 0)
}

fn header(value: &str, seconds: u64) -> Option<HeaderValue> {
    let text = format!("{NAME}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Strict");
    let mut header = HeaderValue::from_str(&text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(lines: &[&[u8]]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, HeaderValue::from_bytes(line).unwrap());
        }
        session_id(&headers).map(|secret| secret.text())
    }

    #[test]
    fn only_one_well_formed_cookie_counts() {
        let text = Secret::new().unwrap().text();
        let own = format!("{NAME}={text}");
        let among = format!("a=b; {own}; c");
        assert_eq!(id(&[own.as_bytes()]), Some(text.clone()));
        assert_eq!(id(&[b"x=y", among.as_bytes()]), Some(text.clone()));
        for lines in [
            vec![own.clone(), own.clone()],
            vec![format!("{own}; {own}")],
            vec![format!("regatta={text}")],
            vec![format!("{NAME}=\"{text}\"")],
            vec![format!("{NAME}={text}=")],
            vec![format!("{NAME}=")],
        ] {
            let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
            assert_eq!(id(&lines), None, "{lines:?}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_without_a_panic(
            lines in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![Just(b'\t'), 32_u8..127, 128_u8..=255], 0..300),
                0..4,
            ),
        ) {
            let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
            let _ = id(&lines);
        }
    }
}
