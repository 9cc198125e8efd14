//! Clones at submission, shared by the policies that give every task of a job so many attempts
//! from its start: the task gets its clones with its first attempt, or while that is still
//! starting up, if there was no room before.

use crate::decide::{AttemptEstimate, JobState, Pass, TaskEstimate};
use crate::plan::{Finding, RefusalReason};
use crate::policy::clones::{
    Ask, CloneJob, MODES, by_rule, clone_job_of_started, clone_jobs, grant,
};
use crate::policy::keep::{GRACE_MIN, is_young, start_up};
use crate::snapshot::SpeculationMode;

/// Launches what lacks of `copies` attempts per task, which a job has decided on or not. Tasks
/// get their second attempts before any gets a third.
pub(super) fn launch_copies(
    pass: &mut Pass<'_>,
    ask: Ask,
    copies: impl Fn(&JobState<'_>) -> Option<u32>,
) {
    launch(pass, ask, copies, |state, task| {
        let grace = start_up(state, GRACE_MIN);
        task.attempts.iter().all(|attempt| is_young(attempt, grace))
    });
}

/// The same for tasks of any age.
pub(super) fn launch_copies_anytime(
    pass: &mut Pass<'_>,
    ask: Ask,
    copies: impl Fn(&JobState<'_>) -> Option<u32>,
) {
    launch(pass, ask, copies, |_, _| true);
}

fn launch(
    pass: &mut Pass<'_>,
    ask: Ask,
    copies: impl Fn(&JobState<'_>) -> Option<u32>,
    may: impl Fn(&JobState<'_>, &TaskEstimate<'_>) -> bool,
) {
    let copies: Vec<u32> = pass.jobs.iter().map(|s| copies(s).unwrap_or(1)).collect();
    let copies = |position: usize| copies.get(position).copied().unwrap_or(1);
    for mode in MODES {
        for mut job in lacking(pass, mode, ask, copies, &may) {
            let copies = copies(job.position);
            level_up(pass, &mut job, copies);
        }
    }
}

/// Tasks that start with this plan, and those that `may` have clones, of the jobs that want some.
fn lacking(
    pass: &mut Pass<'_>,
    mode: SpeculationMode,
    ask: Ask,
    copies: impl Fn(usize) -> u32,
    may: impl Fn(&JobState<'_>, &TaskEstimate<'_>) -> bool,
) -> Vec<CloneJob> {
    let mut jobs = clone_jobs(pass, mode, ask, |position, state, task| {
        let index = task.task.index;
        let stays = |a: &&AttemptEstimate| !state.doomed.contains(&(index, a.number));
        let alive = task.attempts.iter().filter(stays).count();
        copies(position) as usize > alive && may(state, task)
    });
    for position in 0..pass.jobs.len() {
        if copies(position) > 1 {
            jobs.extend(clone_job_of_started(pass, position, mode, ask));
        }
    }
    let submitted = |job: &CloneJob| {
        let state = pass.jobs.get(job.position);
        state.map(|state| (state.job.submitted, &state.job.key))
    };
    jobs.sort_by(|a, b| submitted(a).cmp(&submitted(b)));
    jobs
}

/// Raises the attempts of each of the job's tasks to `copies`, level by level.
pub(super) fn level_up(pass: &mut Pass<'_>, job: &mut CloneJob, copies: u32) {
    let copies = copies.min(job.max_clones.saturating_add(1));
    let finding = Finding::Copies { copies };
    for level in 2..=copies {
        for at in 0..job.tasks.len() {
            if job.tasks.get(at).is_some_and(|task| task.copies() < level) {
                grant(pass, job, at, |odds| by_rule(finding, odds));
            }
        }
    }
    job.refuse_rest(pass, RefusalReason::Capacity);
}
