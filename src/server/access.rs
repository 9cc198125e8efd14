//! Who may read the metrics, if they are served over TLS: the apiserver reviews the bearer token of each scrape
//! (TokenReview) and its right to get the non-resource URL `/metrics` (SubjectAccessReview).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::quota::Quota;
use super::reviews::{REVIEW_PATIENCE, Reviewer, Unreviewed};
use crate::clock::Clock;

/// Reviews the clients of the metrics.
pub struct Gate {
    reviewer: Reviewer,
    unknown: Quota,
    clock: Arc<Clock>,
}

impl Gate {
    /// A gate that has reviewed nothing yet.
    pub fn new(reviewer: Reviewer, clock: Arc<Clock>) -> Self {
        Self {
            reviewer,
            unknown: Quota::default(),
            clock,
        }
    }
}

/// Answer to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Granted,
    /// The apiserver does not know the token.
    Unauthenticated,
    /// Its user may not get `/metrics`.
    Forbidden,
    /// Too many tokens of this client had to be reviewed.
    Busy,
}

/// The answer to a request with these headers.
async fn access(gate: &Gate, peer: IpAddr, headers: &HeaderMap) -> Result<Access, Unreviewed> {
    let reviewer = &gate.reviewer;
    let Some(token) = bearer(headers) else {
        return Ok(Access::Unauthenticated);
    };
    if !reviewer.knows(token) && !gate.unknown.admit(peer, gate.clock.ticks()) {
        return Ok(Access::Busy);
    }
    let review = async {
        let Some(user) = reviewer.user(token).await? else {
            return Ok(Access::Unauthenticated);
        };
        match reviewer.may_read(&user).await? {
            true => Ok(Access::Granted),
            false => Ok(Access::Forbidden),
        }
    };
    let answer = timeout(REVIEW_PATIENCE, review).await;
    answer.unwrap_or(Err(Unreviewed))
}

/// The bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Lets a request pass whose token may read the metrics.
pub async fn require(
    State(gate): State<Arc<Gate>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    match access(&gate, peer.ip(), request.headers()).await {
        Ok(Access::Granted) => next.run(request).await,
        Ok(Access::Unauthenticated) => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            let why = "a bearer token that the apiserver accepts is needed\n";
            (StatusCode::UNAUTHORIZED, challenge, why).into_response()
        }
        Ok(Access::Forbidden) => {
            let why = "the token's user needs the verb get on the non-resource URL /metrics\n";
            (StatusCode::FORBIDDEN, why).into_response()
        }
        Ok(Access::Busy) => {
            let why = "too many tokens from this address: try again in a few seconds\n";
            (StatusCode::TOO_MANY_REQUESTS, why).into_response()
        }
        Err(Unreviewed) => {
            let why = "the apiserver does not review the token\n";
            (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
    }
}

#[cfg(test)]
mod tests;
