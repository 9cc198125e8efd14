//! Passes that examine only jobs for which the optimizer would run, with the same result as a pass over every job.
//!
//! Shed+ acts on a job only in a run of the optimizer for it, and each job has a time before which no run comes. Most
//! of it is known in advance: θ after the last run, patience, the deadline. Two triggers occur between events, and
//! the first pass after them notices them: progress reaches ξ, and a task that has just reported turns out late. The
//! simulator knows how long attempts take, so it has a lower bound of the time of both (`Outlook`).
//!
//! A pass examines the jobs whose time has come, one by one with the core's `look`. It calls `decide` on those for
//! which the optimizer runs, with the capacity that the other jobs leave. The times of passes follow from the
//! requests of all jobs (`Agenda`), so that both methods make the same passes.
//!
//! With `check` every pass is also made on every job, and both results must be the same.

use std::collections::BTreeSet;

use shed_core::decide::shed_plus_lookahead::{Look, look};
use shed_core::memory::{JobMemory, Memory};
use shed_core::plan::{Launch, Move, Plan};
use shed_core::policy::{Policy, ShedPlus};
use shed_core::snapshot::{AttemptKind, Snapshot};
use shed_core::time::{Instant, Span};

use super::passes::targets;
use super::room::slots_node;
use super::{Engine, RunError};

