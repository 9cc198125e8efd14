//! The obstacle of tasks that wait for an attempt for longer than [`REPORTED_AFTER`]. Obstacles to
//! creating or starting attempts have their own condition, and so has a suspension.

use shed_core::plan::JobReport;
use shed_core::snapshot::JobSnapshot;
use shed_core::time::{Instant, Span};

use crate::api::{Ledger, reason};
use crate::bounds::Bounds;
use crate::clock::{self, Clock};
use crate::job::facts;

/// Shorter waits are not reported, because each report would cause two writes.
pub const REPORTED_AFTER: Span = Span::from_seconds(10);

/// The report about waiting tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PendingTasks {
    /// No task waits.
    #[default]
    No,
    /// No report: they have not waited for long, or the obstacle is unknown.
    Yet,
    /// They wait.
    Reported {
        /// A reason of `TasksPending`.
        reason: &'static str,
        /// Details of the obstacle.
        detail: String,
        /// Since when, by the apiserver's clock.
        since: Instant,
    },
}

/// What is known about a job whose tasks may wait.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The ledger.
    pub ledger: &'a Ledger,
    /// The facts of the pass.
    pub facts: &'a JobSnapshot,
    /// The planner's last report about the job.
    pub report: Option<&'a JobReport>,
    /// How much its object may hold.
    pub bounds: &'a Bounds,
    /// The obstacles that its namespace has.
    pub namespace: NamespaceObstacles,
    /// The scheduling gate that holds back an attempt.
    pub gate: Option<&'a str>,
}

/// Why jobs of a namespace may wait though capacity is free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamespaceObstacles {
    /// The limit of active jobs, if the job waits for one of these places.
    pub awaits_place_of: Option<u32>,
    /// Other namespaces hold a part of its share.
    pub is_share_lent: bool,
}

/// The current obstacle, by the process's own clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The obstacle of the tasks, and since when they wait.
    since: Option<(&'static str, Instant)>,
    /// When the operator reports it.
    pub look_at: Option<Instant>,
}

impl PendingTasks {
    /// The report to publish. Updates the memory for the next call.
    pub fn of(
        input: Input<'_>,
        remembered: &mut Remembered,
        clock: &Clock,
        ticks: Instant,
    ) -> Self {
        let Remembered { since: before, .. } = std::mem::take(remembered);
        let now = clock.at(ticks);
        if !any_waits(input, now) {
            return Self::No;
        }
        let Some((reason, detail)) = found(input, now) else {
            remembered.look_at = Some(ticks.plus(REPORTED_AFTER));
            return Self::Yet;
        };
        let before = before.filter(|(before, _)| *before == reason);
        let began = before.map_or(ticks, |(_, began)| began);
        remembered.since = Some((reason, began));
        if ticks.since(began) < REPORTED_AFTER {
            remembered.look_at = Some(began.plus(REPORTED_AFTER));
            return Self::Yet;
        }
        Self::Reported {
            reason,
            detail,
            since: clock.at(began),
        }
    }
}

/// The reason of `TasksPending` for the tasks that wait now, however long they have waited.
pub fn obstacle(input: Input<'_>, now: Instant) -> Option<&'static str> {
    let found = any_waits(input, now).then(|| found(input, now));
    found.flatten().map(|(reason, _)| reason)
}

/// Whether tasks wait for an attempt, or for one that a gate holds back, and no other condition explains that.
fn any_waits(input: Input<'_>, now: Instant) -> bool {
    let Input { ledger, facts, .. } = input;
    let held_off =
        facts.launch_not_before.is_some_and(|until| until > now) || has_other_condition(facts);
    let is_open = ledger.ending.is_none() && !facts.rules.suspend && !held_off;
    is_open && (input.gate.is_some() || facts::idle_tasks(ledger, facts) > 0)
}

/// Whether `AttemptsBlocked` explains that nothing is launched: attempts cannot be created or
/// placed.
fn has_other_condition(facts: &JobSnapshot) -> bool {
    let mut attempts = facts.tasks.iter().flat_map(|task| &task.attempts);
    let (no_node, most) = (facts.obstacles.no_node, facts.obstacles.attempts_max);
    no_node || most.is_some() || attempts.any(|attempt| attempt.unplaceable && attempt.lives())
}

/// Who holds the share of the namespace.
fn share(is_lent: bool) -> &'static str {
    match is_lent {
        true => "other namespaces hold a part of this one's share until their attempts finish",
        false => "attempts of this one use its share",
    }
}

