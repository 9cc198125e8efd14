//! The apiserver's answers to the creation of a job's pods, and the number of pods to create next.
//! Pure.
//!
//! Some refusals last: a quota, a policy, an invalid template, a namespace that is terminating. shed
//! tests with one pod whether such a refusal still holds. It launches no more attempts than exist,
//! and one more after a wait. While the apiserver accepts, each step launches twice as many. Under a
//! quota, shed may refill the places of ended pods at once.

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
const FAILURES_REPORTED: u32 = 2;

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

/// Attempts and pods of a job, as far as the limits depend on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Attempts that have not ended.
    pub existing: u32,
    /// Recorded attempts whose pods no watch has shown.
    pub uncreated: u32,
    /// Pods of ended attempts that are being deleted.
    pub leaving: u32,
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

    /// The limits on launches at `now`.
    pub fn limits(&self, count: Count, now: Instant) -> Limits {
        let Count {
            existing, leaving, ..
        } = count;
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
        if let Some(failing) = &self.failing {
            // The retry of a recorded attempt tells whether creation works again. Where all of them have
            // got their pods or have ended, only a new attempt can tell.
            let probes = count.uncreated == 0;
            let is_due = !failing.is_reported() || failing.until <= now;
            let until = limits.until.into_iter().chain([failing.until]).min();
            return Limits {
                until: if probes { until } else { limits.until },
                ..attempts(existing.saturating_add(u32::from(probes && is_due)))
            };
        }
        match &self.refused {
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
    pub fn blocked(&self) -> Option<Blocked> {
        let failing = self
            .failing
            .as_ref()
            .filter(|failing| failing.is_reported());
        let failing = failing.map(|failing| Blocked {
            reason: reason::POD_CREATION_FAILED,
            message: failing.message.clone(),
        });
        let refused = self.refused.iter().chain(&self.refused_clone);
        let mut refused = refused.filter(|refused| refused.is_reported());
        failing.or_else(|| refused.next().map(|refused| refused.blocked.clone()))
    }

    /// Whether no pod can be created, for a reason that may pass at any time.
    pub fn is_failing(&self) -> bool {
        self.failing.as_ref().is_some_and(Failing::is_reported)
    }

    /// When a failed creation is tried again without another event.
    pub fn retry_at(&self) -> Option<Instant> {
        self.failing.as_ref().map(|failing| failing.until)
    }

    /// No pod is created before this, though attempts are recorded. A single failure holds nothing off:
    /// an answer may have been lost.
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

    fn is_reported(&self) -> bool {
        let may_pass = self.is_fresh() && self.count <= 2;
        !(self.is_lifted || may_pass)
    }
}

impl Failing {
    fn is_reported(&self) -> bool {
        self.count >= FAILURES_REPORTED
    }
}

/// The wait after this number of earlier waits.
fn wait((first, last): (Span, Span), count: u32) -> Span {
    Span(first.0 << count.min(16)).min(last)
}

#[cfg(test)]
mod tests;
