//! Builders for tests, here and in other crates (feature `fixtures`): a snapshot in a few words. Times are seconds on
//! a clock on which jobs are submitted at 0 by default.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::{AttemptNumber, JobKey, NodeName, TaskIndex, Tenant};
use crate::index_set::IndexSet;
use crate::plan::{Launch, LaunchReason};
use crate::resources::Resources;
use crate::snapshot::{
    AttemptKind, AttemptSnapshot, AttemptState, Conclusion, EndRules, FailureRule, Idempotency,
    JobPhase, JobRules, JobSnapshot, KillKind, Node, NodeIndex, Obstacles, OnMiss, Preemption,
    Progress, Resume, ResumePoint, SlotTime, Snapshot, SpeculationMode, TaskSnapshot,
};
use crate::time::{Instant, Span};

mod plans;
pub use plans::{brief, findings, four_nodes, plan_of, report, slow, uneven};

/// A planned launch of the task's next attempt on any node.
pub fn launch(task: u32, kind: AttemptKind) -> Launch {
    Launch {
        task: TaskIndex(task),
        kind,
        resume: None,
        avoid: Vec::new(),
        rather_not: Vec::new(),
        node: None,
        surge: false,
        reason: LaunchReason::Admitted,
    }
}

/// An instant from seconds.
pub fn at(seconds: f64) -> Instant {
    Instant(Span::from_seconds_f64(seconds).0)
}

/// An attempt under construction.
#[derive(Debug, Clone)]
pub struct AttemptBuilder(AttemptSnapshot);

/// A running original that was launched at 0 and started at 1 s.
pub fn attempt(number: u32) -> AttemptBuilder {
    let kind = match number {
        0 => AttemptKind::Original,
        _ => AttemptKind::Clone,
    };
    AttemptBuilder(AttemptSnapshot {
        state: AttemptState::Running,
        started: Some(at(1.0)),
        ..AttemptSnapshot::pending(AttemptNumber(number), kind, at(0.0))
    })
}

impl AttemptBuilder {
    /// Launched at, and started one second later.
    pub fn launched(mut self, seconds: f64) -> Self {
        self.0.launched = at(seconds);
        self.0.started = self.0.started.map(|_| at(seconds + 1.0));
        self
    }

