//! The apiserver's answers to the creation of a job's pods, and the number of pods to create next.
//! Pure.
//!
//! Some refusals last: a quota, a policy, an invalid template. shed tests with one pod whether such
//! a refusal still holds. It launches no more attempts than exist, and one more after a wait. While
//! the apiserver accepts, each step launches twice as many. Under a quota, shed may refill the
//! places of ended pods at once.

use std::borrow::Cow;

use shed_core::plan::Move;
use shed_core::snapshot::AttemptKind;
use shed_core::time::{Instant, Span};

use crate::api::reason;
use crate::context::backoff::Blocked;

/// Waits after a refusal: the first, and the maximum of the doubling.
const REFUSED: (Span, Span) = (Span::from_seconds(10), Span::from_seconds(300));
/// The same for refusals by a quota, because other clients free quota at any time.
const OVER_QUOTA: (Span, Span) = (Span::from_seconds(10), Span::from_seconds(30));
/// The same after a failure of another kind.
const FAILED: (Span, Span) = (Span::from_seconds(2), Span::from_seconds(60));
/// A namespace that was just made gets its service account within this …
const FRESH: (Span, Span) = (Span::from_seconds(1), Span::from_seconds(2));
/// … as many times at most.
const FRESH_MAX: u32 = 5;

/// Failures in a row before shed reports them to users.
const FAILURES_TOLD: u32 = 2;

/// Maximum number of attempts that shed records at a time until it has created a pod of the job in
/// this process. If the apiserver refuses them, shed takes all of them back.
const FIRST_MAX: u32 = 100;

/// The apiserver's answers so far. shed can lose all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Creations {
    has_accepted: bool,
    refused: Option<Refused>,
    refused_clone: Option<Refused>,
    failing: Option<Failing>,
}

/// Reason of the last refusal, and the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused {
    blocked: Blocked,
    /// How often in a row.
    count: u32,
    /// Nothing more is tried before.
    until: Instant,
    /// How many pods existed then.
    existing: u32,
    /// How many more are tried next.
    probe: u32,
    /// The last try was accepted.
    is_lifted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Failing {
    message: String,
    count: u32,
    until: Instant,
}

/// Results of the creations of one pass.
#[derive(Debug, Default)]
pub struct Answers {
    /// How many pods were created.
    pub created: usize,
    /// Whether one of them is a clone.
    pub created_clone: bool,
    /// The first refusal of a first attempt or retry.
    pub refused: Option<Blocked>,
    /// The first refusal of a clone.
    pub refused_clone: Option<Blocked>,
    /// Another failure.
    pub failed: Option<String>,
    /// The reason of each refusal.
    reasons: Vec<&'static str>,
}

impl Answers {
    /// Notes that an attempt of that kind was created.
    pub fn create(&mut self, kind: Option<AttemptKind>) {
        self.created += 1;
        self.created_clone |= kind == Some(AttemptKind::Clone);
    }

    /// Notes the refusal of an attempt of that kind.
    pub fn refuse(&mut self, kind: Option<AttemptKind>, blocked: Blocked) {
        self.reasons.push(blocked.reason);
        let first = match kind {
            Some(AttemptKind::Clone) => &mut self.refused_clone,
            _ => &mut self.refused,
        };
        first.get_or_insert(blocked);
    }

    /// The reason of each refusal.
    pub fn reasons(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.reasons.iter().copied()
    }
}

/// Limits on launches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Nothing before this.
    pub not_before: Option<Instant>,
    /// No clone before this.
    pub clones_not_before: Option<Instant>,
    /// Most attempts that may exist.
    pub attempts_max: Option<u32>,
    /// When they change though nothing happens.
    pub until: Option<Instant>,
}

