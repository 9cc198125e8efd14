//! Carrying out actions: the simulator's replacement for the operator's ledger, the apiserver and the kubelet.

use shed_core::decide::News;
use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::plan::{Kill, Move, Outcome, Settled};
use shed_core::snapshot::{AttemptKind, AttemptState};
use shed_core::time::Span;

use super::group::{covered, keep_best};
use super::{Engine, RunError, Scope};
use crate::event::Event;
use crate::settings::Resuming;

impl Engine<'_> {
    /// Carries out a planned action.
    pub(super) fn carry_out_move(&mut self, group: u32, planned: &Move) {
        match planned {
            Move::Launch(launch) => {
                let code = 1 + launch.kind as u64;
                self.digest(group, code, launch.task, AttemptNumber(0));
                self.launch(group, launch);
            }
            Move::Kill(kill) => self.kill_as_said(group, kill),
        }
    }

    fn kill_as_said(&mut self, group: u32, kill: &Kill) {
        self.digest(group, 10 + kill.kind as u64, kill.task, kill.attempt);
        self.kill(group, kill);
    }

    /// Carries out a settled action.
    pub(super) fn apply(&mut self, group: u32, action: &Settled) {
        self.touch(group, News::Usual);
        self.announce_settled(group, action);
        let of_job = (TaskIndex(0), AttemptNumber(0));
        let (code, (task, attempt)) = match action {
            Settled::Kill(kill) => return self.kill_as_said(group, kill),
            Settled::Win { task, attempt, .. } => (20, (*task, *attempt)),
            Settled::Count {
                task,
                attempt,
                outcome,
            } => (30 + *outcome as u64, (*task, *attempt)),
            Settled::FailTask { task } => (40, (*task, AttemptNumber(0))),
            Settled::End(conclusion) => (50 + *conclusion as u64, of_job),
            Settled::Finish(conclusion) => (60 + *conclusion as u64, of_job),
        };
        self.digest(group, code, task, attempt);
        match action {
            Settled::Kill(_) => {}
            Settled::Win { task, attempt, .. } => self.win(group, *task, *attempt),
            Settled::Count {
                task,
                attempt,
                outcome,
            } => self.count(group, *task, *attempt, *outcome),
            Settled::FailTask { task } => self.fail_task(group, *task),
            Settled::End(conclusion) => self.end_group(group, *conclusion),
            Settled::Finish(_) => self.finish_group(group),
        }
    }

    /// Folds the action into a number that two runs share only if their actions are the same.
    fn digest(&mut self, group: u32, code: u64, task: TaskIndex, attempt: AttemptNumber) {
        let group = &self.groups[group as usize];
        let job = (u64::from(group.job) << 32) | u64::from(group.stage);
        let which = (u64::from(task.0) << 32) | u64::from(attempt.0);
        for part in [self.now.0 as u64, job, code, which] {
            self.totals.add_to_digest(part);
        }
    }

    /// An attempt starts to process.
    pub(super) fn start(&mut self, slot: u32) {
        let now = self.now;
        let name = self.attempts.name(slot);
        let begin = self.begin(slot);
        let attempt = self.attempts.get_mut(slot);
        let speed = attempt.node.map_or(1.0, |node| self.capacity.speed(node));
        attempt.start_progress = begin;
        attempt.start(now, speed);
        let scope = self.planner.scope;
        self.changed |= !matches!(scope, Scope::Steady | Scope::Places);
        let (ends, _) = attempt.end();
        let (id, task, number) = (attempt.group, attempt.task, attempt.number);
        let (launched, position) = (attempt.launched, attempt.position);
        let group = &mut self.groups[id as usize];
        group.look_at(position);
        let first_report = group.reports.map(|times| now.plus(times.first));
        if let Some(facts) = group.attempt_mut(task, number) {
            facts.state = AttemptState::Running;
            facts.started = Some(now);
            facts.start_progress = begin;
        }
        self.touch(id, News::Usual);
        self.queue.put(ends, Event::End(name));
        match first_report {
            Some(at) if at < ends && self.observes() => {
                self.queue.put(at, Event::FirstReport(name));
            }
            Some(_) => {}
            None => {
                self.planner.overhead_total += now.since(launched).0;
                self.planner.overhead_count += 1;
            }
        }
    }

    /// The progress at which an attempt that starts now begins.
    fn begin(&self, slot: u32) -> f64 {
        let attempt = self.attempts.get(slot);
        let begin = attempt.start_progress;
        let group = &self.groups[attempt.group as usize];
        let task = TaskIndex(attempt.task);
        let resumes = self.settings.resuming == Resuming::Latest && !attempt.starts_over;
        if !resumes {
            return begin;
        }
        let (Some(times), Some(at)) = (group.reports, group.position(task)) else {
            return begin;
        };
        let others = group.truths[at]
            .slots
            .iter()
            .filter(|&&other| other != slot);
        let reported = others.filter_map(|&other| {
            let (_, reached) = self.attempts.get(other).reported(self.now, times)?;
            Some(self.checkpoint(other, reached))
        });
        let kept = group.facts.as_ref().and_then(|facts| facts.tasks.get(at));
        let kept = kept
            .and_then(|task| task.resume_point.as_ref())
            .map(|point| point.progress);
        reported.chain(kept).fold(begin, f64::max)
    }

    /// Whether reports have any effect.
    pub(super) fn observes(&self) -> bool {
        use shed_core::policy::Order;
        let policy = &self.settings.policy;
        let by_key = matches!(policy.order, Order::Fifo | Order::EarliestDeadline);
        !policy.speculation.is_none() || !by_key
    }

    fn kill(&mut self, id: u32, kill: &Kill) {
        let now = self.now;
        self.touch(id, News::Usual);
        let group = &mut self.groups[id as usize];
        let Some(at) = group.position(kill.task) else {
            return;
        };
        let Some(entry) = group.facts.as_mut().and_then(|f| f.tasks.get_mut(at)) else {
            return;
        };
        let of_task = entry.attempts.iter().position(|a| a.number == kill.attempt);
        let Some(of_task) = of_task else {
            return;
        };
        let slot = group.truths[at].slots[of_task];
        let facts = &mut entry.attempts[of_task];
        facts.kill = Some(kill.kind);
        facts.killed_at = Some(now);
        self.totals.kills += 1;
        self.attempts.forget_events(slot);
        let name = self.attempts.name(slot);
        let gone_at = now.plus(self.settings.kill_latency);
        self.queue.put(gone_at, Event::Gone(name));
        let lives = self.groups[id as usize].lives(kill.task);
        let ended = self.groups[id as usize].has_ended(kill.task);
        if !lives && !ended {
            self.wait_again(id);
        }
    }

    /// Frees the capacity that an attempt held on a node for `held` milliseconds: now, or some time after an end
    /// without a kill.
    fn leave(&mut self, id: u32, node: u32, held: i64, state: AttemptState) {
        let Some(facts) = &self.groups[id as usize].facts else {
            return;
        };
        let latency = self.settings.release_latency;
        self.totals.machine_ms += held;
        if latency == Span(0) || state == AttemptState::Lost {
            self.capacity.release(node, &facts.demand);
        } else {
            self.totals.machine_ms += latency.0;
            self.leaving.push_back((node, facts.demand.clone()));
            self.queue.put(self.now.plus(latency), Event::Freed);
        }
    }

    /// Frees the capacity of the attempt that ended first.
    pub(super) fn free_next(&mut self) {
        if let Some((node, demand)) = self.leaving.pop_front() {
            self.capacity.release(node, &demand);
            self.changed = true;
            self.place_waiting();
        }
    }

    /// An attempt has ended in that state.
    pub(super) fn ended(&mut self, slot: u32, state: AttemptState) {
        self.attempts.forget_events(slot);
        let now = self.now;
        let failed = !matches!(state, AttemptState::Succeeded { .. });
        let attempt = self.attempts.get_mut(slot);
        attempt.ended = true;
        let reached = attempt.progress(now);
        let begin = attempt.start_progress;
        let (id, task, number) = (attempt.group, attempt.task, attempt.number);
        let node = attempt.node;
        let held = now.since(attempt.placed).0;
        let position = attempt.position;
        let resumes = self.settings.resuming != Resuming::Scratch;
        let times = self.groups[id as usize].reports.filter(|_| resumes);
        let known = times.and_then(|times| self.attempts.get(slot).reported(now, times));
        let checkpoint = known.map(|(_, reached)| self.checkpoint(slot, reached));
        let group = &mut self.groups[id as usize];
        group.look_at(position);
        group.held -= 1;
        self.count_slot(id, false);
        if let Some(node) = node {
            self.leave(id, node, held, state);
        }
        let group = &mut self.groups[id as usize];
        let text = &self.no_checkpoint;
        let mut was_killed = false;
        if let Some((entry, truth)) = group.entry(TaskIndex(task)) {
            if let Some(facts) = entry.attempts.iter_mut().find(|a| a.number.0 == number) {
                facts.state = state;
                was_killed = facts.kill.is_some();
            }
            if let Some(progress) = checkpoint {
                keep_best(&mut entry.resume_point, progress, text);
            }
            if resumes {
                truth.segments.push((begin, reached));
            }
        }
        let group = &self.groups[id as usize];
        if failed
            && !was_killed
            && !group.lives(TaskIndex(task))
            && !group.has_ended(TaskIndex(task))
        {
            self.wait_again(id);
        }
        self.dirty.push((id, task));
        let attention = &self.groups[id as usize].attention;
        let news = match state {
            AttemptState::Succeeded { .. } => attention.of_time(News::Usual),
            _ => News::Usual,
        };
        self.touch(id, news);
        self.changed = true;
        if !self.unplaced.is_empty() {
            self.place_waiting();
        }
    }

    /// The progress at which an attempt that reported `reached` can be resumed.
    pub(super) fn checkpoint(&self, slot: u32, reached: f64) -> f64 {
        let attempt = self.attempts.get(slot);
        match (self.settings.resuming, attempt.started) {
            (Resuming::Offset | Resuming::Latest, Some(_)) => reached,
            (Resuming::Checkpoint(every), Some(started)) if every.0 > 0 => {
                let reported_at = self.groups[attempt.group as usize]
                    .reports
                    .and_then(|times| attempt.reported(self.now, times))
                    .map_or(started, |(progress, _)| progress.last_at);
                let whole = reported_at.since(started).0 / every.0 * every.0;
                attempt.progress(started.plus(Span(whole))).min(reached)
            }
            _ => 0.0,
        }
    }

    fn win(&mut self, id: u32, task: TaskIndex, number: AttemptNumber) {
        let group = &mut self.groups[id as usize];
        let Some((facts, slot)) = group.take(task, number) else {
            return;
        };
        let kill = facts.kill;
        if let Some(snapshot) = &mut group.facts {
            snapshot.done.insert(task);
        }
        if let Some((entry, truth)) = group.entry(task) {
            entry.winner = Some(number);
            entry.retry_not_before = None;
            self.spare.reclaim(entry, truth);
        }
        let attempt = self.attempts.get(slot);
        if let Some(started) = attempt.started {
            let run = self.now.since(started).seconds() / (1.0 - attempt.start_progress);
            group.add_ended_run(Span::from_seconds_f64(run));
        }
        group.fold(task);
        self.record(id, slot, kill, None);
        let attempt = self.attempts.get(slot);
        self.totals.useful_ms += self.now.since(attempt.placed).0;
        self.totals.tasks_done += 1;
        self.totals.clone_wins += u64::from(attempt.kind == AttemptKind::Clone);
        self.attempts.remove(slot);
    }

    fn count(&mut self, id: u32, task: TaskIndex, number: AttemptNumber, outcome: Outcome) {
        let group = &mut self.groups[id as usize];
        let Some((facts, slot)) = group.take(task, number) else {
            return;
        };
        group.add_outcome(task, outcome, self.now);
        group.fold(task);
        self.record(id, slot, facts.kill, Some(outcome));
        self.attempts.remove(slot);
        match outcome {
            Outcome::Failed | Outcome::CloneFailed => self.totals.failures += 1,
            Outcome::Disrupted => self.totals.disruptions += 1,
            Outcome::Superseded | Outcome::Late => {}
        }
    }

    /// A task of the group has lost its last attempt.
    fn wait_again(&mut self, id: u32) {
        self.groups[id as usize].waiting += 1;
        self.planner.retries = true;
        self.touch_place(id, true);
        self.changed = true;
    }

    fn fail_task(&mut self, id: u32, task: TaskIndex) {
        let group = &mut self.groups[id as usize];
        if let Some(facts) = &mut group.facts {
            facts.failed.insert(task);
        }
        group.waiting = group.waiting.saturating_sub(1);
        if let Some((entry, _)) = group.entry(task) {
            entry.retry_not_before = None;
        }
        group.fold(task);
    }

    /// Checks a winner that began with progress: other attempts must have done the part that it skipped.
    pub(super) fn check_coverage(&self, slot: u32) -> Result<(), RunError> {
        let attempt = self.attempts.get(slot);
        let begin = attempt.start_progress;
        if begin <= 0.0 {
            return Ok(());
        }
        let group = &self.groups[attempt.group as usize];
        let Some(at) = group.position(TaskIndex(attempt.task)) else {
            return Ok(());
        };
        let truth = &group.truths[at];
        let others = truth.slots.iter().filter(|&&other| other != slot);
        let live = others.map(|&other| {
            let other = self.attempts.get(other);
            (other.start_progress, other.progress(self.now))
        });
        let covered = covered(truth.segments.iter().copied().chain(live));
        if begin <= covered + 1e-9 {
            return Ok(());
        }
        Err(RunError::Uncovered {
            at: self.seconds(),
            job: self.trace.jobs[group.job as usize].id.to_string(),
            task: attempt.task,
            begin,
            covered,
        })
    }
}
