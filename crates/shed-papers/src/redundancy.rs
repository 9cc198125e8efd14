//! Clones at submission, shared by the policies that give every task of a job several attempts from
//! its start. The task gets its clones with its first attempt, or while that attempt is still
//! starting up if no slot was free before.

use crate::state::Decided;
use shed_core::ids::TaskIndex;
use shed_core::plan::{Finding, RefusalReason};
use shed_core::policy::prune::{GRACE_MIN, is_young, start_up};
use shed_core::policy::{Desk, PolicyRule};
use shed_core::round::clones::{Ask, CloneJob, CloneTask, MODES};
use shed_core::round::{AttemptEstimate, JobView, TaskEstimate};
use shed_core::snapshot::SpeculationMode;

/// Launches a job's missing attempts, up to the number per task that was decided. All tasks get
/// their second attempts before any gets a third.
pub(crate) fn launch_copies<R: PolicyRule<State = Decided>>(desk: &mut Desk<'_, '_, R>, ask: Ask) {
    launch(desk, ask, |state, task| {
        let grace = start_up(state, GRACE_MIN);
        task.attempts.iter().all(|attempt| is_young(attempt, grace))
    });
}

/// The same for tasks of any age, which get what they lack of their clones as soon as slots are free.
pub(crate) fn launch_copies_anytime<R: PolicyRule<State = Decided>>(
    desk: &mut Desk<'_, '_, R>,
    ask: Ask,
) {
    launch(desk, ask, |_, _| true);
}

/// Whether the attempts per task of the job are decided on.
pub(crate) fn is_decided<R: PolicyRule<State = Decided>>(
    desk: &Desk<'_, '_, R>,
    position: usize,
) -> bool {
    desk.state(position)
        .is_some_and(|state| state.copies.is_some())
}

fn launch<R: PolicyRule<State = Decided>>(
    desk: &mut Desk<'_, '_, R>,
    ask: Ask,
    may: impl Fn(&JobView<'_>, &TaskEstimate) -> bool,
) {
    let copies = desk.states().iter().map(|state| state.copies.unwrap_or(1));
    let copies: Vec<u32> = copies.collect();
    let copies = |position: usize| copies.get(position).copied().unwrap_or(1);
    for mode in MODES {
        for mut job in lacking(desk, mode, ask, copies, &may) {
            let copies = copies(job.position);
            level_up(desk, &mut job, copies);
        }
    }
}

/// Tasks that start with this plan, and those that `may` have clones, of the jobs that need some.
fn lacking<R: PolicyRule>(
    desk: &mut Desk<'_, '_, R>,
    mode: SpeculationMode,
    ask: Ask,
    copies: impl Fn(usize) -> u32,
    may: impl Fn(&JobView<'_>, &TaskEstimate) -> bool,
) -> Vec<CloneJob> {
    let mut jobs = desk.clone_jobs(mode, ask, |position, state, task| {
        let index = task.index;
        let stays = |a: &&AttemptEstimate| !state.is_stopped((index, a.number));
        let alive = task.attempts.iter().filter(stays).count();
        copies(position) as usize > alive && may(state, task)
    });
    for position in 0..desk.jobs().len() {
        if copies(position) > 1 {
            jobs.extend(desk.clone_job_of_started(position, mode, ask));
        }
    }
    let submitted = |job: &CloneJob| {
        let state = desk.jobs().get(job.position);
        state.map(|state| (state.job.submitted, &state.job.key))
    };
    jobs.sort_by(|a, b| submitted(a).cmp(&submitted(b)));
    jobs
}

/// Raises the attempts of each of the job's tasks to `copies`, level by level.
pub(crate) fn level_up<R: PolicyRule>(desk: &mut Desk<'_, '_, R>, job: &mut CloneJob, copies: u32) {
    level_up_with(desk, job, copies, |_| 0);
}

/// The same where `absent` attempts of a task are gone and count as if they were there.
pub(crate) fn level_up_with<R: PolicyRule>(
    desk: &mut Desk<'_, '_, R>,
    job: &mut CloneJob,
    copies: u32,
    absent: impl Fn(TaskIndex) -> u32,
) {
    let copies = copies.min(job.max_clones.saturating_add(1));
    let finding = Finding::Copies { copies };
    for level in 2..=copies {
        for at in 0..job.tasks.len() {
            let lacks = |task: &CloneTask| task.copies() + absent(task.index) < level;
            if job.tasks.get(at).is_some_and(lacks) {
                desk.request(job, at, finding);
            }
        }
    }
    desk.refuse_rest(job, RefusalReason::Capacity);
}
