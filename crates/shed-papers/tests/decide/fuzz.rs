//! `decide` on any valid facts that bytes can encode: strange, extreme or contradictory ones. Also properties that
//! must not depend on the unit of time.

use std::collections::BTreeMap;

use bolero::check;
use proptest::prelude::*;
use shed_core::decide::{Changed, News, Planner, decide};
use shed_core::estimate::fit::DistributionChoice;
use shed_core::fixtures::{
    AttemptBuilder, JobBuilder, at, attempt, brief, job, resume_point, world,
};
use shed_core::ids::{AttemptNumber, JobKey, NodeName, Tenant};
use shed_core::memory::{JobMemory, Memory, NodeSlowness, SlowNodes};
use shed_core::plan::{Move, Plan};
use shed_core::plan_check::plan_check;
use shed_core::policy::{Hedge, Order, Policy, ShedPrime, Speculation};
use shed_core::resources::Resources;
use shed_core::snapshot::{
    AttemptKind, AttemptSnapshot, AttemptState, Conclusion, KillKind, NodeIndex, Snapshot,
    SpeculationMode, TaskSnapshot,
};
use shed_core::time::{Instant, Span};
use shed_papers::{ShedPlus, Utility};

use super::properties::registry;

/// Reads facts from bytes; after the last one come zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    fn below(&mut self, bound: u8) -> u8 {
        self.byte() % bound
    }

    fn is(&mut self, one_in: u8) -> bool {
        self.below(one_in) == 1
    }

    /// In [0, 1]; often at its ends or next to them.
    fn share(&mut self) -> f64 {
        match self.byte() {
            0 => 0.0,
            1 => 1.0,
            2 => 5e-324,
            3 => 1e-12,
            4 => 1.0 - f64::EPSILON,
            other => f64::from(other) / 256.0 + f64::from(self.byte()) / 65536.0,
        }
    }

    /// Seconds: around the 100 s that the clock shows, or very far from it.
    fn seconds(&mut self) -> f64 {
        match self.below(32) {
            0 => 0.0,
            1 => 0.001,
            2 => 99.999,
            3 => 1e6,
            4 => 1e12,
            _ => f64::from(self.byte()) + f64::from(self.byte()) / 256.0,
        }
    }

    fn attempt(&mut self, number: u32, nodes: u8) -> AttemptBuilder {
        let mut built = attempt(number).launched(self.seconds());
        if self.is(4) {
            let begin = self.share().min(1.0 - f64::EPSILON);
            built = built.resumed_at(begin).checkpoint(self.share());
        }
        built = match self.below(13) {
            0 => built.launching(),
            7 => built.unplaceable(),
            1 => built.pending(),
            2 => built.stuck(self.seconds()),
            3 => built.failed(self.seconds()),
            4 => built.succeeded(self.seconds()),
            5 => built.lost(),
            6 => built.disrupted(self.seconds()),
            _ => {
                let running = built.on(usize::from(self.below(nodes)));
                if self.is(3) {
                    running
                } else {
                    let (value, first) = (self.share(), self.share());
                    let (last_at, first_at) = (self.seconds(), self.seconds());
                    let reported = running.progress(value, last_at.max(first_at));
                    reported.first_report(value.min(first), first_at.min(last_at))
                }
            }
        };
        if self.is(8) {
            let kinds = [
                KillKind::Settle,
                KillKind::Prune,
                KillKind::Evict,
                KillKind::Replace,
            ];
            let kind = kinds[usize::from(self.below(4))];
            built = built.killed(kind, self.seconds());
        }
        built
    }

    fn job(&mut self, name: &str, nodes: u8) -> JobBuilder {
        let tasks = u32::from(self.below(6));
        let mut builder = job(name)
            .tasks(tasks + u32::from(self.below(20)))
            .parallelism(u32::from(self.below(12)))
            .cpu(i64::from(self.byte()) * 40)
            .submitted(self.seconds())
            .deadline_in(self.seconds())
            .max_clones(u32::from(self.below(8)))
            .backoff_limit_per_index(u32::from(self.below(3)));
        let tenant = self.tenant();
        builder = builder.with(|job| job.tenant = tenant);
        let runs = self.below(6);
        builder = builder.ended_runs((0..runs).map(|_| self.seconds()).collect::<Vec<_>>());
        builder = match self.below(20) {
            0 => builder.suspended(),
            1 => builder.ending(Conclusion::FailedIndexes),
            2 => builder.not_idempotent(),
            3 => builder.with(|job| job.launch_not_before = Some(at(101.0))),
            4 => builder.with(|job| job.deadline = None),
            5 => builder.with(|job| job.eligible_nodes = [].into()),
            6 => builder.silent(),
            7 => builder.speculation(SpeculationMode::Observe),
            8 => builder.speculation(SpeculationMode::Disabled),
            9 => builder.with(|job| job.demand = Resources::default()),
            10 => builder.never_launched(),
            11 => builder.with(|job| job.obstacles.no_node = true),
            12 => builder.with(|job| job.obstacles.attempts_max = Some(3)),
            13 => builder.with(|job| job.obstacles.clones_not_before = Some(at(101.0))),
            14 => builder.with(|job| job.obstacles.clones_stopped = true),
            15 => builder.clone_budget(0.0),
            16 => builder.clone_budget(f64::from(self.byte()) / 64.0),
            17 => builder.admitted(2),
            _ => builder.resumes(),
        };
        for index in 0..tasks {
            builder = self.task(builder, index, nodes);
        }
        builder
    }

    fn task(&mut self, builder: JobBuilder, index: u32, nodes: u8) -> JobBuilder {
        let count = u32::from(self.below(5));
        let attempts: Vec<AttemptBuilder> = (0..count)
            .map(|number| self.attempt(number, nodes))
            .collect();
        let (failures, fate, resume) = (u32::from(self.below(4)), self.below(10), self.share());
        let builder = builder.task_with(index, attempts, |task| {
            for attempt in &mut task.attempts {
                attempt.kind = match attempt.number {
                    AttemptNumber(0) => AttemptKind::Original,
                    AttemptNumber(3) => AttemptKind::Retry,
                    _ => AttemptKind::Clone,
                };
            }
            (task.failures, task.clone_failures) = (failures, failures);
            match fate {
                0 => task.winner = Some(AttemptNumber(9)),
                1 => task.retry_not_before = Some(at(102.0)),
                2 => task.resume_point = Some(resume_point(resume)),
                _ => {}
            }
        });
        match fate {
            3 => builder.failed([index]),
            4 => builder.done([index]),
            _ => builder,
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let nodes = self.below(4) + 1;
        let milli_cpu = i64::from(self.byte()) * 50;
        let mut cluster = world(100.0, usize::from(nodes), milli_cpu);
        if self.is(2) {
            cluster = cluster.others(0, i64::from(self.byte()) * 50);
        }
        if self.is(2) {
            cluster = cluster.launch_overhead(self.seconds());
        }
        if self.is(4) {
            cluster = cluster.unusable(usize::from(self.below(nodes)));
        }
        for number in 0..self.below(5) {
            cluster = cluster.job(self.job(&format!("job-{number}"), nodes));
        }
        cluster.build()
    }

    fn order(&mut self) -> Order {
        Order::ALL[usize::from(self.below(Order::ALL.len() as u8))]
    }

    fn utility(&mut self) -> Utility {
        Utility::ALL[usize::from(self.below(5))]
    }

    fn policy(&mut self) -> Policy {
        let registry = registry();
        let all = registry.all();
        let mut speculation = all[usize::from(self.byte()) % all.len()].clone();
        if let Some(plus) = speculation.as_rule::<ShedPlus>() {
            let mut plus = plus.clone();
            plus.utility = self.utility();
            plus.joint = self.byte() < 128;
            (plus.xi, plus.theta) = (self.share(), self.share());
            plus.max_clones = u32::from(self.below(21));
            plus.min_interval = Span::from_seconds_f64(self.seconds().clamp(0.1, 3600.0));
            speculation = Speculation::new(plus);
        }
        Policy {
            order: self.order(),
            distribution: DistributionChoice::ALL[usize::from(self.below(5))],
            speculation,
            capacity_share: self.share().max(1e-3),
            surge_max: u32::from(self.below(3)),
            ..Policy::default()
        }
    }

    fn memory(&mut self) -> Memory {
        let mut memory = Memory::default();
        for number in 0..self.below(5) {
            let last_optimized = Some(at(self.seconds()));
            let key = JobKey::from(format!("job-{number}").as_str());
            memory.set(key, JobMemory { last_optimized });
        }
        memory.set_slow_nodes(self.slow_nodes());
        memory
    }

    fn tenant(&mut self) -> Tenant {
        let tenants = ["default", "other", "third"];
        Tenant::from(tenants[usize::from(self.below(3))])
    }

    fn slow_nodes(&mut self) -> SlowNodes {
        let slow = (0..self.below(4)).map(|node| {
            let slowness = NodeSlowness {
                ln_ratio: 8.0 * self.share(),
                weight: self.share(),
                seen: at(self.seconds()),
            };
            let of_node = BTreeMap::from([(self.tenant(), slowness)]);
            (NodeName::from(format!("node-{node}").as_str()), of_node)
        });
        slow.collect()
    }
}

