//! Orders that change what an agent does: signed by the operator, and bound to one attempt and to
//! a random nonce of the attempt's agent. A client that can reach the agent but lacks the operator's key
//! cannot forge an order, and a recorded order is useless for another attempt and after a restart of
//! the same agent.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::reply::ReplyKey;

/// With this the agent checks what claims to come from the operator.
pub const OPERATOR_KEY_VAR: &str = "SHED_OPERATOR_KEY";

/// The agent reads no more of an order than this.
pub const ORDER_BYTES_MAX: usize = 4096;

/// An order of the operator. The kind is signed too, so that an order of one kind can't be
/// passed off as one of another.
pub trait Order: Serialize + DeserializeOwned {
    const KIND: &'static str;
}

/// Why an order or a key is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the order does not come from shed's operator")]
    Malformed,
    #[error("the signature is not the operator's")]
    Forged,
    #[error("the order is for another attempt")]
    WrongAttempt,
    #[error("the order answers another poll")]
    WrongNonce,
    #[error("the key is not well formed")]
    BadKey,
    #[error("the machine provides no random numbers")]
    NoRandomness,
}

/// The signed content.
#[derive(Serialize, Deserialize)]
struct Bound<T> {
    kind: String,
    attempt: String,
    nonce: String,
    order: T,
}

/// The transmitted form: the signed text unchanged, because JSON can be written in many ways.
#[derive(Serialize, Deserialize)]
struct Envelope {
    text: String,
    signature: String,
}

/// The operator's key.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    /// The PKCS#8 document.
    secret: Vec<u8>,
}

impl SigningKey {
    /// Draws a key; it is kept as PKCS#8.
    pub fn generate() -> Result<Vec<u8>, SignatureError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|_| SignatureError::NoRandomness)?;
        Ok(document.as_ref().to_vec())
    }

    pub fn from_pkcs8(bytes: &[u8]) -> Result<Self, SignatureError> {
        let pair = Ed25519KeyPair::from_pkcs8(bytes).map_err(|_| SignatureError::BadKey)?;
        let secret = bytes.to_vec();
        Ok(Self { pair, secret })
    }

    /// The key of the answers of the job's pod of that name.
    pub fn reply_key(&self, job_uid: &str, pod_name: &str) -> ReplyKey {
        ReplyKey::derive(&self.secret, &["reply", job_uid, pod_name])
    }

    /// The public half, as it stands in the environment of an agent.
    pub fn public(&self) -> String {
        STANDARD.encode(self.pair.public_key())
    }

    /// The order as it travels to the agent of `attempt` (the pod's uid).
    pub fn sign<T: Order>(
        &self,
        attempt: &str,
        nonce: &str,
        order: &T,
    ) -> serde_json::Result<Vec<u8>> {
        let text = serde_json::to_string(&Bound {
            kind: T::KIND.to_owned(),
            attempt: attempt.to_owned(),
            nonce: nonce.to_owned(),
            order,
        })?;
        let signature = STANDARD.encode(self.pair.sign(text.as_bytes()));
        serde_json::to_vec(&Envelope { text, signature })
    }
}

/// The public half of the operator's key, by which an agent knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyingKey(Vec<u8>);

impl VerifyingKey {
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        match STANDARD.decode(text) {
            Ok(bytes) if bytes.len() == ring::signature::ED25519_PUBLIC_KEY_LEN => Ok(Self(bytes)),
            Ok(_) | Err(_) => Err(SignatureError::BadKey),
        }
    }

    /// The order, if the operator signed it for this attempt and this nonce.
    pub fn open<T: Order>(
        &self,
        attempt: &str,
        nonce: &str,
        message: &[u8],
    ) -> Result<T, SignatureError> {
        let envelope: Envelope =
            serde_json::from_slice(message).map_err(|_| SignatureError::Malformed)?;
        let signature = STANDARD
            .decode(envelope.signature)
            .map_err(|_| SignatureError::Malformed)?;
        UnparsedPublicKey::new(&ED25519, &self.0)
            .verify(envelope.text.as_bytes(), &signature)
            .map_err(|_| SignatureError::Forged)?;
        // Not read before it is known to be the operator's.
        let bound: Bound<serde_json::Value> =
            serde_json::from_str(&envelope.text).map_err(|_| SignatureError::Malformed)?;
        if bound.kind != T::KIND {
            return Err(SignatureError::Malformed);
        }
        if bound.attempt != attempt {
            return Err(SignatureError::WrongAttempt);
        }
        if bound.nonce != nonce {
            return Err(SignatureError::WrongNonce);
        }
        serde_json::from_value(bound.order).map_err(|_| SignatureError::Malformed)
    }
}

/// An unpredictable nonce.
pub fn draw_nonce() -> Result<String, SignatureError> {
    let mut bytes = [0_u8; 18];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| SignatureError::NoRandomness)?;
    Ok(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Go {
        token: u64,
    }

    impl Order for Go {
        const KIND: &'static str = "go";
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Stop {
        token: u64,
    }

    impl Order for Stop {
        const KIND: &'static str = "stop";
    }

    fn keys() -> (SigningKey, VerifyingKey) {
        let key = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
        let public = VerifyingKey::parse(&key.public()).unwrap();
        (key, public)
    }

    #[test]
    fn an_order_is_read_by_the_one_it_is_for() {
        let (key, public) = keys();
        let message = key.sign("uid-1", "n", &Go { token: 7 }).unwrap();
        assert!(message.len() < ORDER_BYTES_MAX);
        assert_eq!(public.open("uid-1", "n", &message), Ok(Go { token: 7 }));
    }

    #[test]
    fn an_order_for_somebody_else_is_refused() {
        let (key, public) = keys();
        let message = key.sign("uid-1", "n", &Go { token: 7 }).unwrap();
        let open = |attempt, nonce| public.open::<Go>(attempt, nonce, &message).unwrap_err();
        assert_eq!(open("uid-2", "n"), SignatureError::WrongAttempt);
        assert_eq!(open("uid-1", "m"), SignatureError::WrongNonce);
        let as_stop = public.open::<Stop>("uid-1", "n", &message);
        assert_eq!(as_stop, Err(SignatureError::Malformed));
    }

    #[test]
    fn what_the_operator_did_not_sign_is_refused() {
        let (key, public) = keys();
        let (other, _) = keys();
        let forged = other.sign("uid-1", "n", &Go { token: 7 }).unwrap();
        let open = |message: &[u8]| public.open::<Go>("uid-1", "n", message).unwrap_err();
        assert_eq!(open(&forged), SignatureError::Forged);
        let message = key.sign("uid-1", "n", &Go { token: 7 }).unwrap();
        let changed = String::from_utf8(message).unwrap().replace(":7}", ":8}");
        assert_eq!(open(changed.as_bytes()), SignatureError::Forged);
        for garbage in ["", "{}", "null", r#"{"text":"{}","signature":"?"}"#] {
            assert_eq!(open(garbage.as_bytes()), SignatureError::Malformed);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "c2hvcnQ=", "?"] {
            assert_eq!(VerifyingKey::parse(text), Err(SignatureError::BadKey));
        }
        assert!(SigningKey::from_pkcs8(b"short").is_err());
    }

    #[test]
    fn no_nonce_is_drawn_twice() {
        assert_ne!(draw_nonce().unwrap(), draw_nonce().unwrap());
    }
}
