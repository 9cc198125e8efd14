//! Shed+ ([S+] Algorithm 1) on live jobs: when the optimizer runs for a job, which attempts it
//! keeps, which tasks are stragglers, and which of them get clones. The counting is done by
//! [`alloc_task`]; this module says what it counts and carries it out.

use crate::decide::{AttemptEstimate, JobState, Pass, TaskEstimate};
use crate::estimate::pareto::{LN_CERTAIN, ln_miss};
use crate::estimate::pocd::{gain_of_one_more, ln_task_pocd, probability};
use crate::estimate::progress::optimization_interval;
use crate::ids::TaskIndex;
use crate::memory::Memory;
use crate::optimize::greedy::{self, GreedyInput, GreedyJob, GreedyMode, GreedyTask, alloc_task};
use crate::plan::{CloneReport, Launch, LaunchReason, Refusal, RefusalReason};
use crate::policy::{Mode, ShedPlus};
use crate::snapshot::{AttemptKind, Idempotency, KillKind, NodeIndex, SpeculationMode};
use crate::time::Span;

/// After so many failed clones a task gets no more.
const CLONE_FAILURES_MAX: u32 = 2;

/// A reporting sibling is pruned if its predicted end is later by more than this share of the
/// time that the kept attempt still needs: predictions are noisy, and a close race is worth
/// both lanes.
const PRUNE_MARGIN: f64 = 0.1;

/// A silent attempt is left alone for so many launch overheads: it needs one to start and about
/// another to report. Killing it earlier would launch it anew at every run (pitfall 3).
const GRACE_LAUNCHES: f64 = 3.0;

/// At least this many seconds, as overheads are measured on the mean and images are pulled.
const GRACE_MIN: f64 = 10.0;

/// Clones that one pass may hand out: it bounds the work of the optimizer, of which the greedy
/// does O(log tasks) per clone. What is left is a matter of the next run.
const CLONES_PER_PASS_MAX: u32 = 10_000;

/// [S+] 4.2, trigger: the job's progress has reached ξ for the first time, or θ (eq. 17) has
/// passed since the last run for it (A7: per job). Our readings: a job that reports nothing is
/// looked at every θ from its submission on; one that could report and has spent 2ξ of its
/// time below ξ is on course to take twice its time, and is not waited for.
pub(crate) fn select_jobs(pass: &mut Pass<'_>, memory: &Memory, plus: &ShedPlus) {
    let now = pass.snapshot.now;
    let overhead = pass.overhead;
    let mut wakes = Vec::new();
    for state in &mut pass.jobs {
        let job = state.job;
        let Some(deadline) = job.deadline.filter(|_| speculates(state)) else {
            continue;
        };
        let limit = deadline.since(job.submitted).seconds();
        let theta = optimization_interval(limit, overhead, plus.theta);
        let theta = Span::from_seconds_f64(theta).max(plus.min_interval);
        let last = memory
            .job(&job.key)
            .last_optimized
            .map(|last| last.min(now));
        let due = match last {
            None if job.reports_progress && state.estimate.progress >= plus.xi => now,
            None if job.reports_progress => {
                let patience = Span::from_seconds_f64(2.0 * plus.xi * limit);
                job.submitted.plus(patience).max(job.submitted.plus(theta))
            }
            None => job.submitted.plus(theta),
            Some(last) => last.plus(theta),
        };
        state.optimized = due <= now;
        // Progress is no event: while ξ is awaited, it is looked for every θ.
        let awaits_progress = last.is_none() && !state.optimized;
        wakes.push(if state.optimized {
            now.plus(theta)
        } else if awaits_progress {
            due.min(now.plus(theta))
        } else {
            due
        });
    }
    for wake in wakes {
        pass.wake_at(Some(wake));
    }
}

fn speculates(state: &JobState<'_>) -> bool {
    state.may_run()
        && !state.estimate.tasks.is_empty()
        && state.job.rules.speculation != SpeculationMode::Disabled
}

