//! Passes whose cost follows what has changed.
//!
//! The core's [`Planner`](shed_core::decide::Planner) looks at a job again only if the job has news and its last look
//! was some time ago, or at a time that the job has named. A pass is made when the first such time has come, and when
//! a job arrives. In between, slots that come free go to the jobs that waited after the last pass, in its order of
//! service. If the order changes with each attempt, or attempts have nodes to choose from, a pass is made instead.

use std::collections::VecDeque;

use shed_core::decide::{Appointment, News};
use shed_core::guard::GuardedPlanner;
use shed_core::plan::Move;
use shed_core::snapshot::Snapshot;
use shed_core::time::Instant;

use super::capacity::Capacity;
use super::listed::Listed;
use super::passes::targets;
use super::{Engine, RunError, Scope};

/// The planner, and what its last pass left to do.
#[derive(Debug, Default)]
pub(super) struct Steady {
    planner: GuardedPlanner,
    /// The first time at which a job with news must be looked at.
    wanted: Option<Instant>,
    /// Groups whose tasks wait, in the order of service, and how many attempts each may still get.
    queue: VecDeque<(u32, u32)>,
    listed: Listed,
    /// Whether tasks wait that only a pass can serve.
    waits_for_pass: bool,
    marked: Vec<bool>,
}

/// When a group must be looked at.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// Whether the facts have changed since the last pass.
    has_changed: bool,
    /// The news since the last look.
    news: News,
    appointment: Appointment,
}

impl Attention {
    /// When the group must be looked at if it has news. Without clones, any news may change its place.
    pub(super) fn news_at(&self) -> Option<Instant> {
        self.appointment.at(News::Urgent)
    }

    /// The news that an attempt's first report or end is.
    pub(super) fn of_time(&self, news: News) -> News {
        self.appointment.of_time(news)
    }

    /// The group was looked at.
    pub(super) fn keep(&mut self, appointment: Appointment) {
        self.appointment = appointment;
    }
}

impl Steady {
    /// A pass is due at `at`, whatever the appointments of jobs are.
    pub(super) fn want(&mut self, at: Instant) {
        self.wanted = Some(self.wanted.map_or(at, |wanted| wanted.min(at)));
    }
}

impl Engine<'_> {
    /// The group's facts have changed.
    pub(super) fn touch(&mut self, id: u32, news: News) {
        self.touch_place(id, false);
        if self.planner.scope != Scope::Steady {
            return;
        }
        let attention = &mut self.groups[id as usize].attention;
        attention.has_changed = true;
        if news > attention.news {
            attention.news = news;
            let at = attention.appointment.at(news);
            let at = at.map_or(self.now, |at| at.max(self.now));
            self.planner.steady.want(at);
            self.changed |= at <= self.now;
        }
    }

    /// Makes a pass if it is due, and fills the slots that are free.
    pub(super) fn steady_pass(&mut self) -> Result<(), RunError> {
        let comes = |at: Option<Instant>| at.is_some_and(|at| at <= self.now);
        let steady = &self.planner.steady;
        if comes(steady.wanted) || comes(self.planner.next_pass) || steady.waits_for_pass {
            self.pass_on_changed()?;
        }
        self.fill_slots();
        let wanted = self.planner.steady.wanted;
        self.wake_at(wanted.into_iter().chain(self.planner.next_pass).min());
        Ok(())
    }

    fn pass_on_changed(&mut self) -> Result<(), RunError> {
        let ids = std::mem::take(&mut self.live);
        let mut snapshot = std::mem::take(&mut self.planner.scratch);
        self.capacity.show(&mut snapshot.nodes);
        self.take_changed(&ids, &mut snapshot);
        let mut steady = std::mem::take(&mut self.planner.steady);
        let mut memory = std::mem::take(&mut self.planner.memory);
        let policy = &self.settings.policy;
        let changed = shed_core::decide::Changed::Marked(&steady.marked);
        let passed = steady
            .planner
            .decide(&snapshot, &mut memory, policy, changed);
        self.planner.memory = memory;
        self.note_pass(&passed, policy)?;
        let plan = passed.plan;
        let targets = targets(&ids, &snapshot, &plan.actions);
        steady.wanted = None;
        self.keep_appointments(&ids, &steady);
        self.queue(&ids, &plan.report, &mut steady);
        self.give_back(&ids, &mut snapshot);
        self.planner.scratch = snapshot;
        self.planner.steady = steady;
        self.live = ids;
        self.drop_finished();
        self.next_pass_at(plan.report.next_pass);
        self.carry_out(&targets, &plan.actions);
        Ok(())
    }

    /// Moves the facts of these groups into the snapshot, and brings those up to date that the pass looks at.
    fn take_changed(&mut self, ids: &[u32], snapshot: &mut Snapshot) {
        self.begin_snapshot(snapshot);
        let observes = self.observes();
        let mut marked = std::mem::take(&mut self.planner.steady.marked);
        marked.clear();
        for &id in ids {
            let group = &mut self.groups[id as usize];
            let Some(mut facts) = group.facts.take() else {
                continue;
            };
            let attention = &mut group.attention;
            let is_due = attention.appointment.is_due(self.now, attention.news);
            if is_due {
                attention.news = News::None;
            }
            marked.push(std::mem::take(&mut attention.has_changed));
            if observes && is_due {
                self.refresh(id, &mut facts);
            }
            snapshot.jobs.push(facts);
        }
        self.planner.steady.marked = marked;
    }

    fn keep_appointments(&mut self, ids: &[u32], steady: &Steady) {
        let appointments = steady.planner.planner().appointments();
        for (&id, appointment) in ids.iter().zip(appointments) {
            self.groups[id as usize].attention.appointment = appointment;
        }
    }

    /// Notes which groups are served from now on.
    fn queue(&mut self, ids: &[u32], report: &shed_core::plan::PlanReport, steady: &mut Steady) {
        steady.listed = Listed::default();
        steady.queue.clear();
        let queue = steady.planner.planner().queue();
        let queue = queue.filter(|_| matches!(self.capacity, Capacity::Slots { .. }));
        match queue {
            Some(queue) => {
                let named = queue
                    .iter()
                    .filter_map(|&(at, left)| Some((*ids.get(at)?, left)));
                steady.queue.extend(named);
                steady.waits_for_pass = false;
            }
            None => steady.waits_for_pass = report.jobs.iter().any(|job| job.waiting > 0),
        }
    }

    /// Launches first attempts and retries into free slots.
    fn fill_slots(&mut self) {
        loop {
            let (usable, used) = self.usable_slots();
            if used >= usable {
                return;
            }
            let steady = &mut self.planner.steady;
            let Some((id, left)) = steady.queue.front_mut() else {
                return;
            };
            let (id, facts) = (*id, self.groups[*id as usize].facts.as_ref());
            let next = steady.listed.next(self.now, id, facts);
            *left = left.saturating_sub(1);
            if next.is_none() || *left == 0 {
                steady.queue.pop_front();
            }
            if let Some(launch) = next {
                self.carry_out_move(id, &Move::Launch(launch));
            }
        }
    }
}
