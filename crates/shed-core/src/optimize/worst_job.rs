//! Clones go to the job with the lowest PoCD, and in it to the task that its own key puts first.

use crate::optimize::greedy::{GreedyStep, Refusal, RefusalReason};
use crate::optimize::job_state::JobState;
use crate::optimize::keys::{TaskKey, job_key};
use crate::optimize::room::Room;
use crate::optimize::tournament::{ABSENT, Tournament};

/// So many clones of a job are worked out together. In which order a job's tasks are served does
/// not depend on other jobs, and turns change from job to job with every clone: to fetch a job
/// from memory for each one would take longer than the work itself.
const AHEAD: usize = 8;

/// Hands out clones while anything fits. `guarded` leaves out hopeless jobs and those that the
/// room can't make possible.
pub(super) fn hand_out(
    states: &mut [JobState],
    key: TaskKey,
    guarded: bool,
    room: &mut Room,
    refused: &mut Vec<Refusal>,
) -> Vec<GreedyStep> {
    let keys = states
        .iter()
        .map(|state| match guarded && state.is_hopeless {
            true => ABSENT,
            false => job_key(state),
        });
    let mut waiting = Tournament::new(keys, states.len());
    let mut lanes: Vec<Lane> = states
        .iter_mut()
        .map(|state| Lane::new(state, key))
        .collect();
    let mut steps = Vec::new();
    let mut refuse = |job| {
        let reason = RefusalReason::Capacity;
        refused.push(Refusal { job, reason });
    };
    while !room.is_exhausted() {
        let Some(job) = waiting.best() else {
            break;
        };
        let Some(lane) = lanes.get_mut(job) else {
            break;
        };
        // Without room to rescue it its PoCD would stay 0: the clones would be wasted.
        let least = if guarded {
            lane.state.rescues_needed
        } else {
            1
        };
        if room.times(job) < least.max(1) {
            waiting.remove(job);
            refuse(job);
            continue;
        }
        let Some(clone) = lane.take() else {
            break;
        };
        steps.push(GreedyStep {
            job,
            task: clone.task,
        });
        room.take(job, 1);
        waiting.set(job, clone.key_after);
    }
    lanes.iter_mut().for_each(Lane::give_back_rest);
    waiting.indexes().for_each(refuse);
    steps
}

/// A job's clones in its own order.
struct Lane<'a> {
    /// The clones that were worked out last; the first `taken` are handed out, those from
    /// `filled` on are none.
    ahead: [Served; AHEAD],
    filled: usize,
    taken: usize,
    /// With all of them.
    state: &'a mut JobState,
    /// Its tasks ranked, from its first turn on: most jobs have none when room is short.
    tasks: Option<Tournament>,
    key: TaskKey,
}

#[derive(Debug, Clone, Copy, Default)]
struct Served {
    task: usize,
    /// The job's key with it.
    key_after: f64,
}

impl<'a> Lane<'a> {
    fn new(state: &'a mut JobState, key: TaskKey) -> Self {
        Self {
            ahead: [Served::default(); AHEAD],
            filled: 0,
            taken: 0,
            state,
            tasks: None,
            key,
        }
    }

    /// The next clone; none when no task may get more.
    fn take(&mut self) -> Option<Served> {
        if self.taken == self.filled {
            self.work_ahead();
        }
        let clone = self.ahead.get(..self.filled)?.get(self.taken).copied()?;
        self.taken += 1;
        Some(clone)
    }

    /// A job that is still impossible is worked out one by one, as it may be refused.
    fn work_ahead(&mut self) {
        let Self { state, key, .. } = self;
        let tasks = self.tasks.get_or_insert_with(|| key.rank(state));
        let wanted = if state.rescues_needed > 0 { 1 } else { AHEAD };
        (self.filled, self.taken) = (0, 0);
        for slot in self.ahead.iter_mut().take(wanted) {
            let Some(task) = tasks.best() else {
                break;
            };
            state.give(task);
            tasks.set(task, key.of(state, task));
            *slot = Served {
                task,
                key_after: job_key(state),
            };
            self.filled += 1;
        }
    }

    fn give_back_rest(&mut self) {
        let rest = self.ahead.iter().take(self.filled).skip(self.taken);
        rest.for_each(|clone| self.state.revoke(clone.task));
    }
}
