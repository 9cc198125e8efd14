//! Reviews by the apiserver: whose token it is (TokenReview), and what a user may do (SubjectAccessReview). Answers are
//! used again for seconds, and only hashes of tokens stay in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// A token's answer is used again for this long.
pub const TOKEN_LIFE: Duration = Duration::from_secs(10);
/// Answers to tokens that are kept.
const TOKENS_MAX: usize = 256;
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

/// A right that a user may have.
#[derive(Debug, Clone, Copy)]
pub enum Right<'a> {
    /// Get this non-resource URL.
    GetUrl(&'a str),
    /// List the resource in a namespace, or in all of them.
    List {
        /// The API group.
        group: &'a str,
        /// The resource, in the plural.
        resource: &'a str,
        /// Absent: all.
        namespace: Option<&'a str>,
    },
}

/// How answers about rights are kept.
#[derive(Debug, Clone, Copy)]
pub struct Keeping {
    /// An answer is used again for this long.
    pub life: Duration,
    /// Number of answers.
    pub most: usize,
}

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
    pub fn new(client: Client, rights: Keeping) -> Self {
        let users = Keeping {
            life: TOKEN_LIFE,
            most: TOKENS_MAX,
        };
        Self {
            client,
            users: Kept::new(users),
            rights: Kept::new(rights),
            turns: Semaphore::new(REVIEWS_AT_ONCE),
        }
    }

    /// The user of a token; absent if the apiserver does not know it.
    pub async fn user(&self, token: &str) -> Result<Option<Arc<UserInfo>>, Unreviewed> {
        if token.is_empty() || token.len() > TOKEN_MAX {
            return Ok(None);
        }
        let hash = hash(&[token.as_bytes()]);
        let review = self.review_token(token);
        self.answer(&self.users, hash, Option::is_some, review)
            .await
    }

    /// Whether the answer to a token needs no review.
    pub fn knows(&self, token: &str) -> bool {
        let is_refused = token.is_empty() || token.len() > TOKEN_MAX;
        is_refused || self.users.get(&hash(&[token.as_bytes()])).is_some()
    }

    /// Whether the user has the right.
    pub async fn may(&self, user: &UserInfo, right: Right<'_>) -> Result<bool, Unreviewed> {
        let hash = hash_of_right(user, right);
        let review = self.review_right(user, right);
        self.answer(&self.rights, hash, |granted| *granted, review)
            .await
    }

    /// The answer about a right that is known without a review.
    pub fn known_right(&self, user: &UserInfo, right: Right<'_>) -> Option<bool> {
        self.rights.get(&hash_of_right(user, right))
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

    async fn review_right(&self, user: &UserInfo, right: Right<'_>) -> kube::Result<bool> {
        let user = user.clone();
        let mut spec = SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            non_resource_attributes: None,
            resource_attributes: None,
        };
        match right {
            Right::GetUrl(path) => {
                spec.non_resource_attributes = Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some("get".to_owned()),
                });
            }
            Right::List {
                group,
                resource,
                namespace,
            } => {
                spec.resource_attributes = Some(ResourceAttributes {
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    verb: Some("list".to_owned()),
                    namespace: namespace.map(str::to_owned),
                    ..ResourceAttributes::default()
                });
            }
        }
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
struct Kept<T> {
    keeping: Keeping,
    answers: Mutex<HashMap<Hash, Answer<T>>>,
}

struct Answer<T> {
    answer: T,
    is_granted: bool,
    until: Instant,
}

impl<T: Clone> Kept<T> {
    fn new(keeping: Keeping) -> Self {
        Self {
            keeping,
            answers: Mutex::default(),
        }
    }

    fn get(&self, hash: &Hash) -> Option<T> {
        let answers = self.lock();
        let answer = answers.get(hash)?;
        (Instant::now() < answer.until).then(|| answer.answer.clone())
    }

    fn put(&self, hash: Hash, answer: T, is_granted: bool) {
        let now = Instant::now();
        let mut answers = self.lock();
        if answers.len() >= self.keeping.most {
            answers.retain(|_, answer| now < answer.until);
        }
        // Refused tokens are evicted first, so that guesses cannot evict the answers of others.
        let last = |(_, answer): &(&Hash, &Answer<T>)| (answer.is_granted, answer.until);
        if answers.len() >= self.keeping.most
            && let Some((&oldest, _)) = answers.iter().min_by_key(last)
        {
            answers.remove(&oldest);
        }
        let until = now + self.keeping.life;
        let answer = Answer {
            answer,
            is_granted,
            until,
        };
        answers.insert(hash, answer);
    }

    // Each change is whole before the lock is released.
    fn lock(&self) -> MutexGuard<'_, HashMap<Hash, Answer<T>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Reviewer {
    /// Answers to tokens that are kept.
    pub(super) fn tokens(&self) -> usize {
        self.users.lock().len()
    }
}

/// Each part has its length in front, so that no two lists have the same text.
fn hash(parts: &[&[u8]]) -> Hash {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        context.update(&part.len().to_be_bytes());
        context.update(part);
    }
    let mut hash = Hash::default();
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

fn hash_of_right(user: &UserInfo, right: Right<'_>) -> Hash {
    // Everything of the user counts: the groups of one name may differ between two tokens.
    let user = serde_json::to_vec(user).unwrap_or_default();
    let user: &[u8] = &user;
    match right {
        Right::GetUrl(path) => hash(&[user, b"url", path.as_bytes()]),
        Right::List {
            group,
            resource,
            namespace,
        } => {
            let (group, resource) = (group.as_bytes(), resource.as_bytes());
            match namespace {
                None => hash(&[user, b"list", group, resource]),
                Some(name) => hash(&[user, b"list", group, resource, name.as_bytes()]),
            }
        }
    }
}