impl Creations {
    /// Takes the answers of a pass. `existing` pods exist after it.
    pub fn take(&mut self, answers: Answers, existing: u32, now: Instant) {
        if answers.created > 0 {
            self.has_accepted = true;
            self.failing = None;
        }
        if let Some(message) = answers.failed {
            let count = self.failing.as_ref().map_or(0, |failing| failing.count);
            self.failing = Some(Failing {
                message,
                count: count + 1,
                until: now.plus(wait(FAILED, count)),
            });
        }
        if let Some(blocked) = answers.refused_clone {
            let before = self.refused_clone.as_ref();
            self.refused_clone = Some(Refused::after(before, blocked, existing, now));
        } else if answers.created_clone {
            self.refused_clone = None;
        }
        if let Some(blocked) = answers.refused {
            let before = self.refused.as_ref();
            self.refused = Some(Refused::after(before, blocked, existing, now));
        } else if answers.created > 0 {
            let refused = self.refused.take();
            self.refused = refused.and_then(|refused| refused.accepted(existing, now));
        }
    }

    /// The moves of a slice that run now. The planner plans the rest again at once.
    #[must_use]
    pub fn first<'s>(&self, slice: &'s [Move]) -> Cow<'s, [Move]> {
        if self.has_accepted || slice.len() <= FIRST_MAX as usize {
            return Cow::Borrowed(slice);
        }
        let mut launches = 0;
        let is_in = |action: &&Move| {
            launches += u32::from(matches!(action, Move::Launch(_)));
            launches <= FIRST_MAX || !matches!(action, Move::Launch(_))
        };
        Cow::Owned(slice.iter().filter(is_in).cloned().collect())
    }

    /// Limits on launches while `existing` attempts have not ended and `leaving` more pods still
    /// hold their slot.
    #[must_use]
    pub fn limits(&self, existing: u32, leaving: u32, now: Instant) -> Limits {
        let clones = self.refused_clone.as_ref().map(|refused| refused.until);
        let limits = Limits {
            clones_not_before: clones,
            until: clones,
            ..Limits::default()
        };
        let attempts = |most| Limits {
            attempts_max: Some(most),
            ..limits
        };
        match &self.refused {
            _ if self.failing.is_some() => attempts(existing),
            None => limits,
            Some(refused) if refused.is_quota() => {
                let probe = if refused.until <= now {
                    refused.probe
                } else {
                    0
                };
                let most = refused.existing.saturating_add(probe);
                Limits {
                    until: limits.until.into_iter().chain([refused.until]).min(),
                    ..attempts(most.saturating_sub(leaving))
                }
            }
            Some(refused) => Limits {
                not_before: Some(refused.until),
                ..attempts(existing.saturating_add(refused.probe))
            },
        }
    }

    /// The obstacle to the creation of pods, if it is serious enough for the job's conditions.
    #[must_use]
    pub fn blocked(&self) -> Option<Blocked> {
        let failing = self.failing.as_ref().filter(|failing| failing.is_told());
        let failing = failing.map(|failing| Blocked {
            reason: reason::POD_CREATION_FAILED,
            message: failing.message.clone(),
        });
        let refused = self.refused.iter().chain(&self.refused_clone);
        let mut refused = refused.filter(|refused| refused.is_told());
        failing.or_else(|| refused.next().map(|refused| refused.blocked.clone()))
    }

    /// Whether no pod can be created, for a reason that may pass at any time.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.failing.as_ref().is_some_and(Failing::is_told)
    }

    /// When a failed creation is tried again without another event.
    #[must_use]
    pub fn retry_at(&self) -> Option<Instant> {
        self.failing.as_ref().map(|failing| failing.until)
    }

    /// No pod is created before this, though attempts are recorded. A single failure holds nothing off:
    /// an answer may have been lost.
    #[must_use]
    pub fn not_before(&self) -> Option<Instant> {
        self.retry_at().filter(|_| self.is_failing())
    }
}

impl Refused {
    fn after(before: Option<&Self>, blocked: Blocked, existing: u32, now: Instant) -> Self {
        let before = before.filter(|before| !before.is_lifted);
        let count = before.map_or(0, |before| before.count);
        let mut refused = Self {
            blocked,
            count: count + 1,
            until: now,
            existing,
            probe: 1,
            is_lifted: false,
        };
        let (waits, doublings) = match refused.is_quota() {
            true => (OVER_QUOTA, count),
            false if refused.is_fresh() => (FRESH, count),
            false if refused.lacks_account() => (REFUSED, count.saturating_sub(FRESH_MAX)),
            false => (REFUSED, count),
        };
        refused.until = now.plus(wait(waits, doublings));
        refused
    }

