//! Unguessable secrets of 256 bits: tokens, session ids and form tokens. Only their hashes are kept and compared.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};

/// The beginning of every token, by which scanners of source code and logs find it.
const PREFIX: &str = "regatta_page_";
/// The length of a secret in bytes.
const BYTES: usize = 32;

/// The system provides no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random bytes for a secret")]
pub struct NoRandomness;

/// A secret. It is not printed by accident.
pub(super) struct Secret([u8; BYTES]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Makes a secret.
    pub(super) fn new() -> Result<Self, NoRandomness> {
        let mut bytes = [0; BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(Self(bytes))
    }

    /// Parses the text of a token, also with white space around it.
    pub(super) fn parse_token(text: &str) -> Option<Self> {
        Self::parse(text.trim().strip_prefix(PREFIX)?)
    }

    /// Parses base64 for URLs without padding.
    pub(super) fn parse(text: &str) -> Option<Self> {
        // The decoder needs more room than it uses.
        let mut bytes = [0; BYTES + 4];
        let decoded = BASE64_URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        let secret = bytes.first_chunk().filter(|_| decoded == BYTES)?;
        Some(Self(*secret))
    }

    pub(super) fn token_text(&self) -> String {
        format!("{PREFIX}{}", self.text())
    }

    /// Returns the secret in base64 for URLs.
    pub(super) fn text(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Returns its SHA-256.
    pub(super) fn sha256(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_reads_back_and_nothing_else_reads() {
        let secret = Secret::new().unwrap();
        let text = secret.token_text();
        assert_eq!(text.len(), PREFIX.len() + 43);
        let read = Secret::parse_token(&format!(" {text}\n")).unwrap();
        assert_eq!(read.sha256(), secret.sha256());
        let body = text.trim_start_matches(PREFIX);
        for wrong in [
            body,
            &text[..text.len() - 1],
            &format!("{text}A"),
            &format!("{text}="),
            &text.to_uppercase(),
            "",
            PREFIX,
        ] {
            assert!(Secret::parse_token(wrong).is_none(), "{wrong}");
        }
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,200}", part in "[A-Za-z0-9_-]{40,48}") {
            let _ = Secret::parse_token(&text);
            let _ = Secret::parse_token(&format!("{PREFIX}{text}"));
            if let Some(secret) = Secret::parse(&part) {
                prop_assert_eq!(secret.text(), part);
            }
        }
    }
}
