//! Who may read the metrics, if they are served over TLS: the apiserver reviews the bearer token of each scrape
//! (TokenReview) and its right to get the non-resource URL `/metrics` (SubjectAccessReview).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// A token's answer is used again for this long.
const ANSWER_LIFE: Duration = Duration::from_secs(10);
/// Answers that are kept.
const ANSWERS_MAX: usize = 256;
/// A longer token is refused without a review.
const TOKEN_MAX: usize = 16 * 1024;
/// Reviews that run at a time. Others wait.
const REVIEWS_AT_ONCE: usize = 4;
/// A review without an answer has failed after this time, with the wait for its turn.
const REVIEW_PATIENCE: Duration = Duration::from_secs(5);

/// Answer to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Granted,
    /// The apiserver does not know the token.
    Unauthenticated,
    /// Its user may not get `/metrics`.
    Forbidden,
}

/// SHA-256 of a token, so that no token stays in memory.
type TokenHash = [u8; 32];

#[derive(Clone, Copy, Debug)]
struct Answer {
    access: Access,
    until: Instant,
}

/// Reviews tokens by the apiserver.
pub struct Reviewer {
    client: Client,
    answers: Mutex<HashMap<TokenHash, Answer>>,
    turns: Semaphore,
}

impl Reviewer {
    /// Reviews with the rights of this client. Its writes must not depend on leadership, because every replica serves
    /// metrics.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            answers: Mutex::default(),
            turns: Semaphore::new(REVIEWS_AT_ONCE),
        }
    }

    /// The answer to a request with these headers; absent if the apiserver gives none.
    async fn access(&self, headers: &HeaderMap) -> Option<Access> {
        let Some(token) = bearer(headers) else {
            return Some(Access::Unauthenticated);
        };
        let hash = hash(token);
        if let Some(access) = self.known(&hash) {
            return Some(access);
        }
        let review = async {
            let _turn = self.turns.acquire().await.ok()?;
            // Another request with this token may have had its answer meanwhile.
            match self.known(&hash) {
                Some(access) => Some(access),
                None => self.review(token).await,
            }
        };
        let access = timeout(REVIEW_PATIENCE, review).await.ok().flatten()?;
        self.keep(hash, access);
        Some(access)
    }

    async fn review(&self, token: &str) -> Option<Access> {
        let reviewed = async {
            let Some(user) = self.user(token).await? else {
                return Ok(Access::Unauthenticated);
            };
            match self.may_read(user).await? {
                true => Ok(Access::Granted),
                false => Ok(Access::Forbidden),
            }
        };
        let reviewed: kube::Result<Access> = reviewed.await;
        reviewed
            .inspect_err(|error| tracing::warn!(%error, "review of a token for /metrics"))
            .ok()
    }

    /// The user of a token, if the apiserver knows it.
    async fn user(&self, token: &str) -> kube::Result<Option<UserInfo>> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let status = api.create(&PostParams::default(), &review).await?.status;
        let status = status.filter(|status| status.authenticated == Some(true));
        Ok(status.and_then(|status| status.user))
    }

    async fn may_read(&self, user: UserInfo) -> kube::Result<bool> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some("/metrics".to_owned()),
                    verb: Some("get".to_owned()),
                }),
                resource_attributes: None,
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let status = api.create(&PostParams::default(), &review).await?.status;
        Ok(status.is_some_and(|status| status.allowed && status.denied != Some(true)))
    }

    fn known(&self, hash: &TokenHash) -> Option<Access> {
        let answers = self.lock();
        let answer = answers.get(hash)?;
        (Instant::now() < answer.until).then_some(answer.access)
    }

    fn keep(&self, hash: TokenHash, access: Access) {
        let now = Instant::now();
        let mut answers = self.lock();
        answers.retain(|_, answer| now < answer.until);
        // Refused tokens are evicted first, so that guesses cannot evict the answer of a Prometheus.
        let last = |(_, answer): &(&TokenHash, &Answer)| {
            let is_granted = answer.access == Access::Granted;
            (is_granted, answer.until)
        };
        if answers.len() >= ANSWERS_MAX
            && let Some((&oldest, _)) = answers.iter().min_by_key(last)
        {
            answers.remove(&oldest);
        }
        let until = now + ANSWER_LIFE;
        answers.insert(hash, Answer { access, until });
    }

    // Each change is whole before the lock is released.
    fn lock(&self) -> MutexGuard<'_, HashMap<TokenHash, Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    let is_usable = !token.is_empty() && token.len() <= TOKEN_MAX;
    (scheme.eq_ignore_ascii_case("bearer") && is_usable).then_some(token)
}

fn hash(token: &str) -> TokenHash {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    let mut hash = TokenHash::default();
    hash.copy_from_slice(digest.as_ref());
    hash
}

/// Lets a request pass whose token may read the metrics.
pub async fn require(
    State(reviewer): State<Arc<Reviewer>>,
    request: Request,
    next: Next,
) -> Response {
    match reviewer.access(request.headers()).await {
        Some(Access::Granted) => next.run(request).await,
        Some(Access::Unauthenticated) => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            let why = "a bearer token that the apiserver accepts is needed\n";
            (StatusCode::UNAUTHORIZED, challenge, why).into_response()
        }
        Some(Access::Forbidden) => {
            let why = "the token's user needs the verb get on the non-resource URL /metrics\n";
            (StatusCode::FORBIDDEN, why).into_response()
        }
        None => {
            let why = "the apiserver does not review the token\n";
            (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
    }
}

#[cfg(test)]
mod tests;