    /// As this kind; by default number 0 is the original and others are clones.
    pub fn kind(mut self, kind: AttemptKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Reported `value` at `seconds`, the first report having come one second after the start.
    pub fn progress(mut self, value: f64, seconds: f64) -> Self {
        let started = self.0.started.unwrap_or(self.0.launched);
        let first_at = started.plus(Span::from_seconds(1)).min(at(seconds));
        let begin = self.0.start_progress;
        let share = first_at.since(started).seconds() / at(seconds).since(started).seconds();
        self.0.progress = Some(Progress {
            first_at,
            first: if share.is_finite() {
                begin + (value - begin) * share
            } else {
                value
            },
            last_at: at(seconds),
            last: value,
        });
        self
    }

    /// Its first report was `value` at `seconds`; call it after [`Self::progress`].
    pub fn first_report(mut self, value: f64, seconds: f64) -> Self {
        if let Some(progress) = &mut self.0.progress {
            progress.first = value;
            progress.first_at = at(seconds);
        }
        self
    }

    /// Began at this progress.
    pub fn resumed_at(mut self, progress: f64) -> Self {
        self.0.start_progress = progress;
        self
    }

    /// Reported a checkpoint.
    pub fn checkpoint(mut self, progress: f64) -> Self {
        self.0.checkpoint = Some(resume_point(progress));
        self
    }

    /// Runs on this node.
    pub fn on(mut self, node: usize) -> Self {
        self.0.node = Some(NodeIndex(node));
        self
    }

    /// Carries a kill record of that instant.
    pub fn killed(mut self, kind: KillKind, seconds: f64) -> Self {
        self.0.kill = Some(kind);
        self.0.killed_at = Some(at(seconds));
        self
    }

    /// In this state; one that has not started has no start.
    pub fn state(mut self, state: AttemptState) -> Self {
        self.0.state = state;
        if matches!(
            state,
            AttemptState::Launching | AttemptState::Pending | AttemptState::Stuck { .. }
        ) {
            self.0.started = None;
        }
        self
    }

    /// Recorded, pod not seen.
    pub fn launching(self) -> Self {
        self.state(AttemptState::Launching)
    }

    /// Pod seen, not started.
    pub fn pending(self) -> Self {
        self.state(AttemptState::Pending)
    }

    /// Pod seen, and no scheduler places it.
    pub fn unplaceable(mut self) -> Self {
        self.0.unplaceable = true;
        self.pending()
    }

    /// Pod seen, and scheduling gates hold it back.
    pub fn gated(mut self) -> Self {
        self.0.gated = true;
        self.pending()
    }

    /// Runs, and its pod is not ready.
    #[must_use]
    pub fn unready(mut self) -> Self {
        self.0.unready = true;
        self
    }

    /// Can't start since.
    pub fn stuck(self, since: f64) -> Self {
        self.state(AttemptState::Stuck { since: at(since) })
    }

    /// Ended with 0 at.
    pub fn succeeded(self, finished: f64) -> Self {
        self.state(AttemptState::Succeeded {
            finished: at(finished),
        })
    }

    /// Whose end was first seen on a pod that was being deleted.
    pub fn in_deletion(mut self) -> Self {
        self.0.ended_in_deletion = true;
        self
    }

    /// Failed by itself at.
    pub fn failed(self, finished: f64) -> Self {
        self.state(AttemptState::Failed {
            finished: at(finished),
            disrupted: false,
        })
    }

    /// Whose failure comes under this rule of the user's.
    pub fn rule(mut self, rule: FailureRule) -> Self {
        self.0.failure_rule = Some(rule);
        self
    }

    /// Was disrupted at.
    pub fn disrupted(self, finished: f64) -> Self {
        self.state(AttemptState::Failed {
            finished: at(finished),
            disrupted: true,
        })
    }

    /// Runs on a node that is out of reach, and should be gone.
    pub fn out_of_reach(mut self) -> Self {
        self.0.out_of_reach = true;
        self
    }

    /// Vanished.
    pub fn lost(self) -> Self {
        self.state(AttemptState::Lost)
    }
}

/// A resume point with a checkpoint text made from its progress.
pub fn resume_point(progress: f64) -> ResumePoint {
    ResumePoint {
        progress,
        checkpoint: Arc::from(format!("at {progress}")),
    }
}

/// A job under construction.
#[derive(Debug, Clone)]
pub struct JobBuilder(JobSnapshot);

/// An active job of 4 tasks of 1 cpu each, submitted at 0 and due at 60 s, whose attempts
/// report progress; two live copies are harmless, clones start over, the deadline is soft.
pub fn job(key: &str) -> JobBuilder {
    let rules = JobRules {
        completions: 4,
        parallelism: u32::MAX,
        idempotency: Idempotency::Safe,
        resume: Resume::None,
        speculation: SpeculationMode::Enabled,
        max_clones_per_task: 5,
        target_pocd: None,
        clone_budget: None,
        on_miss: OnMiss::Continue,
        backoff_limit_per_index: 3,
        suspend: false,
        replaces_when_gone: false,
        preemption: Preemption::Never,
        ending: EndRules::default(),
    };
    JobBuilder(JobSnapshot {
        key: JobKey::from(key),
        tenant: Tenant::from("default"),
        class: None,
        expected_duration: None,
        submitted: at(0.0),
        deadline: Some(at(60.0)),
        rules,
        phase: JobPhase::Active,
        launched_before: true,
        reports_progress: true,
        demand: demand(1000),
        eligible_nodes: Arc::from([]),
        done: IndexSet::new(),
        failed: IndexSet::new(),
        tasks: Vec::new(),
        ended_runs: Vec::new(),
        ended_slot_time: SlotTime::default(),
        launch_not_before: None,
        obstacles: Obstacles::default(),
        failures: 0,
        time_limit: None,
        facts_as_of: at(0.0),
        asks_feasibility: false,
        avoid: Vec::new(),
        admitted: None,
        is_stage: false,
        phases: None,
    })
}

fn demand(milli_cpu: i64) -> Resources {
    Resources::from_pairs([("cpu", milli_cpu), ("pods", 1)])
}

impl JobBuilder {
    /// Any change without a method of its own here.
    pub fn with(mut self, change: impl FnOnce(&mut JobSnapshot)) -> Self {
        change(&mut self.0);
        self
    }

    /// Submitted at; the deadline moves along.
    pub fn submitted(self, seconds: f64) -> Self {
        self.with(|job| {
            let moved = at(seconds).since(job.submitted);
            job.submitted = at(seconds);
            job.deadline = job.deadline.map(|deadline| deadline.plus(moved));
        })
    }

