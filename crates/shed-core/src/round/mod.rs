//! A planning pass in progress: the state of the jobs, the remaining capacity, and the plan so far. `decide` drives
//! it. A policy reads it through a [`Desk`](crate::policy::Desk), and requests clones and stops that are granted and
//! recorded here.

use std::collections::BTreeSet;

use crate::capacity::{Capacity, Holdings, NodeQueue, UnusableNodes};
use crate::estimate::fit::DistributionChoice;
use crate::ids::{AttemptNumber, JobKey, NodeName, TaskIndex};
use crate::memory::{Arrivals, CloneGains, Memory, Restarts, ShownTimes};
use crate::plan::{CapacityReport, Kill, Launch, Move, Plan, PlanReport, PlannedMove};
use crate::snapshot::{AttemptKind, JobSnapshot, KillKind, NodeIndex, Snapshot};
use crate::time::{Instant, Span};

pub mod clones;
mod draft;
pub(crate) mod estimates;
mod expected_ends;
pub(crate) mod findings;
mod findings_cache;
pub(crate) mod job;
mod job_distribution;
mod job_pocd;
mod job_size;
pub mod levels;
mod memory_update;
mod risk;
pub(crate) mod shares;
pub(crate) mod slow_nodes;
mod specification;
mod step_budget;
pub(crate) mod task_state;

pub use draft::{JobDraft, ValueDensity};
pub(crate) use estimates::REPORTS_MIN;
pub use estimates::{AttemptEstimate, JobEstimate, TaskEstimate};
pub use findings::JobFindings;
pub(crate) use findings_cache::REST_MAX;
pub use findings_cache::{Appointment, Changed, News};
pub(crate) use findings_cache::{FindingsCache, Origin};
pub use job::JobView;
use job_distribution::Learner;
pub(crate) use job_pocd::FURTHER_ATTEMPTS;
pub(crate) use memory_update::MemoryUpdate;
use shares::Shares;
use slow_nodes::Beliefs;
use step_budget::StepBudget;

/// The parameters of the policy and its settings that a pass needs.
pub(crate) struct Terms<'p> {
    /// t_avg until one is measured.
    pub(crate) launch_overhead: Span,
    /// Whether the pass looks at every job, whatever has changed, and no news wait for the next one.
    pub(crate) looks_at_all: bool,
    /// How long a task gets no clone after one of its clones was disrupted, given the time of its job and t_avg.
    pub(crate) clone_rest: &'p dyn Fn(Option<Span>, f64) -> Span,
    /// How many further attempts of a running task count towards its job's expected PoCD.
    pub(crate) further_attempts: u32,
    /// The distribution of attempt durations.
    pub(crate) distribution: DistributionChoice,
    /// λ, the share of the cluster that attempts may use.
    pub(crate) capacity_share: f64,
    /// The usual error of a report, for a policy that takes reports as noisy.
    pub(crate) report_error: Option<f64>,
    /// The work budget.
    pub(crate) work_max: u64,
}

/// A planning pass in progress.
pub struct Round<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) memory: &'a Memory,
    pub(crate) capacity: Capacity,
    /// The division of capacity between tenants.
    pub(crate) shares: Shares,
    /// The jobs, in the snapshot's order.
    pub(crate) jobs: Vec<JobView<'a>>,
    /// Their positions by submission, then by key.
    by_submission: Vec<usize>,
    beliefs: Beliefs,
    /// The results of attempts on nodes where slow ones were given up.
    pub(crate) restarts: Restarts,
    /// The demands of the jobs that arrived lately.
    pub(crate) arrivals: Arrivals,
    /// What clones have gained.
    pub(crate) clone_gains: CloneGains,
    /// The task times that recent jobs have shown.
    pub(crate) shown_times: ShownTimes,
    /// Nodes where capacity that comes free is reserved for waiting first attempts.
    pub(crate) reserved: Vec<NodeIndex>,
    /// The keys of jobs of the pass before that are gone; absent if the pass looks at every job.
    pub(crate) gone: Option<Vec<JobKey>>,
    /// The positions of the jobs whose tasks still wait after admission, in the order of service, with the number of
    /// attempts that each could still get; absent where that order changes with each attempt.
    pub(crate) queue: Option<Vec<(usize, u32)>>,
    steps: StepBudget,
    kills: Vec<PlannedMove>,
    launches: Vec<PlannedMove>,
    /// The positions of the jobs that the plan launches attempts for.
    launching: Vec<usize>,
    next: Option<Instant>,
}

