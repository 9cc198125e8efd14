//! What the stages of a run that are available know of the others, for orders by size: see [`Phases`].

use shed_core::decide::News;
use shed_core::snapshot::{PhaseTime, Phases};

use super::Engine;
use crate::trace::Stage;

impl Engine<'_> {
    /// A stage of the job has begun or ended. Policies that look at all jobs may rank them by size too.
    pub(super) fn show_phases(&mut self, position: u32) {
        let policy = &self.settings.policy;
        let job = &self.trace.jobs[position as usize];
        let are_read = policy.order.reads_sizes() || policy.speculation.looks_at_all();
        if job.stages.len() < 2 || !are_read {
            return;
        }
        let times: Vec<PhaseTime> = job.stages.iter().map(task_time).collect();
        let chains = job.longest_behind(&times, PhaseTime::plus);
        let active = self.jobs[position as usize].active.clone();
        let stage_of = |id: u32| self.groups[id as usize].stage as usize;
        let volumes = self.volumes(position, &times);
        let mut shown = Vec::new();
        for &id in &active {
            let stage = stage_of(id);
            let others = active.iter().filter(|&&other| other != id);
            let other_chain = others.map(|&other| chains[stage_of(other)][0]);
            let longer = |a: PhaseTime, b: PhaseTime| if b > a { b } else { a };
            let volume = volumes.iter().enumerate();
            let volume = volume.filter(|(other, _)| *other != stage);
            let volume = volume.map(|(_, volume)| *volume);
            let phases = Phases {
                own: times[stage],
                after: chains[stage][1],
                other_chain: other_chain.fold(PhaseTime::default(), longer),
                volume: volume.fold(PhaseTime::default(), PhaseTime::plus),
            };
            shown.push((id, phases));
        }
        for (id, phases) in shown {
            if let Some(facts) = &mut self.groups[id as usize].facts {
                facts.phases = Some(phases);
            }
            self.touch(id, News::Urgent);
        }
    }

    /// By stage: the unfinished tasks, each with its time.
    fn volumes(&self, position: u32, times: &[PhaseTime]) -> Vec<PhaseTime> {
        let stages = &self.trace.jobs[position as usize].stages;
        let progress = &self.jobs[position as usize];
        let mut left: Vec<usize> = stages.iter().map(|stage| stage.durations.len()).collect();
        for (stage, count) in left.iter_mut().enumerate() {
            if progress.missing[stage] == 0 {
                *count = 0;
            }
        }
        for &id in &progress.active {
            let group = &self.groups[id as usize];
            let ended = group.facts.as_ref().map_or(0, |facts| facts.done.len());
            left[group.stage as usize] =
                stages[group.stage as usize].durations.len() - ended as usize;
        }
        let volumes = left.iter().zip(times);
        volumes
            .map(|(&count, time)| time.times(count as f64))
            .collect()
    }
}

fn task_time(stage: &Stage) -> PhaseTime {
    PhaseTime {
        mean: stage.usual_time().seconds(),
        deviation: stage.deviation(),
    }
}