    /// None once enough pods were accepted to show that no obstacle is left.
    fn accepted(self, existing: u32, now: Instant) -> Option<Self> {
        // Under a quota the place of an ended pod proves nothing about more pods.
        if self.is_quota() && existing <= self.existing {
            return Some(self);
        }
        let probe = self.probe.saturating_mul(2);
        (probe <= FIRST_MAX).then_some(Self {
            probe,
            existing,
            until: now,
            is_lifted: true,
            ..self
        })
    }

    fn is_quota(&self) -> bool {
        self.blocked.reason == reason::QUOTA_EXCEEDED
    }

    /// Whether the namespace is so new that its service account is not there yet.
    fn is_fresh(&self) -> bool {
        self.lacks_account() && self.count <= FRESH_MAX
    }

    fn lacks_account(&self) -> bool {
        let message = self.blocked.message.as_str();
        message.contains("serviceaccount") && message.contains("not found")
    }

    fn is_told(&self) -> bool {
        let may_pass = self.is_fresh() && self.count <= 2;
        !(self.is_lifted || may_pass)
    }
}

impl Failing {
    fn is_told(&self) -> bool {
        self.count >= FAILURES_TOLD
    }
}

/// The wait after this number of earlier waits.
fn wait((first, last): (Span, Span), count: u32) -> Span {
    Span(first.0 << count.min(16)).min(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::mock::originals;

    fn refused(reason: &'static str, message: &str) -> Answers {
        Answers {
            refused: Some(Blocked {
                reason,
                message: message.to_owned(),
            }),
            ..Answers::default()
        }
    }

    fn quota() -> Answers {
        refused(reason::QUOTA_EXCEEDED, "exceeded quota: small")
    }

    fn created(count: usize) -> Answers {
        Answers {
            created: count,
            ..Answers::default()
        }
    }

    fn at(seconds: i64) -> Instant {
        Instant(0).plus(Span::from_seconds(seconds))
    }

    fn most(creations: &Creations, existing: u32, seconds: i64) -> Option<u32> {
        creations.limits(existing, 0, at(seconds)).attempts_max
    }

    #[test]
    fn a_job_begins_with_so_many_until_one_was_accepted() {
        let slice = originals(5000);
        let mut creations = Creations::default();
        assert_eq!(*creations.first(&slice), slice[..100]);
        assert_eq!(creations.limits(0, 0, at(0)), Limits::default());
        creations.take(created(1), 8, at(0));
        assert_eq!(*creations.first(&slice), slice);
    }

    #[test]
    fn under_a_quota_places_are_filled_again_at_once_and_one_more_is_tried_after_a_wait() {
        let mut creations = Creations::default();
        creations.take(
            Answers {
                created: 2,
                ..quota()
            },
            2,
            at(0),
        );
        assert_eq!(
            (most(&creations, 2, 0), most(&creations, 2, 9)),
            (Some(2), Some(2))
        );
        assert_eq!(creations.limits(2, 0, at(0)).not_before, None);
        assert_eq!(creations.limits(2, 0, at(0)).until, Some(at(10)));
        // A pod has ended, and its place is filled. That proves nothing about more pods.
        assert_eq!(most(&creations, 1, 5), Some(2));
        creations.take(created(1), 2, at(5));
        assert_eq!(most(&creations, 2, 5), Some(2));
        assert_eq!(creations.blocked().unwrap().reason, reason::QUOTA_EXCEEDED);
        // The quota counts a pod whose task has ended until the pod has ended, too.
        assert_eq!(creations.limits(1, 1, at(5)).attempts_max, Some(1));
        assert_eq!(most(&creations, 2, 10), Some(3));
        creations.take(quota(), 2, at(10));
        assert_eq!(
            (most(&creations, 2, 29), most(&creations, 2, 30)),
            (Some(2), Some(3))
        );
        creations.take(quota(), 2, at(30));
        creations.take(quota(), 2, at(60));
        assert_eq!(
            (most(&creations, 2, 89), most(&creations, 2, 90)),
            (Some(2), Some(3))
        );
    }

    #[test]
    fn what_is_accepted_beyond_a_quota_doubles_until_nothing_is_in_the_way() {
        let mut creations = Creations::default();
        creations.take(quota(), 2, at(0));
        let mut existing = 2;
        let mut steps = Vec::new();
        while let Some(most) = most(&creations, existing, 10) {
            steps.push(most - existing);
            creations.take(created((most - existing) as usize), most, at(10));
            existing = most;
            assert_eq!(creations.blocked(), None);
        }
        assert_eq!(steps, [1, 2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn a_template_that_is_refused_is_tried_with_one_pod_per_wait() {
        let mut creations = Creations::default();
        for (count, wait) in [10, 20, 40, 80, 160, 300, 300].into_iter().enumerate() {
            let now = at(1000 * count as i64);
            creations.take(refused(reason::POD_INVALID, "no image"), 0, now);
            let limits = creations.limits(0, 0, now);
            assert_eq!(limits.not_before, Some(now.plus(Span::from_seconds(wait))));
            assert_eq!(limits.attempts_max, Some(1));
        }
        creations.take(created(1), 1, at(9000));
        assert_eq!(creations.blocked(), None);
        let limits = creations.limits(1, 0, at(9000));
        assert_eq!(
            (limits.not_before, limits.attempts_max),
            (Some(at(9000)), Some(3))
        );
        // Refused again, it waits as after the first time.
        creations.take(refused(reason::POD_INVALID, "no image"), 1, at(9001));
        assert_eq!(creations.limits(1, 0, at(9001)).not_before, Some(at(9011)));
    }

    #[test]
    fn a_namespace_gets_time_for_its_service_account() {
        let message =
            "error looking up service account team/default: serviceaccount \"default\" not found";
        let mut creations = Creations::default();
        let mut waits = Vec::new();
        for _ in 0..7 {
            creations.take(refused(reason::POD_FORBIDDEN, message), 0, at(0));
            let until = creations.limits(0, 0, at(0)).not_before.unwrap();
            waits.push((until.since(at(0)).seconds(), creations.blocked().is_some()));
        }
        let expected = [
            (1.0, false),
            (2.0, false),
            (2.0, true),
            (2.0, true),
            (2.0, true),
            (10.0, true),
            (20.0, true),
        ];
        assert_eq!(waits, expected);
    }

    #[test]
    fn a_clone_that_is_refused_holds_off_clones_alone() {
        let mut creations = Creations::default();
        creations.take(created(1), 1, at(0));
        let mut answers = Answers::default();
        let blocked = Blocked {
            reason: reason::QUOTA_EXCEEDED,
            message: "exceeded quota: low-priority".to_owned(),
        };
        answers.refuse(Some(AttemptKind::Clone), blocked);
        creations.take(answers, 1, at(0));
        let limits = creations.limits(1, 0, at(0));
        assert_eq!((limits.not_before, limits.attempts_max), (None, None));
        assert_eq!(
            (limits.clones_not_before, limits.until),
            (Some(at(10)), Some(at(10)))
        );
        assert!(creations.blocked().is_some());
        let mut answers = Answers::default();
        answers.create(Some(AttemptKind::Clone));
        creations.take(answers, 2, at(10));
        assert_eq!(creations.limits(2, 0, at(10)), Limits::default());
    }

    #[test]
    fn failures_are_told_from_the_second_on_and_tried_ever_later() {
        let failed = || Answers {
            failed: Some("failed calling webhook".to_owned()),
            ..Answers::default()
        };
        let mut creations = Creations::default();
        let mut waits = Vec::new();
        for count in 1..9 {
            creations.take(failed(), 0, at(0));
            waits.push(creations.retry_at().unwrap().since(at(0)).seconds());
            assert_eq!(creations.not_before().is_some(), count > 1);
            assert_eq!(
                (creations.is_failing(), creations.blocked().is_some()),
                (count > 1, count > 1)
            );
            assert_eq!(most(&creations, 5, 0), Some(5), "nothing more is recorded");
        }
        assert_eq!(waits, [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]);
        creations.take(created(1), 1, at(0));
        assert_eq!(
            (creations.is_failing(), creations.retry_at()),
            (false, None)
        );
    }
}
