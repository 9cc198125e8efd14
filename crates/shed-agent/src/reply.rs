//! Answers of an agent, each with a code that only the operator and the agent of that attempt can compute. Clients on
//! the path, or with the address of a pod that is gone, cannot answer for it, and cannot repeat an earlier answer: the
//! operator draws a nonce for each question.
//!
//! The key is in the environment of the attempt's sidecar, so readers of the pod have it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use crate::signed::SignatureError;

/// The key of the attempt's answers.
pub const REPLY_KEY_VAR: &str = "SHED_REPLY_KEY";
/// The nonce of a question.
pub const NONCE_HEADER: &str = "shed-nonce";
/// The code of the answer.
pub const CODE_HEADER: &str = "shed-code";

const KEY_BYTES: usize = 32;

/// The key of one attempt's answers.
#[derive(Clone, PartialEq, Eq)]
pub struct ReplyKey(Vec<u8>);

impl fmt::Debug for ReplyKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ReplyKey(..)")
    }
}

impl ReplyKey {
    /// The key of the attempt that these texts name, of an operator with this secret.
    pub(crate) fn derive(secret: &[u8], attempt: &[&str]) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let parts: Vec<&[u8]> = attempt.iter().map(|part| part.as_bytes()).collect();
        Self(hmac::sign(&secret, &joined(&parts)).as_ref().to_vec())
    }

    /// Reads a key as [`ReplyKey::to_text`] writes it.
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        match STANDARD.decode(text) {
            Ok(bytes) if bytes.len() == KEY_BYTES => Ok(Self(bytes)),
            Ok(_) | Err(_) => Err(SignatureError::BadKey),
        }
    }

    /// The key as it stands in the environment of an agent.
    pub fn to_text(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// The code of the answer `body` to a question at `path`.
    pub fn code(&self, path: &str, nonce: &[u8], body: &[u8]) -> String {
        STANDARD.encode(hmac::sign(
            &self.key(),
            &joined(&[path.as_bytes(), nonce, body]),
        ))
    }

    /// Whether the answer has the code of this key.
    pub fn is_of(&self, path: &str, nonce: &[u8], body: &[u8], said: &[u8]) -> bool {
        let answer = joined(&[path.as_bytes(), nonce, body]);
        let said = STANDARD.decode(said);
        said.is_ok_and(|said| hmac::verify(&self.key(), &answer, &said).is_ok())
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

/// The parts, each after its length.
fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts {
        all.extend((part.len() as u64).to_be_bytes());
        all.extend(*part);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(attempt: &[&str]) -> ReplyKey {
        ReplyKey::derive(b"secret", attempt)
    }

    #[test]
    fn an_answer_counts_for_its_question_and_its_attempt_alone() {
        let ours = key(&["job", "pod"]);
        let code = ours.code("/progress", b"n", b"0.5");
        let is_of = |key: &ReplyKey, path: &str, nonce: &str, body: &str| {
            key.is_of(path, nonce.as_bytes(), body.as_bytes(), code.as_bytes())
        };
        assert!(is_of(&ours, "/progress", "n", "0.5"));
        assert!(!is_of(&ours, "/fence", "n", "0.5"));
        assert!(!is_of(&ours, "/progress", "m", "0.5"));
        assert!(!is_of(&ours, "/progress", "n", "0.6"));
        assert!(!is_of(&ours, "/progress", "n0", ".5"));
        assert!(!is_of(&key(&["job", "pod2"]), "/progress", "n", "0.5"));
        assert!(!is_of(&key(&["jobp", "od"]), "/progress", "n", "0.5"));
        let other = ReplyKey::derive(b"another", &["job", "pod"]);
        assert!(!is_of(&other, "/progress", "n", "0.5"));
        assert!(!ours.is_of("/progress", b"n", b"0.5", b""));
    }

    #[test]
    fn a_key_is_read_back_and_not_shown() {
        let ours = key(&["job", "pod"]);
        assert_eq!(ReplyKey::parse(&ours.to_text()), Ok(ours.clone()));
        for text in ["", "c2hvcnQ=", "?"] {
            assert_eq!(ReplyKey::parse(text), Err(SignatureError::BadKey));
        }
        assert_eq!(format!("{ours:?}"), "ReplyKey(..)");
    }
}