/// Probabilities are in [0, 1], gains and costs are finite, and no figure is negative.
fn has_sound_numbers(plan: &Plan) -> bool {
    plan.report.jobs.iter().all(|job| {
        let mut pocds = job.pocd_before.iter().chain(&job.pocd_after);
        let sound = |amount: f64| amount.is_finite() && amount >= 0.0;
        let mut clones = job.clones.iter();
        let kills = job.kills.iter();
        let kills = kills.flat_map(|kill| [kill.freed_slot_seconds, kill.miss_added]);
        let mut amounts = kills.flatten().chain(job.attempt_slot_seconds);
        pocds.all(|pocd| (0.0..=1.0).contains(pocd))
            && clones.all(|clone| sound(clone.pocd_gain) && sound(clone.cost_slot_seconds))
            && amounts.all(f64::is_finite)
    })
}

#[test]
fn no_bytes_make_decide_panic_or_break_a_rule() {
    check!()
        .with_iterations(4_000)
        .with_max_len(700)
        .for_each(|bytes: &[u8]| {
            let mut bytes = Bytes(bytes);
            let (policy, memory) = (bytes.policy(), bytes.memory());
            let snapshot = bytes.snapshot();
            let (plan, _) = decide(&snapshot, memory, &policy);
            assert_eq!(plan_check(&snapshot, &policy, &plan), []);
            assert!(has_sound_numbers(&plan), "{:?}", plan.report);
        });
}

