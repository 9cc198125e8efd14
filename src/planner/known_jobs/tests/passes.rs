//! Passes of the planner that look only at jobs with news.

use std::collections::{BTreeSet, HashMap};

use shed_core::decide::{Changed, News};
use shed_core::guard::{GuardedPlanner, Passed};
use shed_core::ids::JobKey;
use shed_core::memory::Memory;
use shed_core::plan_check::plan_check;
use shed_core::policy::{Order, Policy};
use shed_core::snapshot::Snapshot;

use super::*;

/// The planner of a world, which notes which news wait.
#[derive(Default)]
struct Passes {
    planner: GuardedPlanner,
    memory: Memory,
    policy: Policy,
    before: HashMap<JobKey, JobSnapshot>,
    waiting: BTreeSet<JobKey>,
    /// Time since the world began, which its own clock does not show.
    later: Span,
}

impl Passes {
    fn under(policy: &str) -> Self {
        Self {
            policy: shed_papers::registry()
                .parse(policy, Order::default())
                .unwrap(),
            ..Self::default()
        }
    }

    /// A pass over the world, and how many jobs it looks at.
    fn pass(&mut self, world: &mut World) -> usize {
        // Two passes have different times, by which `looked` tells their looks apart.
        world.process.context.clock.skip_for_tests(Span(1));
        let mut view = view_after(&world.process.context.shared, &mut world.known);
        view.snapshot.now = view.snapshot.now.plus(self.later);
        self.check_marks(&view);
        let changed = view.changed.as_deref();
        let changed = changed.map_or(Changed::All, Changed::Marked);
        let (memory, policy) = (&mut self.memory, &self.policy);
        let passed = self.planner.decide(&view.snapshot, memory, policy, changed);
        assert_eq!(plan_check(&view.snapshot, policy, &passed.plan), []);
        assert_eq!((passed.faults.len(), passed.panics), (0, 0));
        let looks = self.check_looks(&view.snapshot);
        let jobs = view.snapshot.jobs.iter();
        self.before = jobs.map(|job| (job.key.clone(), job.clone())).collect();
        world.known.put_back(view.snapshot.jobs);
        looks
    }

    /// The facts of a job that is not marked are those of the pass before.
    fn check_marks(&mut self, view: &ClusterView) {
        for (at, job) in view.snapshot.jobs.iter().enumerate() {
            if view.changed.as_ref().is_none_or(|changed| changed[at]) {
                self.waiting.insert(job.key.clone());
            } else {
                assert_eq!(self.before.get(&job.key), Some(job));
            }
        }
    }

    /// No news wait for longer than the job's appointment says.
    fn check_looks(&mut self, snapshot: &Snapshot) -> usize {
        let planner = self.planner.planner();
        let looked: Vec<bool> = planner.looked(snapshot.now).collect();
        for ((job, looked), appointment) in snapshot
            .jobs
            .iter()
            .zip(&looked)
            .zip(planner.appointments())
        {
            if *looked {
                self.waiting.remove(&job.key);
            }
            // The news that may wait longest.
            let news = match self.waiting.contains(&job.key) {
                true => News::Usual,
                false => News::None,
            };
            let at = appointment.at(news);
            assert!(*looked || at.is_none_or(|at| at > snapshot.now));
        }
        looked.iter().filter(|looked| **looked).count()
    }

    /// A pass that looks at every job equals one of a planner that has just started.
    fn check_against_a_new_planner(&mut self, world: &World) {
        let mut snapshot = view(&world.process.context.shared).snapshot;
        snapshot.now = snapshot.now.plus(self.later);
        let mut memory = self.memory.clone();
        let pass = |planner: &mut GuardedPlanner, memory: &mut Memory| {
            let passed: Passed<'_> = planner.decide(&snapshot, memory, &self.policy, Changed::All);
            passed.plan
        };
        let new = pass(&mut GuardedPlanner::default(), &mut memory);
        assert_eq!(pass(&mut self.planner, &mut self.memory), new);
        assert_eq!(self.memory, memory);
        self.waiting.clear();
    }
}

#[tokio::test]
async fn a_pass_after_the_news_of_one_job_looks_at_one() {
    let mut world = World::new(20);
    // It names no moment at which it must judge a job again.
    let mut passes = Passes::under("hadoop-ns");
    assert_eq!(passes.pass(&mut world), 20, "the first pass");
    assert_eq!(passes.pass(&mut world), 0);
    // Usual news wait for 6 % of the time that the job was given, and half of that in a pass that is made anyway.
    world.report(5, 0, "0.25");
    assert_eq!(passes.pass(&mut world), 0);
    passes.later = Span::from_seconds(930);
    world.report(6, 0, "0.25");
    assert_eq!(passes.pass(&mut world), 2);
    world.stores().show_nodes(&[fixtures::node("node-0", 32)]);
    passes.later = Span::from_seconds(931);
    assert_eq!(passes.pass(&mut world), 20, "after a change of the nodes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn passes_that_follow_the_news_break_no_rule(
        steps in prop::collection::vec((prop::collection::vec(step(), 0..3), -5..400_i64), 1..12),
        is_shed_plus in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(JOBS);
            let mut passes = Passes::under(if is_shed_plus { "shed-plus" } else { "shed-prime" });
            for (events, seconds) in steps {
                for event in events {
                    world.take(event);
                }
                passes.later = Span(passes.later.0 + Span::from_seconds(seconds).0);
                passes.pass(&mut world);
            }
            passes.check_against_a_new_planner(&world);
            passes.pass(&mut world);
        });
    }
}
