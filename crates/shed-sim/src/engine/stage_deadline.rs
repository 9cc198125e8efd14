//! The deadlines of stages for the planner: see [`StageDeadlines`].

use shed_core::decide::News;
use shed_core::snapshot::JobPhase;
use shed_core::time::{Instant, Span};
use shed_core::workflow::{JobState, StageJob, reserved_tail};

use super::Engine;
use crate::settings::StageDeadlines;
use crate::trace::Job;

impl Engine<'_> {
    /// The usual times that the rule needs.
    pub(super) fn paths(&self, job: &Job) -> Vec<Span> {
        match self.settings.stage_deadlines {
            StageDeadlines::Run | StageDeadlines::Tail => Vec::new(),
            StageDeadlines::Flexible | StageDeadlines::Graph => job.paths(),
        }
    }

    /// The deadline of a stage that becomes available now. One that has passed already is the run's.
    pub(super) fn stage_deadline(&self, position: u32, stage: usize) -> Option<Instant> {
        let job = &self.trace.jobs[position as usize];
        let run = job.arrival.plus(job.deadline?);
        let path = || self.jobs[position as usize].paths.get(stage).copied();
        let usual = || job.stages[stage].usual_time();
        let own = match self.settings.stage_deadlines {
            StageDeadlines::Run => None,
            StageDeadlines::Tail => self.tail(job, stage).map(|tail| before(run, tail)),
            StageDeadlines::Flexible => path().map(|path| flexible(self.now, run, usual(), path)),
            StageDeadlines::Graph => path().map(|path| before(run, Span(path.0 - usual().0))),
        };
        Some(
            own.filter(|&own| own > self.now && own < run)
                .unwrap_or(run),
        )
    }

    /// The learned time that the later stages take.
    fn tail(&self, job: &Job, stage: usize) -> Option<Span> {
        let runs = self.workflows.runs(&workflow_class(job)?)?;
        reserved_tail(&runs.tails(&job.id, &stage.to_string(), self.now))
    }

    /// The stage is shown to those who learn from it. That the run has ended is known, as if its last stage were marked.
    pub(super) fn show_stage(&mut self, id: u32, state: JobState) {
        if self.settings.stage_deadlines != StageDeadlines::Tail {
            return;
        }
        let group = &self.groups[id as usize];
        let job = &self.trace.jobs[group.job as usize];
        let Some(class) = workflow_class(job) else {
            return;
        };
        let part = StageJob {
            job: (u64::from(group.job) << 32) | u64::from(group.stage),
            stage: &group.stage.to_string(),
            created: group.opened,
            run_start: Some(job.arrival),
            state,
            is_last: self.jobs[group.job as usize].active.is_empty(),
        };
        self.workflows.see(&class, &job.id, &part);
    }

    /// The stage is late for its own deadline, but perhaps not for the run's.
    pub(super) fn leave_stage_deadline(&mut self, id: u32) {
        let group = &mut self.groups[id as usize];
        let job = &self.trace.jobs[group.job as usize];
        let active = group
            .facts
            .as_mut()
            .filter(|facts| facts.phase == JobPhase::Active);
        let (Some(facts), Some(deadline)) = (active, job.deadline) else {
            return;
        };
        facts.deadline = Some(job.arrival.plus(deadline));
        facts.is_stage = true;
        self.touch(id, News::Urgent);
        self.touch_place(id, true);
        self.planner.steady.want(self.now);
        self.changed = true;
    }
}

/// The class of the job's runs; absent if it is no workflow.
fn workflow_class(job: &Job) -> Option<String> {
    let class = job.class.as_deref().filter(|_| job.stages.len() > 1)?;
    Some(format!("trace/{class}"))
}

fn before(run: Instant, later: Span) -> Instant {
    run.plus(Span(-later.0))
}

/// Equal flexibility (Kao and Garcia-Molina): slack in proportion to usual times. `path` is the usual time of the stage
/// and of those behind it.
fn flexible(now: Instant, run: Instant, usual: Span, path: Span) -> Instant {
    if path.0 <= 0 {
        return run;
    }
    let share = usual.0 as f64 / path.0 as f64;
    now.plus(Span((run.since(now).0 as f64 * share).round() as i64))
}

#[cfg(test)]
mod tests;
