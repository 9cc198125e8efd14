//! The latest time at which a pass must examine a group, between exact passes (see `exact`), updated at each event of
//! the group. It also has the time of the next pass that the jobs request.

use std::collections::BTreeSet;

use shed_core::decide::shed_plus_lookahead::{Runner, Usual};
use shed_core::ids::TaskIndex;
use shed_core::policy::{ShedPlus, Turn};
use shed_core::snapshot::JobPhase;
use shed_core::time::{Instant, Span};

use super::attempt::{Attempt, ReportTimes};
use super::group::ENDED_RUNS_MAX;
use super::{Engine, Scope};

/// As in the core: the time until jobs that were cut short are examined again.
const CUT_SHORT_LOOK: Span = Span::from_seconds(1);

/// Sums of progress differ from the core's in their last digits.
const ROUNDING: f64 = 1e-6;

/// The requests of all jobs to the planner.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// When to examine a group.
    pub(super) watches: BTreeSet<(Instant, u32)>,
    /// When the optimizer is due for a group, computed with the reference's t_avg.
    pub(super) dues: BTreeSet<(Instant, u32)>,
    /// Groups that wait for their first run, by the time they have.
    pub(super) awaiting: BTreeSet<(Span, u32)>,
    pub(super) deadlines: BTreeSet<(Instant, u32)>,
    /// Tasks that wait for a retry.
    pub(super) retries: BTreeSet<(Instant, u32, u32)>,
    /// The t_avg that `dues` were computed with, and its allowed deviation.
    pub(super) overhead: (Span, Span),
    pub(super) is_cut_short: bool,
}

/// The data of a group between two examinations.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    /// The time filed in the agenda.
    pub(super) watch: Option<Instant>,
    pub(super) due: Option<Instant>,
    pub(super) awaits: Option<Span>,
    /// Whether the optimizer's last run changed nothing.
    pub(super) was_idle: bool,
    pub(super) has_new_straggler: bool,
    /// That holds while the attempt of this task runs.
    pub(super) stays_late: Option<TaskIndex>,
    /// Whether a task has reported for the first time since that run.
    pub(super) has_news: bool,
    /// The bounds of the times at the last examination, while they hold.
    pub(super) usual: Option<Usual>,
    /// No task that has reported is late before this time.
    pub(super) late_from: Option<Instant>,
    /// Whether every pass must examine the group.
    pub(super) is_unclear: bool,
    /// An upper bound of the progress at `bound_at`, in tasks, and of its increase per millisecond.
    pub(super) bound: f64,
    pub(super) bound_at: Instant,
    pub(super) rate: f64,
}

impl Outlook {
    pub(super) fn add_progress(&mut self, now: Instant, progress: f64, rate: f64) {
        self.bound += self.rate * now.since(self.bound_at).0 as f64 + progress;
        self.bound_at = now;
        self.rate = (self.rate + rate).max(0.0);
    }

    /// When progress may reach `goal`, in tasks.
    pub(super) fn reaches(&self, goal: f64) -> Option<Instant> {
        let missing = goal - ROUNDING - self.bound;
        if missing <= 0.0 {
            return Some(self.bound_at);
        }
        let wait = missing / self.rate * (1.0 - ROUNDING);
        // Far beyond any run.
        (wait < 1e15).then(|| self.bound_at.plus(Span(wait as i64)))
    }
}

