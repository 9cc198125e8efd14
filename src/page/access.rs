//! Which jobs a visitor may see: those of the namespaces where the user may list DeadlineJobs. An adopted Job is
//! shown by the same right, because its ledger and its record lie in a DeadlineJob.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::authentication::v1::UserInfo;

use shed_core::time::Span;

use crate::answers::Scope;
use crate::api::GROUP;
use crate::server::quota::Quota;
use crate::server::{Keeping, Reviewer, Right, Unreviewed};

/// How answers about rights are kept: for all users together.
pub(super) const KEEPING: Keeping = Keeping {
    life: Duration::from_secs(30),
    most: 16_384,
};
/// Namespaces that are reviewed for one answer. The others are shown in a later one.
const REVIEWS_MAX: usize = 100;
/// Reviews of one answer at a time.
const AT_ONCE: usize = 2;

fn list_in(namespace: Option<&str>) -> Right<'_> {
    Right::List {
        group: GROUP,
        resource: "deadlinejobs",
        namespace,
    }
}

/// Reviews of namespaces that a user names: this number at once, then one per period. Without this bound a user could
/// name namespaces at random, and so let the operator flood the apiserver.
pub(super) fn quota() -> Quota<String> {
    Quota::new(100, Span(100))
}

/// Whether it is known without a review whether the user may see the jobs of this namespace.
pub(super) fn is_known(reviewer: &Reviewer, user: &UserInfo, namespace: &str) -> bool {
    let all = reviewer.known_right(user, list_in(None));
    all == Some(true)
        || reviewer
            .known_right(user, list_in(Some(namespace)))
            .is_some()
}

/// Whether the user may see the jobs of this namespace.
pub(super) async fn may_see(
    reviewer: &Reviewer,
    user: &UserInfo,
    namespace: &str,
) -> Result<bool, Unreviewed> {
    if reviewer.may(user, list_in(None)).await? {
        return Ok(true);
    }
    reviewer.may(user, list_in(Some(namespace))).await
}

/// The namespaces that the user may see, of those that have jobs.
pub(super) async fn scope(
    reviewer: &Reviewer,
    user: &UserInfo,
    with_jobs: impl FnOnce() -> BTreeSet<Arc<str>>,
) -> Result<Scope, Unreviewed> {
    if reviewer.may(user, list_in(None)).await? {
        return Ok(Scope::All);
    }
    let (mut seen, mut unknown) = (BTreeSet::new(), Vec::new());
    for namespace in with_jobs() {
        match reviewer.known_right(user, list_in(Some(&namespace))) {
            Some(true) => drop(seen.insert(namespace)),
            Some(false) => {}
            None => unknown.push(namespace),
        }
    }
    unknown.truncate(REVIEWS_MAX);
    let reviews = unknown.into_iter().map(|namespace| async move {
        let may = reviewer.may(user, list_in(Some(&namespace))).await?;
        Ok(may.then_some(namespace))
    });
    let reviewed = stream::iter(reviews).buffer_unordered(AT_ONCE);
    let reviewed: Vec<Option<Arc<str>>> = reviewed.try_collect().await?;
    seen.extend(reviewed.into_iter().flatten());
    Ok(Scope::Namespaces(seen))
}