/// Spec 5.5: at an optimization the fastest attempt of a flagged task is kept and the others
/// are killed. Ours differs where the notes found the paper's rule to do harm: "fastest" is the
/// earliest predicted end of those that report, siblings in a close race stay, and silent ones
/// that are still starting up stay and count towards r.
pub(crate) fn prune(pass: &mut Pass<'_>) {
    let grace = GRACE_MIN.max(GRACE_LAUNCHES * pass.overhead);
    let mut losers = Vec::new();
    for (position, state) in pass.jobs.iter().enumerate() {
        if !state.optimized || state.job.rules.speculation != SpeculationMode::Enabled {
            continue;
        }
        for task in state.estimate.tasks.iter().filter(|t| t.attempts.len() > 1) {
            let Some(kept) = task.kept() else {
                continue;
            };
            let in_time = match (kept.remaining, state.estimate.slack) {
                (Some(remaining), Some(slack)) => remaining <= slack,
                _ => false,
            };
            for attempt in task.attempts.iter().filter(|a| a.number != kept.number) {
                if is_loser(attempt, kept, in_time, grace) {
                    let id = (task.task.index, attempt.number);
                    losers.push((position, id, kept.number));
                }
            }
        }
    }
    for (position, id, kept) in losers {
        pass.kill(position, id, KillKind::Prune, kept);
    }
}

/// Whether `kept` makes the attempt superfluous. One that has said nothing for long is given
/// up only for one that will make it.
fn is_loser(attempt: &AttemptEstimate, kept: &AttemptEstimate, in_time: bool, grace: f64) -> bool {
    match (attempt.remaining, kept.remaining) {
        (Some(other), Some(best)) if attempt.reports() => other > best * (1.0 + PRUNE_MARGIN),
        _ => in_time && !attempt.reports() && attempt.since_launch > grace,
    }
}

/// Clones for the stragglers of the jobs that are due, from what is left after admission. Jobs
/// that only observe are served last and on paper, so that they take nothing from others.
pub(crate) fn launch_clones(pass: &mut Pass<'_>, plus: &ShedPlus) {
    for mode in [SpeculationMode::Enabled, SpeculationMode::Observe] {
        let mut jobs = Vec::new();
        for position in 0..pass.jobs.len() {
            jobs.extend(candidates(pass, position, mode, plus));
        }
        if !jobs.is_empty() {
            share_out(pass, jobs, mode, plus.mode.greedy());
        }
    }
}

/// A job with stragglers, as the optimizer sees it.
struct Candidate {
    position: usize,
    tasks: Vec<TaskCandidate>,
    /// In the order of `tasks`.
    greedy: GreedyJob,
}

impl Candidate {
    fn ln_pocd(&self) -> f64 {
        let tasks = self.tasks.iter().map(|task| ln_task_pocd(task.ln_miss));
        self.greedy.ln_pocd_rest + tasks.sum::<f64>()
    }
}

struct TaskCandidate {
    index: TaskIndex,
    launch: Launch,
    /// Nodes with an attempt of the task, and those that its clones of this pass go to.
    nodes: Vec<NodeIndex>,
    ln_miss: f64,
    ln_miss_per_clone: f64,
    /// Expected slot-seconds of a clone.
    cost: f64,
    clones: u32,
    is_refused: bool,
}