impl Engine<'_> {
    pub(super) fn is_exact(&self) -> bool {
        self.planner.scope == Scope::Exact
    }

    pub(super) fn overhead(&self, plus: &ShedPlus) -> Span {
        let count = self.planner.overhead_count;
        let measured = (count > 0).then(|| Span(self.planner.overhead_total / count.max(1)));
        measured.unwrap_or(plus.launch_overhead).max(Span(0))
    }

    /// The facts that determine when the optimizer runs for the group; absent while it cannot run.
    pub(super) fn turn(&self, id: u32) -> Option<Turn> {
        let group = &self.groups[id as usize];
        let facts = group.facts.as_ref()?;
        let deadline = facts.deadline?;
        let can_gain = deadline > self.now || group.live_clones > 0;
        let may_run = facts.phase == JobPhase::Active && group.live > 0;
        (may_run && can_gain).then_some(Turn {
            submitted: facts.submitted,
            deadline,
            reports_progress: facts.reports_progress,
            last: group.last_optimized,
            was_idle: group.outlook.was_idle,
            has_reached_xi: false,
            has_new_straggler: group.outlook.has_new_straggler,
        })
    }

    /// Files the group in the agenda.
    pub(super) fn file(&mut self, id: u32) {
        let Some(plus) = self.settings.policy.speculation.as_rule::<ShedPlus>() else {
            return;
        };
        self.unfile(id);
        let Some(turn) = self.turn(id) else {
            return;
        };
        let (reference, band) = self.planner.agenda.overhead;
        let due = plus.due(&turn, self.now, reference.seconds());
        let ends = [reference.0 - band.0, reference.0 + band.0];
        let ends = ends.map(|at| plus.due(&turn, self.now, Span(at.max(0)).seconds()));
        let first = ends.into_iter().fold(due, Instant::min);
        let outlook = &self.groups[id as usize].outlook;
        let mut watch = first.plus(Span(-1));
        if turn.deadline > self.now {
            watch = watch.min(turn.deadline);
        }
        if outlook.is_unclear || (outlook.has_new_straggler && outlook.stays_late.is_none()) {
            watch = self.now;
        }
        let by_itself = if turn.awaits_progress() {
            outlook.reaches(self.goal(id, plus))
        } else if turn.last.is_some() && outlook.has_news {
            match outlook.usual {
                Some(_) => outlook.late_from.filter(|_| !outlook.has_new_straggler),
                None => Some(self.now),
            }
        } else {
            None
        };
        watch = by_itself.map_or(watch, |at| watch.min(at));
        let awaits = turn.awaits_progress();
        let awaits = awaits.then(|| turn.deadline.since(turn.submitted));
        let outlook = &mut self.groups[id as usize].outlook;
        (outlook.watch, outlook.due, outlook.awaits) = (Some(watch), Some(due), awaits);
        let agenda = &mut self.planner.agenda;
        agenda.watches.insert((watch, id));
        agenda.dues.insert((due, id));
        agenda.awaiting.extend(awaits.map(|limit| (limit, id)));
    }

    /// ξ of the group's tasks.
    pub(super) fn goal(&self, id: u32, plus: &ShedPlus) -> f64 {
        let facts = self.groups[id as usize].facts.as_ref();
        facts.map_or(0.0, |facts| plus.xi * f64::from(facts.rules.completions))
    }

    pub(super) fn unfile(&mut self, id: u32) {
        let outlook = &mut self.groups[id as usize].outlook;
        let agenda = &mut self.planner.agenda;
        if let Some(at) = outlook.watch.take() {
            agenda.watches.remove(&(at, id));
        }
        if let Some(at) = outlook.due.take() {
            agenda.dues.remove(&(at, id));
        }
        if let Some(limit) = outlook.awaits.take() {
            agenda.awaiting.remove(&(limit, id));
        }
    }

    /// A pass must examine the group at `at`, or before.
    pub(super) fn watch_from(&mut self, id: u32, at: Instant) {
        let outlook = &mut self.groups[id as usize].outlook;
        if let Some(filed) = outlook.watch.filter(|&filed| at < filed) {
            outlook.watch = Some(at);
            self.planner.agenda.watches.remove(&(filed, id));
            self.planner.agenda.watches.insert((at, id));
        }
    }

    /// An attempt has reported for the first time.
    pub(super) fn note_report(&mut self, slot: u32) {
        let Some(plus) = self.settings.policy.speculation.as_rule::<ShedPlus>() else {
            return;
        };
        let now = self.now;
        let attempt = self.attempts.get(slot);
        let (id, progress, rate) = (attempt.group, attempt.progress(now), attempt.rate());
        let runner = attempt.runner(now);
        let is_unclear = progress <= attempt.start_progress;
        let goal = self.goal(id, plus);
        let group = &mut self.groups[id as usize];
        let outlook = &mut group.outlook;
        outlook.is_unclear |= is_unclear;
        let Some(last) = group.last_optimized else {
            outlook.add_progress(now, progress, rate);
            let at = if is_unclear {
                Some(now)
            } else {
                outlook.reaches(goal)
            };
            self.watch_from(id, at.unwrap_or(Instant(i64::MAX)));
            return;
        };
        if now <= last {
            return;
        }
        outlook.has_news = true;
        let holds = outlook
            .usual
            .as_mut()
            .is_some_and(|usual| usual.outlives(1));
        if !holds {
            outlook.usual = None;
        } else if outlook.stays_late.is_some() {
            return;
        }
        let deadline = group.facts.as_ref().and_then(|facts| facts.deadline);
        let from = match (outlook.usual, runner, deadline) {
            (Some(usual), Some(runner), Some(deadline)) if !is_unclear => {
                let slack = deadline.since(now).seconds();
                let from = usual.late_from(runner, slack, plus.rate_prior());
                from.map(|seconds| now.plus(Span((seconds * 1000.0) as i64)))
            }
            _ => Some(now),
        };
        if let Some(from) = from {
            let outlook = &mut group.outlook;
            outlook.late_from = Some(outlook.late_from.map_or(from, |at| at.min(from)));
            self.watch_from(id, from);
        }
    }

    /// An attempt has ended, or is being stopped.
    pub(super) fn note_times(&mut self, id: u32, changes: usize) {
        let outlook = &mut self.groups[id as usize].outlook;
        let holds = outlook
            .usual
            .as_mut()
            .is_none_or(|usual| usual.outlives(changes));
        if !holds {
            outlook.usual = None;
            if outlook.has_news {
                self.watch_from(id, self.now);
            }
        }
    }

    /// An attempt has ended.
    pub(super) fn note_end(&mut self, slot: u32, is_success: bool, was_killed: bool) {
        let Some(plus) = self.settings.policy.speculation.as_rule::<ShedPlus>() else {
            return;
        };
        let now = self.now;
        let attempt = self.attempts.get(slot);
        let (id, task) = (attempt.group, TaskIndex(attempt.task));
        let goal = self.goal(id, plus);
        let group = &mut self.groups[id as usize];
        let first = attempt.first_report_at(group.reports);
        let has_reported = first <= now && first < attempt.end().0;
        if has_reported {
            group.outlook.add_progress(now, 0.0, -attempt.rate());
        } else if is_success {
            group.outlook.add_progress(now, 1.0, 0.0);
        }
        let forgets = group
            .facts
            .as_ref()
            .is_some_and(|facts| facts.ended_runs.len() >= ENDED_RUNS_MAX);
        if group.last_optimized.is_none() {
            let at = group.outlook.reaches(goal);
            self.watch_from(id, at.unwrap_or(Instant(i64::MAX)));
        }
        // The winner's time is the predicted one; an older time may be dropped for it.
        let changes = match (is_success, was_killed) {
            (true, _) => usize::from(!has_reported) + usize::from(forgets),
            (false, true) => 0,
            (false, false) => 1,
        };
        self.note_times(id, changes);
        self.note_gone(id, task);
    }

    /// The task's attempt no longer runs.
    pub(super) fn note_gone(&mut self, id: u32, task: TaskIndex) {
        if self.groups[id as usize].outlook.stays_late == Some(task) {
            self.groups[id as usize].outlook.stays_late = None;
            self.watch_from(id, self.now);
        }
    }

    /// A task has one attempt again, which may have reported since the last run.
    pub(super) fn note_single(&mut self, id: u32) {
        let outlook = &mut self.groups[id as usize].outlook;
        outlook.has_news = true;
        outlook.usual = None;
        self.watch_from(id, self.now);
    }

    /// Whether a trigger between events may have occurred.
    pub(super) fn needs_look(&self, id: u32, turn: &Turn, plus: &ShedPlus) -> bool {
        let outlook = &self.groups[id as usize].outlook;
        let comes = |at: Option<Instant>| at.is_some_and(|at| at <= self.now);
        if outlook.is_unclear {
            true
        } else if turn.awaits_progress() {
            comes(outlook.reaches(self.goal(id, plus)))
        } else if turn.last.is_none() || !outlook.has_news {
            false
        } else if outlook.usual.is_none() {
            true
        } else if outlook.has_new_straggler {
            outlook.stays_late.is_none() || comes(outlook.due)
        } else {
            comes(outlook.late_from)
        }
    }

    /// Sums the group's progress again.
    pub(super) fn bound_progress(&mut self, id: u32) {
        let (now, group) = (self.now, &self.groups[id as usize]);
        let Some(facts) = &group.facts else {
            return;
        };
        let (mut bound, mut rate) = (f64::from(facts.done.len()), 0.0);
        for &slot in group.truths.iter().flat_map(|truth| &truth.slots) {
            let attempt = self.attempts.get(slot);
            let has_reported =
                attempt.started.is_some() && now >= attempt.first_report_at(group.reports);
            if has_reported && !attempt.ended {
                bound += attempt.progress(now);
                rate += attempt.rate();
            }
        }
        let outlook = &mut self.groups[id as usize].outlook;
        (outlook.bound, outlook.rate, outlook.bound_at) = (bound, rate, now);
    }

    /// The next pass that the jobs request after this one.
    pub(super) fn next_wanted(&self, plus: &ShedPlus) -> Option<Instant> {
        let (now, agenda) = (self.now, &self.planner.agenda);
        let overhead = self.overhead(plus).seconds();
        let after_now = (now.plus(Span(1)), 0);
        let deadline = agenda.deadlines.range(after_now..).next();
        let retry = agenda.retries.range((after_now.0, 0, 0)..).next();
        let cut_short = agenda.is_cut_short.then(|| now.plus(CUT_SHORT_LOOK));
        let fixed = [deadline.map(|at| at.0), retry.map(|at| at.0), cut_short];
        let mut best = fixed.into_iter().flatten().min();
        // Progress causes no event, so a job that is below ξ is checked every θ.
        let soonest = agenda.awaiting.first().and_then(|&(_, id)| self.turn(id));
        let soonest = soonest.map(|turn| now.plus(plus.theta(&turn, overhead)));
        best = best.into_iter().chain(soonest).min();
        let margin = agenda.overhead.1.0 + 2;
        for &(filed, id) in &agenda.dues {
            if best.is_some_and(|best| filed.plus(Span(-margin)) > best) {
                break;
            }
            let due = self.turn(id).map(|turn| plus.due(&turn, now, overhead));
            best = best.into_iter().chain(due.filter(|&due| due > now)).min();
        }
        best
    }
}

impl Attempt {
    /// The share of its task that the attempt does in a millisecond.
    pub(super) fn rate(&self) -> f64 {
        let (at, begin) = self.base();
        let length = self.completes().since(at).0;
        (1.0 - begin) / (length.max(1)) as f64
    }

    pub(super) fn first_report_at(&self, times: Option<ReportTimes>) -> Instant {
        let first = self
            .started
            .zip(times)
            .map(|(at, times)| at.plus(times.first));
        first.unwrap_or(Instant(i64::MAX))
    }

    /// The attempt according to its reports, if they are exact.
    pub(super) fn runner(&self, now: Instant) -> Option<Runner> {
        let started = self.started?;
        let length = self.completes().since(started).seconds();
        let part = 1.0 - self.start_progress;
        Some(Runner {
            total: length / part,
            remaining: self.completes().since(now).seconds(),
            own: self.progress(now) - self.start_progress,
            age: now.since(started).seconds(),
        })
    }
}