    /// Due this long after its submission.
    pub fn deadline_in(self, seconds: f64) -> Self {
        self.with(|job| job.deadline = Some(job.submitted.plus(Span::from_seconds_f64(seconds))))
    }

    /// Without a deadline.
    pub fn without_deadline(self) -> Self {
        self.with(|job| job.deadline = None)
    }

    /// With this PoCD target.
    pub fn target(self, pocd: f64) -> Self {
        self.with(|job| job.rules.target_pocd = Some(pocd))
    }

    /// With this budget of clones.
    pub fn clone_budget(self, share: f64) -> Self {
        self.with(|job| job.rules.clone_budget = Some(share))
    }

    /// With this many tasks.
    pub fn tasks(self, completions: u32) -> Self {
        self.with(|job| job.rules.completions = completions)
    }

    /// With at most this many tasks at a time.
    pub fn parallelism(self, tasks: u32) -> Self {
        self.with(|job| job.rules.parallelism = tasks)
    }

    /// Admitted by a quota outside shed, with this many attempts at a time.
    pub fn admitted(self, attempts: u32) -> Self {
        self.with(|job| job.admitted = Some(attempts))
    }

    /// Of this tenant.
    pub fn tenant(self, tenant: &str) -> Self {
        self.with(|job| job.tenant = Tenant::from(tenant))
    }

    /// Whose attempts each request this much cpu.
    pub fn cpu(self, milli_cpu: i64) -> Self {
        self.with(|job| job.demand = demand(milli_cpu))
    }

    /// Whose tasks must never have two attempts at once.
    pub fn not_idempotent(self) -> Self {
        self.with(|job| job.rules.idempotency = Idempotency::None)
    }

    /// Whose tasks each let only one attempt publish.
    pub fn fenced(self) -> Self {
        self.with(|job| job.rules.idempotency = Idempotency::Fenced)
    }

    /// Whose clones begin at checkpoints.
    pub fn resumes(self) -> Self {
        self.with(|job| job.rules.resume = Resume::Checkpoint)
    }

    /// With this speculation mode.
    pub fn speculation(self, mode: SpeculationMode) -> Self {
        self.with(|job| job.rules.speculation = mode)
    }

    /// With at most this many clones per task.
    pub fn max_clones(self, clones: u32) -> Self {
        self.with(|job| job.rules.max_clones_per_task = clones)
    }

    /// Whose attempts stop at its deadline.
    pub fn stops_at_deadline(self) -> Self {
        self.with(|job| job.rules.on_miss = OnMiss::Fail)
    }

    /// With that back-off limit.
    pub fn backoff_limit_per_index(self, failures: u32) -> Self {
        self.with(|job| job.rules.backoff_limit_per_index = failures)
    }

    /// Suspended by its user.
    pub fn suspended(self) -> Self {
        self.with(|job| job.rules.suspend = true)
    }

    /// Whose attempts report nothing.
    pub fn silent(self) -> Self {
        self.with(|job| job.reports_progress = false)
    }

    /// Whose result is recorded.
    pub fn ending(self, conclusion: Conclusion) -> Self {
        self.with(|job| job.phase = JobPhase::Ending(conclusion))
    }

    /// Facts are complete up to.
    pub fn facts_as_of(self, seconds: f64) -> Self {
        self.with(|job| job.facts_as_of = at(seconds))
    }

    /// Without any launch so far.
    pub fn never_launched(self) -> Self {
        self.with(|job| job.launched_before = false)
    }

    /// These tasks have winners and no attempts any more.
    pub fn done(self, tasks: impl IntoIterator<Item = u32>) -> Self {
        self.with(|job| {
            for index in tasks {
                job.done.insert(TaskIndex(index));
            }
        })
    }

    /// These tasks have failed for good.
    pub fn failed(self, tasks: impl IntoIterator<Item = u32>) -> Self {
        self.with(|job| {
            for index in tasks {
                job.failed.insert(TaskIndex(index));
            }
        })
    }

    /// With winners that took these numbers of seconds.
    pub fn ended_runs(self, seconds: impl IntoIterator<Item = f64>) -> Self {
        self.with(|job| {
            let spans = seconds.into_iter().map(Span::from_seconds_f64);
            job.ended_runs.extend(spans);
        })
    }

