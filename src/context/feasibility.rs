//! The verdict on whether the deadline can be kept (`DeadlineFeasible`), and when to publish a new
//! one. Pure.

use shed_core::plan::Feasibility;
use shed_core::time::{Instant, Span};

use crate::api::{self, DeadlineJobStatus, Ledger, reason};
use crate::clock;

/// The deadline of one specification is weighed this often at most: it takes a search.
const PERIOD: Span = Span::from_seconds(10);
/// A verdict turns to false only when PoCD is below the target by more than this.
const MARGIN: f64 = 0.02;
/// A verdict that stands gets new figures when PoCD has moved by this.
const POCD_STEP: f64 = 0.05;
/// or the earliest deadline by this share of the time until then,
const EARLIEST_STEP: f64 = 0.1;
/// and by this.
const EARLIEST_STEP_MIN: Span = Span::from_seconds(30);

/// Whether the deadline can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Feasible,
    TooEarly,
    /// No node could hold an attempt.
    NoCapacity,
    /// Nothing is known yet of how long tasks take.
    TimesUnknown,
    /// The clock of the deadline has not started.
    NoDeadline,
}

/// The last published verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedFeasibility {
    /// The specification that it is about.
    pub generation: i64,
    figures: Feasibility,
    verdict: Verdict,
    /// When.
    at: Instant,
}

/// Whether the planner must evaluate the job's deadline: while no attempt was launched, and later
/// until this specification has a verdict. No deadline helps a task that failed for good.
pub fn is_asked(
    status: Option<&DeadlineJobStatus>,
    generation: i64,
    ledger: &Ledger,
    weighed: Option<(Instant, i64)>,
    ticks: Instant,
) -> bool {
    let is_recent = |(at, of): (Instant, i64)| of == generation && ticks.since(at) < PERIOD;
    let is_decided = ledger.ending.is_some() || !ledger.failed.is_empty();
    if is_decided || weighed.is_some_and(is_recent) {
        return false;
    }
    let mut conditions = status.iter().flat_map(|status| &status.conditions);
    let is_said = conditions.any(|condition| {
        condition.type_ == api::DEADLINE_FEASIBLE
            && condition.status != "Unknown"
            && condition.observed_generation == Some(generation)
    });
    ledger.started.is_none() || !is_said
}

impl ReportedFeasibility {
    /// The verdict to publish now. It is `before` unless that is about another specification, the
    /// verdict turned, or its figures moved far enough.
    pub fn after(
        before: Option<&Self>,
        figures: &Feasibility,
        generation: i64,
        now: Instant,
    ) -> Self {
        let before = before.filter(|before| before.generation == generation);
        let verdict = Verdict::of(figures, before.map(|before| before.verdict));
        match before {
            Some(before) if before.verdict == verdict && !before.has_moved(figures) => {
                before.clone()
            }
            _ => Self {
                generation,
                figures: *figures,
                verdict,
                at: now,
            },
        }
    }

    fn has_moved(&self, to: &Feasibility) -> bool {
        let pocd = match (self.figures.pocd, to.pocd) {
            (Some(before), Some(now)) => (now - before).abs() >= POCD_STEP,
            (before, now) => before.is_some() != now.is_some(),
        };
        let earliest = match (self.figures.earliest, to.earliest) {
            (Some(before), Some(now)) => {
                let ahead = before.since(self.at).seconds() * EARLIEST_STEP;
                let step = Span::from_seconds_f64(ahead).max(EARLIEST_STEP_MIN);
                Span(now.since(before).0.abs()) >= step
            }
            (before, now) => before.is_some() != now.is_some(),
        };
        pocd || earliest
    }

    /// The reason of the condition, and the details of this job.
    pub fn words(&self) -> (&'static str, String) {
        let target = self.figures.target;
        let here = || {
            // Rounded down, so that a PoCD below the target never reads as the target.
            let pocd = (self.figures.pocd.unwrap_or(0.0) * 1000.0).floor() / 1000.0;
            let width = self.figures.width;
            let earliest = self.earliest();
            format!("with {width} slots PoCD is {pocd:.3}, and the target is {target}; {earliest}")
        };
        match self.verdict {
            Verdict::Feasible => (reason::TARGET_REACHABLE, here()),
            Verdict::TooEarly => (reason::DEADLINE_INFEASIBLE, here()),
            Verdict::NoCapacity => (reason::INSUFFICIENT_CAPACITY, String::new()),
            Verdict::TimesUnknown => (reason::DURATIONS_UNKNOWN, api::LABEL_CLASS.to_owned()),
            Verdict::NoDeadline => (reason::CLOCK_NOT_STARTED, self.earliest()),
        }
    }

    fn earliest(&self) -> String {
        let target = self.figures.target;
        let Some(earliest) = self.figures.earliest else {
            return format!("no deadline within a year reaches {target}");
        };
        let up = Instant(earliest.0.saturating_add(999));
        let at = clock::rfc3339(up);
        format!("the earliest deadline that reaches {target} is {at}")
    }
}