fn found(input: Input<'_>, now: Instant) -> Option<(&'static str, String)> {
    let Input {
        ledger,
        facts,
        bounds,
        namespace,
        ..
    } = input;
    let of_capacity = |report: &JobReport| {
        let waits = report.waiting > 0;
        waits.then(|| match report.waiting_for_share {
            1.. => (
                reason::SHARE_IN_USE,
                share(namespace.is_share_lent).to_owned(),
            ),
            0 => (reason::INSUFFICIENT_CAPACITY, String::new()),
        })
    };
    let idle = || ledger.tasks.values().filter(|task| !task.lives());
    let retries = idle().filter_map(|task| task.retry_not_before);
    let retry = retries.filter(|&at| at > now).min();
    let is_ending = || idle().any(|task| !task.attempts.is_empty() && task.winner.is_none());
    if let Some(limit) = namespace.awaits_place_of {
        Some((reason::ACTIVE_JOBS_LIMIT, limit.to_string()))
    } else if let Some(gate) = input.gate {
        Some((reason::WAITING_IN_QUEUE, gate.to_owned()))
    } else if facts::running_tasks(ledger) >= facts.rules.parallelism as usize {
        Some((reason::PARALLELISM_REACHED, String::new()))
    } else if bounds.further(ledger) == 0 {
        Some((
            reason::OBJECT_SIZE_LIMIT,
            facts::running_tasks(ledger).to_string(),
        ))
    } else if let Some(found) = input.report.and_then(of_capacity) {
        Some(found)
    } else if let Some(at) = retry {
        Some((reason::BACK_OFF, clock::rfc3339(at)))
    } else if facts.rules.waits_until_gone() && is_ending() {
        Some((reason::ATTEMPT_TERMINATING, String::new()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use shed_core::fixtures;
    use shed_core::ids::{AttemptNumber, TaskIndex};
    use shed_core::plan::Outcome;
    use shed_core::snapshot::{AttemptKind, Idempotency, KillKind};

    use super::*;
    use crate::api::RetryRule;

    struct World {
        ledger: Ledger,
        facts: JobSnapshot,
        report: Option<JobReport>,
        namespace: NamespaceObstacles,
        gate: Option<&'static str>,
        remembered: Remembered,
        clock: std::sync::Arc<Clock>,
    }

    impl World {
        /// A job of three tasks; this number of them run.
        fn new(running: u32) -> Self {
            let clock = Clock::for_tests();
            let mut ledger = Ledger::default();
            for task in 0..running {
                let launch = shed_core::fixtures::launch(task, AttemptKind::Original);
                ledger.launch(&launch, clock.now());
            }
            Self {
                ledger,
                facts: fixtures::job("a").tasks(3).parallelism(3).build(),
                report: None,
                namespace: NamespaceObstacles::default(),
                gate: None,
                remembered: Remembered::default(),
                clock,
            }
        }

        fn reports(mut self, waiting: u32) -> Self {
            self.report = Some(JobReport {
                waiting,
                ..crate::fixtures::report("a")
            });
            self
        }

        fn look(&mut self) -> PendingTasks {
            let input = Input {
                ledger: &self.ledger,
                facts: &self.facts,
                report: self.report.as_ref(),
                bounds: &Bounds::default(),
                namespace: self.namespace,
                gate: self.gate,
            };
            let ticks = self.clock.ticks();
            PendingTasks::of(input, &mut self.remembered, &self.clock, ticks)
        }

        /// The reason to report after a long wait.
        fn reason(&mut self) -> Option<&'static str> {
            assert_eq!(self.look(), PendingTasks::Yet, "too soon");
            let look_at = self.remembered.look_at.expect("another look");
            let after = look_at.since(self.clock.ticks());
            self.clock.skip_for_tests(after);
            match self.look() {
                PendingTasks::Reported { reason, .. } => Some(reason),
                _ => None,
            }
        }
    }

    #[test]
    fn each_wait_has_its_reason() {
        assert_eq!(World::new(3).look(), PendingTasks::No, "all run");
        let mut unknown = World::new(1);
        assert_eq!(unknown.look(), PendingTasks::Yet);
        assert!(unknown.remembered.look_at.is_some());
        let short = World::new(1).reports(2).reason();
        assert_eq!(short, Some(reason::INSUFFICIENT_CAPACITY));
        let mut shared = World::new(1).reports(2);
        shared.report.as_mut().unwrap().waiting_for_share = 1;
        assert_eq!(shared.reason(), Some(reason::SHARE_IN_USE));
        let mut limited = World::new(0).reports(3);
        limited.namespace.awaits_place_of = Some(2);
        assert_eq!(limited.reason(), Some(reason::ACTIVE_JOBS_LIMIT));
        // All tasks have attempts.
        let mut gated = World::new(3);
        gated.gate = Some("kueue.x-k8s.io/admission");
        assert_eq!(gated.reason(), Some(reason::WAITING_IN_QUEUE));
        let mut narrow = World::new(2).reports(1);
        narrow.facts.rules.parallelism = 2;
        assert_eq!(narrow.reason(), Some(reason::PARALLELISM_REACHED));
        let mut failed = World::new(3).reports(0);
        let (task, number) = (TaskIndex(1), AttemptNumber(0));
        let slow = RetryRule {
            first: Span::from_seconds(60),
            ..RetryRule::PROMPT
        };
        let now = failed.clock.now();
        failed
            .ledger
            .count(task, number, Outcome::Failed, slow, now);
        assert_eq!(failed.reason(), Some(reason::BACK_OFF));
        let mut ending = World::new(3).reports(0);
        ending.facts.rules.idempotency = Idempotency::None;
        ending.ledger.kill(task, number, KillKind::Replace, now);
        assert_eq!(ending.reason(), Some(reason::ATTEMPT_TERMINATING));
    }

    #[test]
    fn each_reason_of_a_wait_is_reported_since_it_began() {
        let mut world = World::new(1).reports(2);
        let began = world.clock.now();
        assert_eq!(world.look(), PendingTasks::Yet);
        world.clock.skip_for_tests(Span::from_seconds(12));
        let PendingTasks::Reported { since, .. } = world.look() else {
            panic!("not reported");
        };
        assert_eq!(world.remembered.look_at, None, "until something happens");
        assert!(since.since(began).0.abs() < 1000, "{since:?} {began:?}");
        let mut shared = world.reports(2);
        shared.report.as_mut().unwrap().waiting_for_share = 1;
        assert_eq!(shared.look(), PendingTasks::Yet);
    }

    #[test]
    fn what_has_a_condition_of_its_own_is_no_wait() {
        let mut suspended = World::new(1).reports(2);
        suspended.facts.rules.suspend = true;
        assert_eq!(suspended.look(), PendingTasks::No);
        let mut blocked = World::new(1).reports(2);
        let until = blocked.clock.now().plus(Span::from_seconds(60));
        blocked.facts.launch_not_before = Some(until);
        assert_eq!(blocked.look(), PendingTasks::No);
        let mut nowhere = World::new(1).reports(2);
        nowhere.facts.obstacles.no_node = true;
        assert_eq!(nowhere.look(), PendingTasks::No);
        let mut over_quota = World::new(1).reports(2);
        over_quota.facts.obstacles.attempts_max = Some(1);
        assert_eq!(over_quota.look(), PendingTasks::No);
        let mut unplaced = World::new(1).reports(2);
        let attempt = fixtures::attempt(0).pending().unplaceable();
        unplaced.facts = fixtures::job("a").tasks(3).task(0, [attempt]).build();
        assert_eq!(unplaced.look(), PendingTasks::No);
    }
}