/// The snapshot some time later, with other facts of some jobs, and the marks of these.
fn later(mut snapshot: Snapshot, bytes: &mut Bytes<'_>) -> (Snapshot, Vec<bool>) {
    let passed = [0.0, 0.001, 0.5, 7.0, 400.0];
    let passed = passed[usize::from(bytes.below(5))];
    snapshot.now = snapshot.now.plus(Span::from_seconds_f64(passed));
    let (now, nodes) = (snapshot.now, snapshot.nodes.len());
    let mut marked = Vec::new();
    for job in &mut snapshot.jobs {
        let has_changed = bytes.is(2);
        let tasks = job.tasks.iter_mut().filter(|_| has_changed);
        for task in tasks {
            evolve(task, now, nodes, bytes);
        }
        marked.push(has_changed);
    }
    (snapshot, marked)
}

/// What may become of a task: attempts end, are stopped, counted, launched.
fn evolve(task: &mut TaskSnapshot, now: Instant, nodes: usize, bytes: &mut Bytes<'_>) {
    let next = task.attempts.last().map_or(0, |last| last.number.0 + 1);
    for attempt in task.attempts.iter_mut().filter(|attempt| attempt.lives()) {
        match bytes.below(8) {
            0 => attempt.state = AttemptState::Succeeded { finished: now },
            1 => attempt.state = AttemptState::Lost,
            2 => (attempt.kill, attempt.killed_at) = (Some(KillKind::Prune), Some(now)),
            _ => {}
        }
    }
    if bytes.is(3) {
        task.attempts.retain(|attempt| attempt.lives());
    }
    if bytes.is(3) && task.live().next().is_none() {
        task.retry_not_before = Some(now.plus(Span::from_seconds(3)));
    } else if bytes.is(3) {
        let job = job("other").task(0, [attempt(next).launched(now.since(at(0.0)).seconds())]);
        let built = world(0.0, 1, 0).job(job).build();
        let launched = built.jobs[0].tasks[0].attempts[0].clone();
        let kind = match task.live().next() {
            Some(_) => AttemptKind::Clone,
            None => AttemptKind::Retry,
        };
        task.attempts.push(AttemptSnapshot {
            kind,
            node: Some(NodeIndex(usize::from(bytes.byte()) % nodes)),
            ..launched
        });
    }
}