impl Verdict {
    fn of(figures: &Feasibility, before: Option<Self>) -> Self {
        let margin = match before {
            Some(Self::Feasible) => MARGIN,
            _ => 0.0,
        };
        match figures.pocd {
            _ if !figures.is_known => Self::TimesUnknown,
            _ if figures.width == 0 => Self::NoCapacity,
            None => Self::NoDeadline,
            Some(pocd) if pocd >= figures.target - margin => Self::Feasible,
            Some(_) => Self::TooEarly,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use shed_core::ids::TaskIndex;
    use shed_core::index_set::IndexSet;
    use shed_core::snapshot::Conclusion;

    use super::*;

    fn figures(pocd: f64) -> Feasibility {
        Feasibility {
            pocd: Some(pocd),
            target: 0.95,
            earliest: Some(Instant(1_000_000)),
            is_known: true,
            width: 40,
        }
    }

    fn reported(figures: &Feasibility) -> ReportedFeasibility {
        ReportedFeasibility::after(None, figures, 1, Instant(0))
    }

    #[test]
    fn both_figures_are_reported_and_never_rounded_up() {
        let (reason, message) = reported(&figures(0.9499)).words();
        assert_eq!(reason, "DeadlineInfeasible");
        assert_eq!(
            message,
            "with 40 slots PoCD is 0.949, and the target is 0.95; the earliest deadline \
             that reaches 0.95 is 1970-01-01T00:16:40Z"
        );
        assert_eq!(reported(&figures(0.95)).words().0, "TargetReachable");
    }

    #[test]
    fn what_can_not_be_said_says_why() {
        let of = |change: fn(&mut Feasibility)| {
            let mut figures = figures(0.5);
            change(&mut figures);
            reported(&figures).words().0
        };
        assert_eq!(of(|f| f.is_known = false), "DurationsUnknown");
        assert_eq!(of(|f| f.pocd = None), "ClockNotStarted");
        assert_eq!(of(|f| f.width = 0), "InsufficientCapacity");
        let mut never = figures(0.5);
        never.earliest = None;
        assert!(
            reported(&never)
                .words()
                .1
                .contains("no deadline within a year")
        );
    }

    #[test]
    fn a_verdict_does_not_flap_and_small_moves_are_not_reported() {
        let first = reported(&figures(0.96));
        let after = |figures: &Feasibility| {
            ReportedFeasibility::after(Some(&first), figures, 1, Instant(60_000))
        };
        // Below the target, but not by much: nothing new.
        assert_eq!(after(&figures(0.94)), first);
        assert_eq!(after(&figures(0.92)).words().0, "DeadlineInfeasible");
        // It takes the target itself to turn back.
        let turned = after(&figures(0.92));
        let back =
            |pocd| ReportedFeasibility::after(Some(&turned), &figures(pocd), 1, Instant(90_000));
        assert_eq!(back(0.945), turned);
        assert_eq!(back(0.95).words().0, "TargetReachable");
        let mut later = figures(0.96);
        later.earliest = Some(Instant(1_000_000 + 99_000));
        assert_eq!(after(&later), first);
        later.earliest = Some(Instant(1_000_000 + 100_000));
        assert_ne!(after(&later), first);
    }

    #[test]
    fn feasibility_is_asked_until_attempts_run_and_it_is_reported() {
        let (mut ledger, now) = (Ledger::default(), Instant(100_000));
        let recently = Some((Instant(95_000), 1));
        assert!(is_asked(None, 1, &ledger, None, now));
        assert!(!is_asked(None, 1, &ledger, recently, now));
        assert!(is_asked(None, 2, &ledger, recently, now));
        let mut status = DeadlineJobStatus::default();
        let mut condition = Condition {
            type_: api::DEADLINE_FEASIBLE.to_owned(),
            status: "Unknown".to_owned(),
            reason: String::new(),
            message: String::new(),
            observed_generation: Some(1),
            last_transition_time: clock::time(now),
        };
        status.conditions = vec![condition.clone()];
        ledger.started = Some(now);
        assert!(is_asked(Some(&status), 1, &ledger, None, now));
        condition.status = "False".to_owned();
        status.conditions = vec![condition];
        assert!(!is_asked(Some(&status), 1, &ledger, None, now));
        assert!(is_asked(Some(&status), 2, &ledger, None, now));
        ledger.failed.insert(TaskIndex(1));
        assert!(!is_asked(Some(&status), 2, &ledger, None, now));
        ledger.failed = IndexSet::new();
        ledger.ending = Some(Conclusion::Complete);
        assert!(!is_asked(Some(&status), 2, &ledger, None, now));
    }

    #[test]
    fn another_specification_is_reported_anew() {
        let first = reported(&figures(0.96));
        let next = ReportedFeasibility::after(Some(&first), &figures(0.94), 2, Instant(0));
        assert_eq!((next.generation, next.words().0), (2, "DeadlineInfeasible"));
    }
}
