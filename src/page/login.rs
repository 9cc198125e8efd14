//! Log in with a token, and log out.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::session::{self, Session, Unsealed};
use super::{Page, unreviewed};
use crate::answers::Refusal;
use crate::answers::query::decoded;

/// Longest body of a login, in bytes.
const BODY_MAX: usize = 32 * 1024;
/// A body that has not come after this time is given up.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

impl Page {
    /// Opens a session for the token in the body.
    pub(super) async fn log_in(
        &self,
        headers: &HeaderMap,
        body: Body,
        peer: SocketAddr,
    ) -> Result<Response, Refusal> {
        check_origin(headers)?;
        self.leading()?;
        if !self.logins.admit(peer.ip(), self.clock.ticks()) {
            let error = "too many logins from this address: try again in a few seconds";
            return Err(Refusal::busy(error));
        }
        let token = token(headers, body).await?;
        let user = self.reviewer.user(&token).await.map_err(unreviewed)?;
        if user.is_none() {
            let error = "the apiserver does not accept this token: it may have expired, or be of another cluster; \
                         `kubectl create token SERVICEACCOUNT` makes a new one";
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, error));
        }
        let now = self.clock.now();
        let session = Session::begin(token, now);
        let seconds = session.ends.since(now).0.div_euclid(1000).max(0);
        let cookie = self.seal.seal(&session).map_err(|unsealed| match unsealed {
            Unsealed::TooLong => Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the token is too long for a cookie, which has at most 4096 bytes: use a shorter one, such as that of a \
                 ServiceAccount",
            ),
            Unsealed::NoRandomNumbers => Refusal::internal(),
        })?;
        with_cookie(&session::set_cookie(&cookie, seconds))
    }
}

/// Takes the cookie away.
pub(super) fn log_out(headers: &HeaderMap) -> Result<Response, Refusal> {
    check_origin(headers)?;
    with_cookie(&session::set_cookie("", 0))
}

fn with_cookie(cookie: &str) -> Result<Response, Refusal> {
    let mut cookie = HeaderValue::from_str(cookie).map_err(|_| Refusal::internal())?;
    cookie.set_sensitive(true);
    let headers = [
        (header::SET_COOKIE, cookie),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((StatusCode::NO_CONTENT, headers).into_response())
}

/// Another site must not log a visitor in or out: the request comes from a page of this host.
fn check_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name: &str| headers.get(name).map(HeaderValue::to_str);
    let is_same = match text("sec-fetch-site") {
        Some(site) => matches!(site, Ok("same-origin")),
        None => match (text("origin"), text("host")) {
            (Some(Ok(origin)), Some(Ok(host))) => origin.strip_prefix("https://") == Some(host),
            _ => false,
        },
    };
    is_same.then_some(()).ok_or_else(|| {
        let error = "the request is not from the page itself: open the page and use its form, or send the header \
                     `Origin: https://HOST`";
        Refusal::new(StatusCode::FORBIDDEN, error)
    })
}

/// The field `token` of a form.
async fn token(headers: &HeaderMap, body: Body) -> Result<String, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::to_str);
    let kind = kind.and_then(Result::ok).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let error = "the Content-Type must be application/x-www-form-urlencoded";
        return Err(Refusal::bad(error));
    }
    let body = timeout(BODY_PATIENCE, to_bytes(body, BODY_MAX)).await;
    let body = body.map_err(|_| Refusal::bad("the body of the request did not come in time"))?;
    let body = body.map_err(|_| {
        let error = format!("the form has more than {BODY_MAX} bytes: a token is shorter");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)
    })?;
    let missing = || Refusal::bad("the field token is missing or empty: paste a token");
    let form = std::str::from_utf8(&body).map_err(|_| missing())?;
    let mut fields = form.split('&').filter_map(|field| field.split_once('='));
    let (_, value) = fields
        .find(|(name, _)| *name == "token")
        .ok_or_else(missing)?;
    // The error of a wrong encoding would show the token.
    let token = decoded(&value.replace('+', " "));
    let token = token.map_err(|_| Refusal::bad("the field token is not form-encoded"))?;
    match token.trim() {
        "" => Err(missing()),
        token => Ok(token.to_owned()),
    }
}