fn candidates(
    pass: &mut Pass<'_>,
    position: usize,
    mode: SpeculationMode,
    plus: &ShedPlus,
) -> Option<Candidate> {
    let state = pass.jobs.get(position)?;
    let applies = state.optimized && state.job.rules.speculation == mode;
    if !applies || !state.may_launch(pass.snapshot.now) {
        return None;
    }
    let max_clones = state.job.rules.max_clones_per_task.min(plus.max_clones);
    let (mut tasks, mut greedy, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    for task in &state.estimate.tasks {
        let index = task.task.index;
        if state.stragglers.binary_search(&index).is_err() {
            continue;
        }
        let attempts = task.attempts.iter();
        let alive = attempts.filter(|a| !state.doomed.contains(&(index, a.number)));
        let clones_alive = (alive.count() as u32).saturating_sub(1);
        if let Some(why) = refusal(state, task, clones_alive, max_clones) {
            refusals.push(Refusal { task: index, why });
            continue;
        }
        let Some(candidate) = task_candidate(pass, position, state, task) else {
            continue;
        };
        if plus.mode != Mode::Paper && candidate.ln_miss_per_clone >= LN_CERTAIN {
            let why = RefusalReason::Hopeless;
            refusals.push(Refusal { task: index, why });
        } else {
            let enough = clones_until_enough(&candidate, plus.miss_target);
            greedy.push(GreedyTask {
                ln_miss_present: candidate.ln_miss,
                ln_miss_per_clone: candidate.ln_miss_per_clone,
                // What counts against MAX: what is alive, and what the task does not need.
                clones_alive: clones_alive.max(max_clones.saturating_sub(enough)),
                may_receive_clones: true,
            });
            tasks.push(candidate);
        }
    }
    let is_candidate = |index| tasks.binary_search_by_key(&index, |t| t.index).is_ok();
    let ln_pocd_rest = state.ln_pocd_without(pass.overhead, is_candidate);
    let greedy = GreedyJob {
        max_clones,
        ln_pocd_rest: ln_pocd_rest.unwrap_or(f64::NEG_INFINITY),
        tasks: greedy,
    };
    pass.jobs.get_mut(position)?.refusals.extend(refusals);
    (!tasks.is_empty()).then_some(Candidate {
        position,
        tasks,
        greedy,
    })
}

/// How many clones bring the task's miss to the target. The papers' greedy goes on until
/// capacity or MAX is reached, also for a task that is all but certain; on real nodes such
/// clones take cpu from each other and from first attempts (clone storms, pitfall 6).
fn clones_until_enough(task: &TaskCandidate, miss_target: f64) -> u32 {
    if miss_target <= 0.0 {
        return u32::MAX;
    }
    let needed = (libm::log(miss_target) - task.ln_miss) / task.ln_miss_per_clone;
    // `as` saturates; a certain task needs none, a clone that surely misses helps none.
    needed.ceil().max(0.0) as u32
}

/// Why a straggler may not even be considered.
fn refusal(
    state: &JobState<'_>,
    task: &TaskEstimate<'_>,
    clones_alive: u32,
    max_clones: u32,
) -> Option<RefusalReason> {
    if state.job.rules.idempotency == Idempotency::None {
        Some(RefusalReason::NotIdempotent)
    } else if state.estimate.slack.is_none_or(|slack| slack <= 0.0) {
        // Step 1 of the algorithm: jobs past their deadline get none.
        Some(RefusalReason::Hopeless)
    } else if task.task.clone_failures >= CLONE_FAILURES_MAX {
        Some(RefusalReason::CloneFailures)
    } else if clones_alive >= max_clones {
        Some(RefusalReason::Maximum)
    } else {
        None
    }
}

fn task_candidate(
    pass: &Pass<'_>,
    position: usize,
    state: &JobState<'_>,
    task: &TaskEstimate<'_>,
) -> Option<TaskCandidate> {
    let (law, slack) = (state.estimate.law?, state.estimate.slack?);
    let index = task.task.index;
    let node_of = |attempt: &AttemptEstimate| {
        let id = (position, index, attempt.number);
        attempt.node.or_else(|| pass.capacity.tentative_node(id))
    };
    let begin = task.resume.map_or(0.0, |point| point.progress);
    Some(TaskCandidate {
        index,
        launch: Launch {
            task: index,
            kind: AttemptKind::Clone,
            resume: task.resume.cloned(),
            avoid: Vec::new(),
            surge: false,
            reason: LaunchReason::Admitted,
        },
        nodes: task.attempts.iter().filter_map(node_of).collect(),
        ln_miss: state.ln_miss_kept(task),
        // Spec 7.2: a clone draws its remaining time from the job's law, and loses the launch
        // overhead δ of the slack.
        ln_miss_per_clone: ln_miss(begin, law.t_min, slack - pass.overhead, law.beta),
        cost: (1.0 - begin) * state.estimate.mean_run.unwrap_or(law.t_min),
        clones: 0,
        is_refused: false,
    })
}

/// Lets the greedy count in slots of the smallest demand, the most that could fit, and then
/// carries its clones out one by one in its order, each checked against real room: a job of
/// larger pods or without a node passes its turn.
fn share_out(
    pass: &mut Pass<'_>,
    mut jobs: Vec<Candidate>,
    mode: SpeculationMode,
    rule: GreedyMode,
) {
    let free = jobs
        .iter()
        .map(|job| pass.capacity.times_free(job.position));
    let kappa = free.max().unwrap_or(0).min(CLONES_PER_PASS_MAX);
    let input = GreedyInput {
        kappa: i64::from(kappa),
        jobs: jobs.iter().map(|job| job.greedy.clone()).collect(),
    };
    let outcome = alloc_task(&input, rule);
    for step in &outcome.steps {
        if let Some(candidate) = jobs.get_mut(step.job) {
            grant(pass, candidate, step.task, mode);
        }
    }
    for refused in &outcome.refused {
        let why = match refused.reason {
            greedy::RefusalReason::Hopeless => RefusalReason::Hopeless,
            greedy::RefusalReason::Capacity => RefusalReason::Capacity,
        };
        if let Some(candidate) = jobs.get(refused.job) {
            let unserved = candidate
                .tasks
                .iter()
                .filter(|t| t.clones == 0 && !t.is_refused);
            let refusals = unserved.map(|task| Refusal {
                task: task.index,
                why,
            });
            if let Some(state) = pass.jobs.get_mut(candidate.position) {
                state.refusals.extend(refusals);
            }
        }
    }
}

/// Gives the task one clone if there is room.
fn grant(pass: &mut Pass<'_>, candidate: &mut Candidate, at: usize, mode: SpeculationMode) {
    let position = candidate.position;
    let Some(task) = candidate.tasks.get_mut(at).filter(|t| !t.is_refused) else {
        return;
    };
    let node = match place(pass, position, &task.nodes) {
        Ok(node) => node,
        Err(why) => {
            task.is_refused = true;
            let task = task.index;
            if let Some(state) = pass.jobs.get_mut(position) {
                state.refusals.push(Refusal { task, why });
            }
            return;
        }
    };
    let mut launch = task.launch.clone();
    // Where no other node has room, the clone must be let onto the one that has.
    let chosen = pass
        .snapshot
        .nodes
        .get(node.0)
        .map(|node| node.name.clone());
    launch.avoid = pass.avoid(&task.nodes);
    launch.avoid.retain(|name| Some(name) != chosen.as_ref());
    task.nodes.push(node);
    task.clones += 1;
    let gain = gain_of_one_more(task.ln_miss, task.ln_miss_per_clone);
    task.ln_miss += task.ln_miss_per_clone;
    let (index, cost, is_first) = (task.index, task.cost, task.clones == 1);
    let Some(state) = pass.jobs.get_mut(position) else {
        return;
    };
    let before = state.ln_pocd_after.unwrap_or(f64::NEG_INFINITY);
    let after = if before.is_finite() {
        before + gain
    } else {
        candidate.ln_pocd()
    };
    let (pocd_before, pocd_after) = (probability(before), probability(after));
    state.ln_pocd_after = Some(after);
    state.clones.push(CloneReport {
        task: index,
        pocd_gain: (pocd_after - pocd_before).max(0.0),
        cost_slot_seconds: cost,
    });
    launch.reason = LaunchReason::Straggler {
        pocd_before,
        pocd_after,
    };
    if mode == SpeculationMode::Enabled {
        pass.launch(position, Some(node), launch);
        return;
    }
    if is_first {
        let (task, why) = (index, RefusalReason::Observe);
        state.refusals.push(Refusal { task, why });
    }
    // Nothing is served after those that observe, so that the room may be taken on paper.
    pass.capacity.launch(position, Some(node));
}

/// Where a clone of a task with attempts on `nodes` goes.
fn place(
    pass: &mut Pass<'_>,
    position: usize,
    nodes: &[NodeIndex],
) -> Result<NodeIndex, RefusalReason> {
    if pass.capacity.times_free(position) == 0 {
        return Err(RefusalReason::Capacity);
    }
    let node = pass.find_node(position, nodes);
    node.ok_or(RefusalReason::NoNode)
}
