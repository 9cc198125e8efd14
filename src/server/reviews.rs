//! Reviews by the apiserver: whose token it is (TokenReview), and whether its user may read the metrics
//! (SubjectAccessReview). Answers are used again for seconds, and only hashes of tokens stay in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// An answer is used again for this long.
const LIFE: Duration = Duration::from_secs(10);
/// Answers to tokens that are kept, and as many about users.
pub const KEPT_MAX: usize = 256;
/// The non-resource URL that a user must have the right to get.
const PATH: &str = "/metrics";
/// A longer token is refused without a review.
pub const TOKEN_MAX: usize = 16 * 1024;
/// Reviews that run at a time. Others wait.
pub const REVIEWS_AT_ONCE: usize = 4;
/// A review without an answer has failed after this time, with the wait for its turn.
pub const REVIEW_PATIENCE: Duration = Duration::from_secs(5);

/// The apiserver gave no answer. The log has the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the apiserver does not review tokens and rights now")]
pub struct Unreviewed;

/// SHA-256 of what was asked.
type Hash = [u8; 32];

/// Reviews tokens and rights by the apiserver.
pub struct Reviewer {
    client: Client,
    users: Kept<Option<Arc<UserInfo>>>,
    rights: Kept<bool>,
    turns: Semaphore,
}

impl Reviewer {
    /// Reviews with the rights of this client. Its writes must not depend on leadership, because a replica that does
    /// not lead reviews too.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            users: Kept::default(),
            rights: Kept::default(),
            turns: Semaphore::new(REVIEWS_AT_ONCE),
        }
    }

    /// The user of a token; absent if the apiserver does not know it.
    pub async fn user(&self, token: &str) -> Result<Option<Arc<UserInfo>>, Unreviewed> {
        if token.is_empty() || token.len() > TOKEN_MAX {
            return Ok(None);
        }
        let hash = hash(token.as_bytes());
        let review = self.review_token(token);
        self.answer(&self.users, hash, Option::is_some, review)
            .await
    }

    /// Whether the answer to a token needs no review.
    pub fn knows(&self, token: &str) -> bool {
        let is_refused = token.is_empty() || token.len() > TOKEN_MAX;
        is_refused || self.users.get(&hash(token.as_bytes())).is_some()
    }

    /// Whether the user may read the metrics.
    pub async fn may_read(&self, user: &UserInfo) -> Result<bool, Unreviewed> {
        let hash = hash_of_user(user);
        let review = self.review_right(user);
        self.answer(&self.rights, hash, |granted| *granted, review)
            .await
    }

    /// The known answer, or that of a review.
    async fn answer<T: Clone>(
        &self,
        kept: &Kept<T>,
        hash: Hash,
        is_granted: impl FnOnce(&T) -> bool,
        review: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Unreviewed> {
        if let Some(answer) = kept.get(&hash) {
            return Ok(answer);
        }
        let review = async {
            let _turn = self.turns.acquire().await.ok()?;
            // Another request may have had the answer meanwhile.
            if let Some(answer) = kept.get(&hash) {
                return Some(answer);
            }
            let answer = review.await;
            let answer = answer.inspect_err(|error| tracing::warn!(%error, "review of a client"));
            answer.ok()
        };
        let answer = timeout(REVIEW_PATIENCE, review).await.ok().flatten();
        let answer = answer.ok_or(Unreviewed)?;
        kept.put(hash, answer.clone(), is_granted(&answer));
        Ok(answer)
    }

    async fn review_token(&self, token: &str) -> kube::Result<Option<Arc<UserInfo>>> {
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
        Ok(status.and_then(|status| status.user).map(Arc::new))
    }

    async fn review_right(&self, user: &UserInfo) -> kube::Result<bool> {
        let user = user.clone();
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(PATH.to_owned()),
                verb: Some("get".to_owned()),
            }),
            resource_attributes: None,
        };
        let review = SubjectAccessReview {
            spec,
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let status = api.create(&PostParams::default(), &review).await?.status;
        Ok(status.is_some_and(|status| status.allowed && status.denied != Some(true)))
    }
}

/// Answers that are used again for a while.
#[derive(Default)]
struct Kept<T>(Mutex<HashMap<Hash, Answer<T>>>);

struct Answer<T> {
    answer: T,
    is_granted: bool,
    until: Instant,
}

impl<T: Clone> Kept<T> {
    fn get(&self, hash: &Hash) -> Option<T> {
        let answers = self.0.lock();
        let answer = answers.get(hash)?;
        (Instant::now() < answer.until).then(|| answer.answer.clone())
    }

    fn put(&self, hash: Hash, answer: T, is_granted: bool) {
        let now = Instant::now();
        let mut answers = self.0.lock();
        if answers.len() >= KEPT_MAX {
            answers.retain(|_, answer| now < answer.until);
        }
        // Refused tokens are evicted first, so that guesses cannot evict the answers of others.
        let last = |(_, answer): &(&Hash, &Answer<T>)| (answer.is_granted, answer.until);
        if answers.len() >= KEPT_MAX
            && let Some((&oldest, _)) = answers.iter().min_by_key(last)
        {
            answers.remove(&oldest);
        }
        let until = now + LIFE;
        let answer = Answer {
            answer,
            is_granted,
            until,
        };
        answers.insert(hash, answer);
    }
}

#[cfg(test)]
impl Reviewer {
    /// Answers to tokens that are kept.
    pub(super) fn tokens(&self) -> usize {
        self.users.0.lock().len()
    }
}

fn hash(bytes: &[u8]) -> Hash {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let mut hash = Hash::default();
    hash.copy_from_slice(digest.as_ref());
    hash
}

/// Everything of the user counts: the groups of one name may differ between two tokens.
fn hash_of_user(user: &UserInfo) -> Hash {
    hash(&serde_json::to_vec(user).unwrap_or_default())
}
