//! Launching attempts and placing them on nodes.

use shed_core::decide::News;
use shed_core::ids::{AttemptNumber, NodeName};
use shed_core::plan::Launch;
use shed_core::snapshot::{AttemptKind, AttemptSnapshot, NodeIndex};
use shed_core::time::Span;

use super::Engine;
use super::attempt::Attempt;
use super::capacity::Capacity;
use super::group::keep_best;
use crate::event::Event;
use crate::model::Which;
use crate::random::{Purpose, Stream};
use crate::settings::Settings;

impl Engine<'_> {
    pub(super) fn launch(&mut self, id: u32, launch: &Launch) {
        let group = &mut self.groups[id as usize];
        let (job, stage, median) = (group.job, group.stage, group.median);
        let begin = launch.resume.as_ref().map_or(0.0, |point| point.progress);
        let Some((entry, truth)) = group.entry(launch.task) else {
            return;
        };
        let number = truth.next_number;
        truth.next_number += 1;
        entry.retry_not_before = None;
        let starts_over = launch.resume.is_none() && entry.best_resume_point().is_some();
        if let Some(point) = &launch.resume {
            keep_best(&mut entry.resume_point, begin, &point.checkpoint);
        }
        let which = Which {
            job,
            stage,
            task: launch.task.0,
            attempt: number,
        };
        let (settings, trace_job) = (self.settings, &self.trace.jobs[job as usize]);
        let slot = self.attempts.add(Attempt::new(
            (id, launch.task.0, number),
            launch.kind,
            self.now,
            begin,
            settings.model.draw(settings.seed, trace_job, median, which),
            report_error(settings, which),
        ));
        self.attempts.get_mut(slot).starts_over = starts_over;
        if let Some((entry, truth)) = group.entry(launch.task) {
            self.spare.provide(entry, truth);
            truth.slots.push(slot);
            entry.attempts.push(AttemptSnapshot {
                start_progress: begin,
                ..AttemptSnapshot::pending(AttemptNumber(number), launch.kind, self.now)
            });
            self.attempts.get_mut(slot).position = group.position(launch.task).unwrap_or(0);
        }
        self.count_launch(id, launch.kind);
        let mut avoid = launch.avoid.clone();
        avoid.extend_from_slice(&launch.rather_not);
        if !self.place(slot, launch.node.as_ref(), &avoid) {
            self.unplaced.push(self.attempts.name(slot));
        }
    }

    fn count_launch(&mut self, id: u32, kind: AttemptKind) {
        let group = &mut self.groups[id as usize];
        if let Some(facts) = &mut group.facts {
            facts.launched_before = true;
        }
        group.held += 1;
        if kind == AttemptKind::Clone {
            self.totals.clones += 1;
        } else {
            group.waiting = group.waiting.saturating_sub(1);
        }
        self.totals.attempts += 1;
        self.touch(id, News::Urgent);
        self.count_slot(id, true);
    }

    /// Places an attempt on a node with enough capacity: on the chosen one if that has enough.
    fn place(&mut self, slot: u32, chosen: Option<&NodeName>, avoid: &[NodeName]) -> bool {
        let (id, task, number) = {
            let attempt = self.attempts.get(slot);
            (attempt.group, attempt.task, attempt.number)
        };
        let group = &mut self.groups[id as usize];
        let Some(demand) = group.facts.as_ref().map(|facts| &facts.demand) else {
            return true;
        };
        let chosen = chosen.and_then(|name| self.capacity.place_on(demand, name));
        let Some(node) = chosen.or_else(|| self.capacity.place(demand, avoid)) else {
            return false;
        };
        let overhead = group.launch_overhead;
        // Slots are not machines, so the facts must not show that one of them is slow.
        if let (Capacity::Nodes(_), Some(facts)) = (&self.capacity, group.attempt_mut(task, number))
        {
            facts.node = Some(NodeIndex(node as usize));
        }
        let attempt = self.attempts.get_mut(slot);
        attempt.node = Some(node);
        attempt.placed = self.now;
        if overhead > Span(0) {
            let name = self.attempts.name(slot);
            self.queue.put(self.now.plus(overhead), Event::Start(name));
        } else {
            self.start(slot);
        }
        true
    }

    /// Tries again for attempts that wait for a node.
    pub(super) fn place_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.unplaced);
        for name in waiting {
            if self.attempts.is_current(name) && !self.place(name.slot, None, &[]) {
                self.unplaced.push(name);
            }
        }
    }
}

/// The relative error of the attempt's reports at its start.
fn report_error(settings: &Settings, which: Which) -> f64 {
    let noise = settings.reports.map_or(0.0, |reports| reports.noise);
    if noise <= 0.0 {
        return 0.0;
    }
    let task = (u64::from(which.stage) << 32) | u64::from(which.task);
    let thing = [u64::from(which.job), task, u64::from(which.attempt)];
    let normal = Stream::new(settings.seed, Purpose::Noise, thing).normal();
    // Beyond ±1 a claim could go back or exceed the whole.
    (noise * normal).clamp(-0.9, 0.9)
}