impl<'a> Round<'a> {
    /// A pass that looks at the jobs that have changed or are due. The others are as `kept` by the pass before.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        memory: &'a Memory,
        terms: &Terms<'_>,
        kept: FindingsCache,
        changed: Changed<'_>,
    ) -> Self {
        let changed = match terms.looks_at_all {
            true => Changed::All,
            false => changed,
        };
        let unmeasured = terms.launch_overhead;
        let unusable = UnusableNodes::of(snapshot);
        let look = |job: &'a JobSnapshot| {
            let measured = snapshot.launch_overhead_of(&job.tenant);
            let t_avg = measured.unwrap_or(unmeasured).seconds().max(0.0);
            let mut found = JobFindings::of_look(snapshot.now, t_avg, job, &unusable);
            found.is_followed = matches!(changed, Changed::Marked(_));
            found.is_patient = !terms.looks_at_all;
            JobView::new(job, found)
        };
        let (mut jobs, gone) = kept.views(snapshot, &unusable, changed, look);
        let beliefs = slow_nodes::beliefs(snapshot, &jobs, memory);
        let learner = Learner::new(&jobs, memory, terms);
        for state in &mut jobs {
            state.judge(&learner, &beliefs, terms);
        }
        let holdings: Vec<Holdings> = jobs.iter().map(|state| state.holdings).collect();
        let capacity = Capacity::with(snapshot, terms.capacity_share, &holdings, unusable);
        Self {
            snapshot,
            memory,
            shares: Shares::of(snapshot, &jobs, &capacity, memory.tenant_use()),
            capacity,
            beliefs,
            restarts: memory.restarts().clone(),
            arrivals: memory.arrivals().clone(),
            clone_gains: memory.clone_gains().clone(),
            shown_times: memory.shown_times().clone(),
            reserved: Vec::new(),
            jobs,
            by_submission: by_submission(snapshot),
            gone,
            queue: None,
            steps: StepBudget::new(terms.work_max),
            kills: Vec::new(),
            launches: Vec::new(),
            launching: Vec::new(),
            next: None,
        }
    }

    /// Requests a pass at `at`, if that is still to come.
    pub(crate) fn wake_at(&mut self, at: Option<Instant>) {
        let at = at.filter(|&at| at > self.snapshot.now);
        self.next = self.next.into_iter().chain(at).min();
    }

    /// Stops an attempt of the job at `position` in favor of something else, relying on `survivor`. Without a
    /// survivor a later pass launches the task again.
    pub(crate) fn kill(
        &mut self,
        position: usize,
        (task, attempt): (TaskIndex, AttemptNumber),
        kind: KillKind,
        survivor: Option<AttemptNumber>,
    ) {
        let Some(state) = self.jobs.get_mut(position) else {
            return;
        };
        let report = state.weigh_kill((task, attempt), kind, survivor);
        state.draft.kills.push(report);
        state.draft.doomed.insert((task, attempt));
        let survivors = survivor.map(|survivor| (task, survivor));
        state.draft.survivors.extend(survivors);
        self.kills.push(PlannedMove {
            job: state.job.key.clone(),
            action: Move::Kill(Kill {
                task,
                attempt,
                kind,
                survivor,
            }),
        });
        let mut attempts = state.job.task(task).into_iter().flat_map(|t| &t.attempts);
        let victim = attempts.find(|a| a.number == attempt);
        // A pod that holds no capacity releases none.
        if victim.is_none_or(|victim| state.job.takes_capacity(victim)) {
            let node = victim.and_then(|a| a.node);
            self.capacity.kill((position, task, attempt), node);
            self.shares.stop(&self.capacity, position);
        }
    }

    /// Launches an attempt of the job at `position`; `node` has capacity for it.
    pub(crate) fn launch(&mut self, position: usize, node: Option<NodeIndex>, launch: Launch) {
        let mut is_probe = false;
        if let Some(state) = self.jobs.get_mut(position) {
            is_probe = state.job.obstacles.no_node && launch.surge;
            // A pod beyond capacity holds nothing.
            if !launch.surge {
                let expected = state.estimate.mean_run.filter(|run| run.is_finite());
                let seconds = [state.t_avg, expected.unwrap_or(0.0)];
                self.shares.launch(&self.capacity, position, seconds);
            }
            if state.draft.launched == 0 {
                self.launching.push(position);
            }
            state.draft.launched += 1;
            self.launches.push(PlannedMove {
                job: state.job.key.clone(),
                action: Move::Launch(launch),
            });
        }
        // No node could hold the attempt, so it takes no capacity from others.
        if !is_probe {
            self.capacity.launch(position, node);
        }
    }

    /// Allocates memory for the launches of a job with this number of attempts to launch.
    pub(crate) fn expect_launches(&mut self, position: usize, attempts: u32) {
        let fitting = self.capacity.times_left(position).min(attempts);
        self.launches.reserve(fitting as usize);
    }

    /// Nodes that the attempts of the job's tenant show to be slow, ascending.
    pub(crate) fn slow(&self, position: usize) -> &[NodeIndex] {
        let state = self.jobs.get(position);
        state.map_or(&[], |state| self.beliefs.slow(state.view))
    }

    /// Nodes that are slow only if the attempts of other tenants count too, ascending.
    pub(crate) fn doubtful(&self, position: usize) -> &[NodeIndex] {
        let state = self.jobs.get(position);
        state.map_or(&[], |state| self.beliefs.doubtful(state.view))
    }

    /// Whether the job's clones avoid the node, because attempts of its tenant are slow there.
    pub(crate) fn is_slow(&self, position: usize, node: NodeIndex) -> bool {
        self.slow(position).binary_search(&node).is_ok()
    }

    /// The content of `Launch::avoid` for an attempt of the job: these nodes and the slow ones.
    pub(crate) fn avoid(
        &self,
        position: usize,
        nodes: impl IntoIterator<Item = NodeIndex>,
    ) -> Vec<NodeName> {
        self.names(nodes.into_iter().chain(self.slow(position).iter().copied()))
    }

    /// The content of `Launch::rather_not` for a clone: these nodes and the doubtful ones, without those that the
    /// clone avoids.
    pub(crate) fn rather_not(
        &self,
        position: usize,
        nodes: &[NodeIndex],
        avoided: &[NodeName],
    ) -> Vec<NodeName> {
        let doubtful = self.doubtful(position).iter();
        let mut names = self.names(doubtful.chain(nodes).copied());
        names.retain(|name| !avoided.contains(name));
        names
    }

    /// The names of these nodes, each once.
    pub(crate) fn names(&self, nodes: impl IntoIterator<Item = NodeIndex>) -> Vec<NodeName> {
        let nodes: BTreeSet<NodeIndex> = nodes.into_iter().collect();
        let known = nodes
            .into_iter()
            .filter_map(|node| self.snapshot.nodes.get(node.0));
        known.map(|node| node.name.clone()).collect()
    }

    /// The positions of the jobs by submission, then by key. A job's position in the snapshot does not matter.
    pub(crate) fn by_submission(&self) -> Vec<usize> {
        self.by_submission.clone()
    }

    /// A node with capacity for an attempt of the job that no waiting first attempt counts on. It is one of `avoid`
    /// only if no other node has such capacity.
    pub(crate) fn find_node(&mut self, position: usize, avoid: &[NodeIndex]) -> Option<NodeIndex> {
        let state = self.jobs.get_mut(position)?;
        let demand = self.capacity.demands.get(position)?;
        let (now, after) = (&self.capacity.free, &self.capacity.free_after_kills);
        let (job, beliefs, view) = (state.job, &self.beliefs, state.view);
        let queue = state.draft.queue.get_or_insert_with(|| {
            let worse = [beliefs.doubtful(view), beliefs.slow(view)];
            NodeQueue::new(job, demand, now, worse)
        });
        let fits = |node| now.fits_node(node, demand) && after.fits_node(node, demand);
        queue.find(fits, avoid)
    }

    /// Whether the node is eligible for the job and has capacity for an attempt that no waiting first attempt counts
    /// on.
    pub(crate) fn may_take(&self, position: usize, node: NodeIndex) -> bool {
        let state = self.jobs.get(position);
        let demand = self.capacity.demands.get(position);
        state.zip(demand).is_some_and(|(state, demand)| {
            let both = [&self.capacity.free, &self.capacity.free_after_kills];
            both.iter().all(|free| free.fits_node(node, demand))
                && state.job.eligible_nodes.binary_search(&node).is_ok()
        })
    }

    /// Whether the cluster's scheduler could place an attempt meant for `node` on capacity that a waiting first
    /// attempt counts on. The scheduler chooses among all nodes that have capacity now. Clones evicted for that first
    /// attempt would then be lost in vain, and again in every pass.
    pub(crate) fn could_displace(&self, position: usize, node: NodeIndex) -> bool {
        let state = self.jobs.get(position);
        let demand = self.capacity.demands.get(position);
        state.zip(demand).is_some_and(|(state, demand)| {
            let (now, after) = (&self.capacity.free, &self.capacity.free_after_kills);
            let mut others = self.reserved.iter().filter(|&&other| other != node);
            others.any(|&other| {
                now.fits_node(other, demand)
                    && !after.fits_node(other, demand)
                    && state.job.eligible_nodes.binary_search(&other).is_ok()
            })
        })
    }

    /// The plan, what the pass has learned, and the findings for the next pass.
    pub(crate) fn finish(mut self) -> (Plan, MemoryUpdate, FindingsCache) {
        let snapshot = self.snapshot;
        let mut used_after = self.capacity.used.clone();
        let shares = self.shares.report(snapshot.now, &self.jobs, &self.capacity);
        let mut update = MemoryUpdate::of(&mut self);
        let mut jobs = Vec::with_capacity(self.jobs.len());
        for state in &mut self.jobs {
            if state.draft.launched > 0 {
                used_after.add_times(&state.job.demand, state.draft.launched);
            }
            update.add(snapshot.now, state);
            jobs.push(state.report(snapshot));
        }
        let mut launches = self.launches;
        // A policy may have decided on clones first. The capacity suffices for all launches.
        launches.sort_by_key(|planned| is_clone(&planned.action));
        let mut actions = self.kills;
        if actions.is_empty() {
            actions = launches;
        } else {
            actions.extend(launches);
        }
        let (kept, next_look) = FindingsCache::of(snapshot, self.capacity.unusable, self.jobs);
        let report = PlanReport {
            capacity: CapacityReport {
                usable: self.capacity.usable,
                used: self.capacity.used,
                used_after,
            },
            jobs,
            next_pass: self.next.into_iter().chain(next_look).min(),
            shares,
        };
        (Plan { actions, report }, update, kept)
    }
}

fn by_submission(snapshot: &Snapshot) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..snapshot.jobs.len()).collect();
    positions.sort_by_key(|&at| snapshot.jobs.get(at).map(|job| (job.submitted, &job.key)));
    positions
}

/// A number in its total order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(pub f64);

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

fn is_clone(action: &Move) -> bool {
    matches!(action, Move::Launch(launch) if launch.kind == AttemptKind::Clone)
}