fn sorted(mut snapshot: Snapshot) -> Snapshot {
    let jobs = &mut snapshot.jobs;
    jobs.sort_by(|a, b| (a.submitted, &a.key).cmp(&(b.submitted, &b.key)));
    snapshot
}

/// What a plan says about each job, to the bit.
fn found(plan: &Plan) -> Vec<(Option<u64>, Option<u64>)> {
    let jobs = plan.report.jobs.iter();
    let bits = |share: Option<f64>| share.map(f64::to_bits);
    let all = jobs.map(|job| (bits(job.pocd_before), bits(job.attempt_slot_seconds)));
    all.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn changes_between_passes_break_no_rule_and_cause_no_panic(
        facts in prop::collection::vec(any::<u8>(), 600),
        changes in prop::collection::vec(any::<u8>(), 1600),
    ) {
        let (mut bytes, mut changes) = (Bytes(&facts), Bytes(&changes));
        let (policy, mut memory) = (bytes.policy(), bytes.memory());
        let mut snapshot = sorted(bytes.snapshot());
        let mut planner = Planner::default();
        let mut plan = planner.decide(&snapshot, &mut memory, &policy, Changed::All);
        for _ in 0..5 {
            prop_assert_eq!(plan_check(&snapshot, &policy, &plan), []);
            prop_assert!(has_sound_numbers(&plan), "{:?}", plan.report);
            let (next, marked) = later(snapshot, &mut changes);
            snapshot = next;
            let changed = Changed::Marked(&marked);
            plan = planner.decide(&snapshot, &mut memory, &policy, changed);
        }
    }

    #[test]
    fn what_is_kept_of_an_unchanged_job_is_what_another_look_finds(
        facts in prop::collection::vec(any::<u8>(), 600),
    ) {
        let mut bytes = Bytes(&facts);
        let (policy, mut memory) = (bytes.policy(), bytes.memory());
        let snapshot = sorted(bytes.snapshot());
        let mut planner = Planner::default();
        let first = planner.decide(&snapshot, &mut memory, &policy, Changed::All);
        let none = vec![false; snapshot.jobs.len()];
        let appointments = planner.appointments();
        let due: Vec<bool> = appointments.map(|it| it.is_due(snapshot.now, News::None)).collect();
        let mut after = memory.clone();
        let kept = planner.decide(&snapshot, &mut after, &policy, Changed::Marked(&none));
        for ((kept, first), is_due) in found(&kept).iter().zip(found(&first)).zip(&due) {
            prop_assert!(*is_due || *kept == first, "{kept:?} {first:?}");
        }
        if !due.contains(&true) {
            prop_assert_eq!(after.history(), memory.history());
            prop_assert_eq!(after.len(), memory.len());
        }
    }
}

/// shed-prime with every combination of its switches.
fn all_switches() -> Vec<ShedPrime> {
    let mut all = Vec::new();
    for hedge in [Hedge::Never, Hedge::Silent, Hedge::Always] {
        for switches in 0..4u32 {
            let [weigh, pool] = [1, 2].map(|bit| switches & bit != 0);
            all.push(ShedPrime {
                hedge,
                weigh,
                pool,
                ..ShedPrime::default()
            });
        }
    }
    all
}

#[test]
fn all_switch_combinations_keep_the_rules_and_the_work_budget() {
    let all = all_switches();
    assert_eq!(all.len(), 12);
    check!()
        .with_iterations(150)
        .with_max_len(700)
        .for_each(|bytes: &[u8]| {
            let mut bytes = Bytes(bytes);
            let (order, surge_max) = (bytes.order(), 1);
            let (work_max, memory) = (u64::from(bytes.byte()), bytes.memory());
            let snapshot = bytes.snapshot();
            for prime in &all {
                let policy = Policy {
                    order,
                    speculation: Speculation::new(prime.clone()),
                    surge_max,
                    ..Policy::default()
                };
                for work_max in [policy.work_max, work_max] {
                    let policy = Policy {
                        work_max,
                        ..policy.clone()
                    };
                    let (plan, _) = decide(&snapshot, memory.clone(), &policy);
                    assert_eq!(plan_check(&snapshot, &policy, &plan), [], "{policy}");
                    assert!(has_sound_numbers(&plan), "{policy}: {:?}", plan.report);
                    assert!(clones(&plan) <= work_max, "{policy}");
                }
            }
        });
}