impl Engine<'_> {
    /// A pass.
    pub(super) fn exact_pass(&mut self) -> Result<(), RunError> {
        let Some(plus) = self.settings.policy.speculation.as_rule::<ShedPlus>() else {
            return Ok(());
        };
        self.follow_overhead(plus);
        let launches = self.next_launches()?;
        let mut ids = self.due_groups(plus);
        self.add_rivals_beyond(&launches, &mut ids);
        let whole = match self.settings.check {
            true => Some(self.whole_plan()),
            false => None,
        };
        let mut actions = Vec::new();
        let mut clones = Vec::new();
        self.planner.agenda.is_cut_short = false;
        if !ids.is_empty() {
            let (plan, targets) = self.decide_on(&ids, &launches)?;
            for (id, planned) in targets.into_iter().zip(plan.actions) {
                match planned.action {
                    Move::Launch(launch) if launch.kind != AttemptKind::Clone => {}
                    Move::Launch(launch) => clones.push((id, Move::Launch(launch))),
                    action => actions.push((id, action)),
                }
            }
        }
        self.planner.rivals |= !actions.is_empty();
        let launches = launches.into_iter();
        actions.extend(launches.map(|(id, launch)| (id, Move::Launch(launch))));
        actions.extend(clones);
        let next = self.next_wanted(plus);
        if let Some(whole) = whole {
            self.compare(&whole, &actions, next)?;
        }
        self.changed |= !actions.is_empty();
        for (id, action) in &actions {
            self.carry_out_move(*id, action);
        }
        self.next_pass_at(next);
        Ok(())
    }

    /// If t_avg has moved too far, every group is filed again.
    fn follow_overhead(&mut self, plus: &ShedPlus) {
        let current = self.overhead(plus);
        let (reference, band) = self.planner.agenda.overhead;
        if band > Span(0) && (current.0 - reference.0).abs() < band.0 {
            return;
        }
        let band = Span((current.0 / 100).max(20));
        self.planner.agenda.overhead = (current, band);
        for id in self.live.clone() {
            self.file(id);
        }
    }

    /// First attempts and retries for free slots, in order. They are removed from the list, and not launched yet.
    fn next_launches(&mut self) -> Result<Vec<(u32, Launch)>, RunError> {
        let (usable, used) = self.usable_slots();
        let free = usable.saturating_sub(used);
        let now = self.now;
        let planner = &mut self.planner;
        if planner.ahead_until.take_if(|until| *until <= now).is_some() {
            planner.forget_ahead();
        }
        if free == 0 || planner.waiting.is_empty() {
            return Ok(Vec::new());
        }
        if planner.ahead.len() < free as usize && !planner.is_ahead_whole {
            planner.forget_ahead();
            self.plan_ahead(free)?;
        }
        let ahead = &mut self.planner.ahead;
        let count = ahead.len().min(free as usize);
        Ok(ahead.drain(..count).collect())
    }

    /// Groups for which the optimizer runs now.
    fn due_groups(&mut self, plus: &ShedPlus) -> Vec<u32> {
        let mut watched = Vec::new();
        while let Some(&(at, id)) = self.planner.agenda.watches.first() {
            if at > self.now {
                break;
            }
            self.planner.agenda.watches.pop_first();
            self.groups[id as usize].outlook.watch = None;
            watched.push(id);
        }
        watched.retain(|&id| {
            let is_due = self.is_due(id, plus);
            if !is_due {
                self.file(id);
            }
            is_due
        });
        watched
    }

    fn is_due(&mut self, id: u32, plus: &ShedPlus) -> bool {
        let now = self.now;
        let overhead = self.overhead(plus).seconds();
        let Some(mut turn) = self.turn(id) else {
            return false;
        };
        turn.has_new_straggler = false;
        if plus.due(&turn, now, overhead) <= now {
            return true;
        }
        if !self.needs_look(id, &turn, plus) {
            return false;
        }
        let Some(seen) = self.look_at(id, turn.last, plus) else {
            return false;
        };
        turn.has_reached_xi = seen.has_reached_xi;
        turn.has_new_straggler = seen.has_new_straggler;
        let outlook = &mut self.groups[id as usize].outlook;
        outlook.has_new_straggler = seen.has_new_straggler;
        outlook.stays_late = seen.stays_late;
        outlook.usual = Some(seen.usual);
        outlook.late_from = seen.late_from;
        if turn.awaits_progress() {
            self.bound_progress(id);
        }
        plus.due(&turn, now, overhead) <= now
    }

    fn look_at(&mut self, id: u32, last: Option<Instant>, plus: &ShedPlus) -> Option<Look> {
        let mut facts = self.groups[id as usize].facts.take()?;
        self.refresh(id, &mut facts);
        let seen = look(self.now, self.overhead(plus), &facts, last, plus);
        self.groups[id as usize].facts = Some(facts);
        Some(seen)
    }

    /// If tasks remain without capacity: the groups whose clones may be evicted for them, and the groups of these
    /// tasks.
    fn add_rivals_beyond(&mut self, launches: &[(u32, Launch)], ids: &mut Vec<u32>) {
        // The end of a back-off is not an event.
        let is_news = std::mem::take(&mut self.planner.rivals) || self.planner.retries;
        if self.planner.clones > 0 && (is_news || !ids.is_empty()) {
            let mut waiting: BTreeSet<u32> = BTreeSet::new();
            let (mut left, mut served) = (0, launches);
            let wanted = self.planner.clones + self.planner.dying;
            for &(_, id) in &self.planner.waiting {
                if left >= wanted && !self.planner.retries {
                    break;
                }
                let mine = served.iter().take_while(|(other, _)| *other == id).count();
                served = &served[mine..];
                let rest = self.groups[id as usize].waiting.saturating_sub(mine as u32);
                if rest > 0 {
                    left += rest;
                    waiting.insert(id);
                }
            }
            if !waiting.is_empty() {
                let groups = &self.groups;
                let holds = |id: &&u32| {
                    let group = &groups[**id as usize];
                    group.clones > 0 || group.dying > 0
                };
                ids.extend(self.live.iter().filter(holds));
                ids.extend(waiting);
            }
        }
        ids.sort_by_key(|&id| {
            let group = &self.groups[id as usize];
            (group.job, group.stage)
        });
        ids.dedup();
    }

    /// Runs `decide` on these groups, with the capacity that all others leave.
    fn decide_on(
        &mut self,
        ids: &[u32],
        launches: &[(u32, Launch)],
    ) -> Result<(Plan, Vec<u32>), RunError> {
        let (usable, used) = self.usable_slots();
        let held: u32 = ids.iter().map(|&id| self.groups[id as usize].held).sum();
        let is_other = |id: &u32| self.place_among(ids, *id).is_err();
        let launched = launches.iter().filter(|(id, _)| is_other(id)).count();
        let others = i64::from(used) - i64::from(held) + launched as i64;
        let memory = self.remembered(ids);
        let mut snapshot = std::mem::take(&mut self.planner.scratch);
        snapshot.nodes = vec![slots_node(i64::from(usable), others)];
        self.take_facts(ids, &mut snapshot, true);
        let policy = Policy {
            capacity_share: 1.0,
            ..self.settings.policy.clone()
        };
        let (plan, memory) = self.decide(&snapshot, memory, &policy)?;
        let targets = targets(ids, &snapshot, &plan.actions);
        self.give_back(ids, &mut snapshot);
        self.planner.scratch = snapshot;
        for (&id, report) in ids.iter().zip(&plan.report.jobs) {
            self.planner.agenda.is_cut_short |= report.is_cut_short;
            let group = &mut self.groups[id as usize];
            let after = memory.job(&report.key);
            group.last_optimized = after.last_optimized;
            let outlook = &mut group.outlook;
            outlook.was_idle = after.was_idle;
            outlook.is_unclear |= report.is_cut_short;
            if report.optimized && !report.is_cut_short {
                outlook.has_new_straggler = false;
                outlook.stays_late = None;
                outlook.has_news = false;
                outlook.usual = None;
                outlook.late_from = None;
            }
            self.file(id);
        }
        Ok((plan, targets))
    }

    fn place_among(&self, ids: &[u32], id: u32) -> Result<usize, usize> {
        let place = |id: u32| {
            let group = &self.groups[id as usize];
            (group.job, group.stage)
        };
        ids.binary_search_by_key(&place(id), |&other| place(other))
    }

    fn remembered(&self, ids: &[u32]) -> Memory {
        let mut memory = Memory::default();
        for &id in ids {
            let group = &self.groups[id as usize];
            if let (Some(facts), Some(last)) = (&group.facts, group.last_optimized) {
                let job = JobMemory {
                    last_optimized: Some(last),
                    was_idle: group.outlook.was_idle,
                };
                memory.set(facts.key.clone(), job);
            }
        }
        memory
    }

    /// The result of `decide` on every job.
    fn whole_plan(&mut self) -> (Plan, Vec<u32>) {
        let ids = self.live.clone();
        let memory = self.remembered(&ids);
        let mut snapshot = Snapshot::default();
        self.room.show(&mut snapshot.nodes);
        self.take_facts(&ids, &mut snapshot, true);
        let (plan, _) = (self.planner.decide)(&snapshot, memory, &self.settings.policy);
        let targets = targets(&ids, &snapshot, &plan.actions);
        self.give_back(&ids, &mut snapshot);
        (plan, targets)
    }

    fn compare(
        &self,
        (plan, targets): &(Plan, Vec<u32>),
        actions: &[(u32, Move)],
        next: Option<Instant>,
    ) -> Result<(), RunError> {
        let whole = targets.iter().zip(plan.actions.iter().map(|p| &p.action));
        let differs = |what, details| RunError::Shortcut {
            at: self.seconds(),
            what,
            details,
        };
        if !whole
            .clone()
            .eq(actions.iter().map(|(id, action)| (id, action)))
        {
            let whole: Vec<_> = whole.collect();
            let details = format!("{actions:?} against {whole:?}");
            return Err(differs("planned actions", details));
        }
        if next != plan.report.next_pass {
            let details = format!("{next:?} against {:?}", plan.report.next_pass);
            return Err(differs("the next passes", details));
        }
        Ok(())
    }
}

/// Whether a run may use such passes. It must use slots, where every attempt continues at one speed. Reports must be
/// exact, and jobs judged only by their own data.
pub(super) fn applies(settings: &crate::settings::Settings, trace: &crate::trace::Trace) -> bool {
    let is_exact = |reports: &crate::settings::Reports| reports.noise <= 0.0;
    settings.reports.as_ref().is_none_or(is_exact)
        && trace.jobs.iter().all(|job| job.class.is_none())
}
