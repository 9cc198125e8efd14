//! Leader election with one Lease: pure functions of the Leases read and of this process's
//! monotonic clock. The times in a Lease are for people; no replica compares them with its own
//! clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

/// Annotation of the Lease: the version of the operator that holds it.
pub const ANNOTATION_VERSION: &str = "shed.dev/version";

/// The times of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A Lease without a renewal for this time is free.
    pub duration: Duration,
    /// The holder writes nothing once its last renewal is this old.
    pub renew_deadline: Duration,
    /// Time between two renewals, and between two attempts of a waiting replica.
    pub retry_period: Duration,
}

/// Meaning of a Lease to this replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be taken.
    Free,
    /// It is this replica's.
    Mine,
    /// It must be waited for, until this instant unless it is renewed.
    Held {
        /// The holder's name.
        holder: String,
        /// Its version, if it is an operator of shed.
        version: Option<String>,
        /// Until when.
        until: Instant,
    },
}

/// One replica's view of the Lease.
#[derive(Debug)]
pub struct Elector {
    /// Unique per process, even among processes that used the same pod in turn.
    identity: String,
    timing: Timing,
    observed: Option<Observed>,
}

/// The last observation, and since when it has not changed.
#[derive(Debug)]
struct Observed {
    renewal: Renewal,
    version: Option<String>,
    since: Instant,
    /// The lease duration that the holder states, if that is longer than our own.
    duration: Duration,
}

/// Fields that change with every renewal.
#[derive(Debug, PartialEq)]
struct Renewal {
    holder: String,
    renewed: Option<MicroTime>,
    transitions: i32,
}

impl Elector {
    /// A replica that has seen nothing yet.
    pub fn new(identity: String, timing: Timing) -> Self {
        Self {
            identity,
            timing,
            observed: None,
        }
    }

    /// Under which name it holds the Lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Its times.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Evaluates the Lease that was just read; `now` is taken after the answer.
    pub fn judge(&mut self, found: Option<&Lease>, now: Instant) -> Verdict {
        // Nothing is learned where it was deleted: its holder may not have noticed yet.
        if let Some(lease) = found {
            self.observe(lease, now);
        }
        let Some(observed) = &self.observed else {
            return Verdict::Free;
        };
        let holder = &observed.renewal.holder;
        let until = observed.since + observed.duration;
        if found.is_some() && *holder == self.identity {
            return Verdict::Mine;
        }
        if holder.is_empty() || now >= until {
            return Verdict::Free;
        }
        Verdict::Held {
            holder: holder.clone(),
            version: observed.version.clone(),
            until,
        }
    }

    fn observe(&mut self, lease: &Lease, now: Instant) {
        let spec = lease.spec.clone().unwrap_or_default();
        let renewal = Renewal {
            holder: spec.holder_identity.unwrap_or_default(),
            renewed: spec.renew_time,
            transitions: spec.lease_transitions.unwrap_or_default(),
        };
        let unchanged = self
            .observed
            .as_ref()
            .is_some_and(|observed| observed.renewal == renewal);
        if unchanged {
            return;
        }
        let annotations = lease.metadata.annotations.as_ref();
        let announced = spec.lease_duration_seconds.unwrap_or_default();
        let announced = Duration::from_secs(u64::try_from(announced).unwrap_or_default());
        self.observed = Some(Observed {
            renewal,
            version: annotations.and_then(|all| all.get(ANNOTATION_VERSION).cloned()),
            since: now,
            duration: announced.max(self.timing.duration),
        });
    }