fn clones(plan: &Plan) -> u64 {
    let is_clone =
        |action: &Move| matches!(action, Move::Launch(launch) if launch.kind == AttemptKind::Clone);
    let clones = plan
        .actions
        .iter()
        .filter(|planned| is_clone(&planned.action));
    clones.count() as u64
}

/// Every time of the snapshot, `factor` times as large.
fn stretched(snapshot: &Snapshot, factor: i64) -> Snapshot {
    let mut world = snapshot.clone();
    let instant = |time: &mut Instant| time.0 *= factor;
    let span = |time: &mut Span| time.0 *= factor;
    instant(&mut world.now);
    world.launch_overhead.iter_mut().for_each(span);
    for job in &mut world.jobs {
        instant(&mut job.submitted);
        instant(&mut job.facts_as_of);
        let clones = &mut job.obstacles.clones_not_before;
        let optional = [&mut job.deadline, &mut job.launch_not_before, clones];
        optional.into_iter().flatten().for_each(instant);
        job.ended_runs.iter_mut().for_each(span);
        for task in &mut job.tasks {
            task.retry_not_before.iter_mut().for_each(instant);
            for attempt in &mut task.attempts {
                instant(&mut attempt.launched);
                let optional = [&mut attempt.killed_at, &mut attempt.started];
                optional.into_iter().flatten().for_each(instant);
                if let Some(progress) = &mut attempt.progress {
                    instant(&mut progress.first_at);
                    instant(&mut progress.last_at);
                }
                match &mut attempt.state {
                    AttemptState::Stuck { since } => instant(since),
                    AttemptState::Succeeded { finished } => instant(finished),
                    AttemptState::Failed { finished, .. } => instant(finished),
                    AttemptState::Launching
                    | AttemptState::Pending
                    | AttemptState::Running
                    | AttemptState::Lost => {}
                }
            }
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Every time and every parameter that is a time.
    #[test]
    fn the_unit_of_time_does_not_matter(
        bytes in prop::collection::vec(any::<u8>(), 0..500),
        overhead in 1i64..40,
        power in 1u32..4,
        last in 0i64..100,
    ) {
        let factor = 2i64.pow(power);
        let mut bytes = Bytes(&bytes);
        let mut snapshot = bytes.snapshot();
        snapshot.launch_overhead = Some(Span::from_seconds(overhead));
        let plus = ShedPlus {
            utility: bytes.utility(),
            joint: bytes.byte() < 128,
            ..ShedPlus::default()
        };
        let plan = |snapshot: &Snapshot, factor: i64| {
            let mut plus = plus.clone();
            plus.min_interval.0 *= factor;
            plus.launch_overhead.0 *= factor;
            let policy = Policy {
                speculation: Speculation::new(plus),
                ..Policy::default()
            };
            let mut memory = Memory::default();
            let last_optimized = Some(Instant(Span::from_seconds(last).0 * factor));
            memory.set(JobKey::from("job-0"), JobMemory { last_optimized });
            decide(snapshot, memory, &policy).0
        };
        let (one, other) = (plan(&snapshot, 1), plan(&stretched(&snapshot, factor), factor));
        prop_assert_eq!(brief(&one), brief(&other));
        for (one, other) in one.report.jobs.iter().zip(&other.report.jobs) {
            // The distribution is fitted to logarithms of times, which do not scale to the last bit.
            let pocds = one.pocd_after.zip(other.pocd_after);
            prop_assert!(pocds.is_none_or(|(one, other)| (one - other).abs() < 1e-9));
            prop_assert_eq!(one.pocd_after.is_some(), other.pocd_after.is_some());
            prop_assert_eq!(&one.stragglers, &other.stragglers);
            prop_assert_eq!(&one.refusals, &other.refusals);
        }
    }
}