    /// Task `index` has these attempts.
    pub fn task(self, index: u32, attempts: impl IntoIterator<Item = AttemptBuilder>) -> Self {
        self.task_with(index, attempts, |_| ())
    }

    /// Task `index` has these attempts and this history.
    pub fn task_with(
        mut self,
        index: u32,
        attempts: impl IntoIterator<Item = AttemptBuilder>,
        history: impl FnOnce(&mut TaskSnapshot),
    ) -> Self {
        let mut task = TaskSnapshot {
            index: TaskIndex(index),
            winner: None,
            attempts: attempts.into_iter().map(|builder| builder.0).collect(),
            failures: 0,
            clone_failures: 0,
            retry_not_before: None,
            resume_point: None,
            grant: None,
            avoid: Vec::new(),
            clone_disrupted: None,
        };
        history(&mut task);
        if task.winner.is_some() {
            self.0.done.insert(task.index);
        }
        let position = self
            .0
            .tasks
            .partition_point(|other| other.index < task.index);
        self.0.tasks.insert(position, task);
        self
    }

    /// The job, eligible for no node: enough for `settle`.
    pub fn build(self) -> JobSnapshot {
        self.0
    }
}

/// A cluster under construction.
#[derive(Debug, Clone)]
pub struct World {
    snapshot: Snapshot,
}

/// A cluster at `now` seconds of `nodes` equal nodes with `milli_cpu` and 110 pods each.
pub fn world(now: f64, nodes: usize, milli_cpu: i64) -> World {
    let allocatable = Resources::from_pairs([("cpu", milli_cpu), ("pods", 110)]);
    let nodes = (0..nodes).map(|number| Node {
        name: NodeName::from(format!("node-{number}").as_str()),
        allocatable: allocatable.clone(),
        free: allocatable.clone(),
        used_by_others: Resources::default(),
        usable: true,
    });
    World {
        snapshot: Snapshot {
            now: at(now),
            nodes: nodes.collect(),
            jobs: Vec::new(),
            launch_overhead: None,
            launch_overheads: BTreeMap::new(),
            weights: BTreeMap::new(),
        },
    }
}

impl World {
    /// Gives a tenant a weight, so that tenants divide the capacity.
    pub fn weight(mut self, tenant: &str, weight: f64) -> Self {
        self.snapshot.weights.insert(Tenant::from(tenant), weight);
        self
    }

    /// Adds a job; one without eligible nodes may use all that are usable.
    pub fn job(mut self, builder: JobBuilder) -> Self {
        let mut job = builder.0;
        if job.eligible_nodes.is_empty() {
            let nodes = (0..self.snapshot.nodes.len()).map(NodeIndex);
            let usable = nodes.filter(|node| self.snapshot.nodes[node.0].usable);
            job.eligible_nodes = usable.collect();
        }
        job.facts_as_of = job.facts_as_of.max(self.snapshot.now);
        self.snapshot.jobs.push(job);
        self
    }

    /// Pods of others request this much on a node.
    pub fn others(mut self, node: usize, milli_cpu: i64) -> Self {
        self.snapshot.nodes[node]
            .used_by_others
            .add(&demand(milli_cpu));
        self
    }

    /// A node takes no attempts, as if it were cordoned.
    pub fn unusable(mut self, node: usize) -> Self {
        self.snapshot.nodes[node].usable = false;
        self
    }

    /// The measured launch overhead.
    pub fn launch_overhead(mut self, seconds: f64) -> Self {
        self.snapshot.launch_overhead = Some(Span::from_seconds_f64(seconds));
        self
    }

    /// The snapshot, with the free amounts of each node computed.
    pub fn build(mut self) -> Snapshot {
        for node in &mut self.snapshot.nodes {
            node.free = node.allocatable.clone();
            node.free.subtract(&node.used_by_others);
        }
        for job in &self.snapshot.jobs {
            let placed = job.tasks.iter().flat_map(|task| &task.attempts);
            for attempt in placed.filter(|attempt| attempt.holds_capacity()) {
                if let Some(node) = attempt.node {
                    self.snapshot.nodes[node.0].free.subtract(&job.demand);
                }
            }
        }
        let jobs = &mut self.snapshot.jobs;
        jobs.sort_by(|a, b| (a.submitted, &a.key).cmp(&(b.submitted, &b.key)));
        self.snapshot
    }
}