    /// The Lease as this replica takes or renews it. The renewal time rises with every write,
    /// whatever the wall clock shows. Other replicas see by its change that the holder lives.
    pub fn claim(&self, found: Lease, wall: Timestamp) -> Lease {
        let mut lease = found;
        let old = lease.spec.take().unwrap_or_default();
        let held_before = old.holder_identity.as_deref() == Some(self.identity.as_str());
        let tick = SignedDuration::from_micros(1);
        let renewed = old.renew_time.map_or(wall, |MicroTime(before)| {
            wall.max(before.saturating_add(tick).unwrap_or(before))
        });
        let is_new = old.holder_identity.is_none() && old.lease_transitions.is_none();
        let transitions = old.lease_transitions.unwrap_or_default();
        let change_of_hand = i32::from(!held_before && !is_new);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(self.duration_seconds()),
            acquire_time: old
                .acquire_time
                .filter(|_| held_before)
                .or(Some(MicroTime(renewed))),
            renew_time: Some(MicroTime(renewed)),
            lease_transitions: Some(transitions.saturating_add(change_of_hand)),
            ..old
        });
        let annotations = lease.metadata.annotations.get_or_insert_default();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        annotations.insert(ANNOTATION_VERSION.to_owned(), version);
        lease
    }

    /// The Lease as this replica gives it back: free at once, for whoever looks next.
    pub fn released(&self, mut lease: Lease, wall: Timestamp) -> Lease {
        lease = self.claim(lease, wall);
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
        }
        lease
    }

    /// Until when a renewal that was *sent* at this instant, and succeeded, lets this replica write.
    pub fn writes_until(&self, sent: Instant) -> Instant {
        sent + self.timing.renew_deadline
    }

    fn duration_seconds(&self) -> i32 {
        i32::try_from(self.timing.duration.as_secs()).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        duration: Duration::from_secs(12),
        renew_deadline: Duration::from_secs(8),
        retry_period: Duration::from_secs(2),
    };

    fn elector(identity: &str) -> Elector {
        Elector::new(identity.to_owned(), TIMING)
    }

    fn wall(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn holder(lease: &Lease) -> &str {
        let spec = lease.spec.as_ref().unwrap();
        spec.holder_identity.as_deref().unwrap()
    }

    fn check_held(verdict: Verdict, by: &str, by_until: Instant) {
        let Verdict::Held { holder, until, .. } = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!((holder.as_str(), until), (by, by_until));
    }

    #[test]
    fn an_absent_lease_is_free_unless_it_was_just_held() {
        let now = Instant::now();
        let mut b = elector("b");
        assert_eq!(b.judge(None, now), Verdict::Free);
        let of_a = elector("a").claim(Lease::default(), wall(0));
        check_held(b.judge(Some(&of_a), now), "a", after(now, 12));
        check_held(b.judge(None, after(now, 3)), "a", after(now, 12));
        assert_eq!(b.judge(None, after(now, 12)), Verdict::Free);
    }

    #[test]
    fn expiry_counts_from_an_observed_change_at_any_clock_offset() {
        let now = Instant::now();
        for apart in [-300, 300] {
            let (a, mut b) = (elector("a"), elector("b"));
            let first = a.claim(Lease::default(), wall(apart));
            check_held(b.judge(Some(&first), now), "a", after(now, 12));
            check_held(b.judge(Some(&first), after(now, 11)), "a", after(now, 12));
            let renewed = a.claim(first, wall(apart + 2));
            let seen = after(now, 11);
            check_held(b.judge(Some(&renewed), seen), "a", after(seen, 12));
            assert_eq!(b.judge(Some(&renewed), after(seen, 12)), Verdict::Free);
        }
    }

    #[test]
    fn a_renewal_is_seen_though_the_holders_clock_goes_back() {
        let now = Instant::now();
        let (a, mut b) = (elector("a"), elector("b"));
        let mut lease = a.claim(Lease::default(), wall(0));
        b.judge(Some(&lease), now);
        for (step, second) in [(5, 0), (10, -50), (15, -50)] {
            lease = a.claim(lease, wall(second));
            let seen = after(now, step);
            check_held(b.judge(Some(&lease), seen), "a", after(seen, 12));
        }
    }

    #[test]
    fn a_holder_that_asks_for_more_patience_gets_it() {
        let now = Instant::now();
        let long = Timing {
            duration: Duration::from_secs(60),
            ..TIMING
        };
        let lease = Elector::new("a".to_owned(), long).claim(Lease::default(), wall(0));
        let mut b = elector("b");
        check_held(b.judge(Some(&lease), now), "a", after(now, 60));
        let short = Timing {
            duration: Duration::from_secs(3),
            ..TIMING
        };
        let lease = Elector::new("a".to_owned(), short).claim(Lease::default(), wall(0));
        let mut b = elector("b");
        check_held(b.judge(Some(&lease), now), "a", after(now, 12));
    }

    #[test]
    fn somebody_elses_label_on_the_lease_is_no_renewal() {
        let now = Instant::now();
        let mut b = elector("b");
        let mut lease = elector("a").claim(Lease::default(), wall(0));
        b.judge(Some(&lease), now);
        lease.metadata.resource_version = Some("99".to_owned());
        lease.metadata.labels = Some([("team".to_owned(), "x".to_owned())].into());
        check_held(b.judge(Some(&lease), after(now, 5)), "a", after(now, 12));
        let taken = b.claim(lease, wall(13));
        assert_eq!(taken.metadata.labels.unwrap()["team"], "x");
        assert_eq!(taken.metadata.resource_version.as_deref(), Some("99"));
    }

    #[test]
    fn a_released_lease_is_free_at_once_and_counts_transitions() {
        let now = Instant::now();
        let (mut a, mut b) = (elector("a"), elector("b"));
        let lease = a.claim(Lease::default(), wall(0));
        assert_eq!(a.judge(Some(&lease), now), Verdict::Mine);
        let released = a.released(lease, wall(1));
        assert_eq!(b.judge(Some(&released), now), Verdict::Free);
        let taken = b.claim(released, wall(-300));
        assert_eq!(holder(&taken), "b");
        let spec = taken.spec.clone().unwrap();
        assert_eq!(spec.lease_transitions, Some(1));
        assert_eq!(spec.acquire_time, spec.renew_time);
        assert!(matches!(a.judge(Some(&taken), now), Verdict::Held { .. }));
        let again = b.claim(taken, wall(9)).spec.unwrap();
        assert_eq!(again.lease_transitions, Some(1));
        assert_eq!(again.acquire_time, spec.acquire_time);
    }

    #[test]
    fn the_next_process_of_the_same_pod_is_another_replica() {
        let now = Instant::now();
        let lease = elector("shed-0_1").claim(Lease::default(), wall(0));
        let mut next = elector("shed-0_2");
        check_held(next.judge(Some(&lease), now), "shed-0_1", after(now, 12));
    }
}
