//! The session of a visitor is its cookie: the token, sealed with a key that only this process has (AES-256-GCM). So no
//! token stays in memory between requests, and a cookie of another process is a cause to log in again.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use shed_core::time::{Instant, Span};

/// The name of the cookie. The prefix binds it to this host and to HTTPS (RFC 6265bis).
pub(super) const COOKIE: &str = "__Host-shed";
/// Browsers drop a cookie whose name and value have more than 4096 bytes.
const VALUE_MAX: usize = 4096 - COOKIE.len() - 1;
/// A session ends after this time at the latest.
const LIFE_MAX: Span = Span::from_seconds(8 * 3600);
/// What is sealed with the key: nothing else may be taken for a session.
const PURPOSE: &[u8] = b"shed live page session";
/// Bytes of the end of a session.
const END_LEN: usize = 8;

/// A session.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Session {
    /// The token of the visitor.
    pub(super) token: String,
    /// When the session ends.
    pub(super) ends: Instant,
}

impl Session {
    /// The session of a token that the apiserver accepts. It ends with the token.
    pub(super) fn begin(token: String, now: Instant) -> Self {
        let latest = now.plus(LIFE_MAX);
        let ends = expiry(&token).map_or(latest, |expiry| expiry.min(latest));
        Self { token, ends }
    }
}

/// When a token expires, if it is a JSON Web Token that has this claim (RFC 7519, 4.1.4). Only for tokens that the
/// apiserver accepts, because nothing is verified here.
fn expiry(token: &str) -> Option<Instant> {
    let payload = token.split('.').nth(1)?;
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    let seconds = claims.get("exp")?.as_f64()?;
    // Far ends saturate.
    Some(Instant((seconds * 1000.0) as i64))
}

/// The key of this process.
pub(super) struct Seal {
    key: LessSafeKey,
    random: SystemRandom,
}

/// A cookie that cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// Why a session has no cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsealed {
    /// Browsers would drop it.
    TooLong,
    /// The system has no random numbers.
    NoRandomNumbers,
}

impl Seal {
    /// A seal with a new key.
    pub(super) fn new() -> Result<Self, Unspecified> {
        let random = SystemRandom::new();
        let mut key = [0; 32];
        random.fill(&mut key)?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key)?);
        Ok(Self { key, random })
    }

    /// The value of the session's cookie.
    pub(super) fn seal(&self, session: &Session) -> Result<String, Unsealed> {
        let mut nonce = [0; NONCE_LEN];
        let filled = self.random.fill(&mut nonce);
        filled.map_err(|_| Unsealed::NoRandomNumbers)?;
        let mut text = session.ends.0.to_be_bytes().to_vec();
        text.extend_from_slice(session.token.as_bytes());
        let nonce_of_text = Nonce::assume_unique_for_key(nonce);
        let sealed =
            self.key
                .seal_in_place_append_tag(nonce_of_text, Aad::from(PURPOSE), &mut text);
        sealed.map_err(|_| Unsealed::TooLong)?;
        let value = URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat());
        match value.len() <= VALUE_MAX {
            true => Ok(value),
            false => Err(Unsealed::TooLong),
        }
    }

    /// The session of a cookie's value.
    pub(super) fn open(&self, value: &str) -> Result<Session, Broken> {
        let mut sealed = URL_SAFE_NO_PAD.decode(value).map_err(|_| Broken)?;
        let (nonce, text) = sealed.split_at_mut_checked(NONCE_LEN).ok_or(Broken)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Broken)?;
        let text = self.key.open_in_place(nonce, Aad::from(PURPOSE), text);
        let text = text.map_err(|_| Broken)?;
        let (ends, token) = text.split_first_chunk::<END_LEN>().ok_or(Broken)?;
        Ok(Session {
            token: String::from_utf8(token.to_vec()).map_err(|_| Broken)?,
            ends: Instant(i64::from_be_bytes(*ends)),
        })
    }
}

/// The value of the session's cookie in a request.
pub(super) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).into_iter();
    let cookies = cookies.filter_map(|cookies| cookies.to_str().ok());
    let mut cookies = cookies.flat_map(|cookies| cookies.split(';'));
    cookies.find_map(|cookie| {
        let (name, value) = cookie.trim().split_once('=')?;
        (name == COOKIE).then_some(value)
    })
}

/// The header that gives a browser the cookie for this many seconds; 0 takes it away.
pub(super) fn set_cookie(value: &str, seconds: i64) -> String {
    format!("{COOKIE}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Strict")
}

#[cfg(test)]
mod tests;
