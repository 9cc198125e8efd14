//! Which jobs a pass looks at, counted, and what stays exact without a look.

use crate::decide::{Changed, Planner};
use crate::fixtures::{JobBuilder, at, attempt, brief, job, world};
use crate::ids::{JobClass, TaskIndex};
use crate::memory::Memory;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::snapshot::{JobSnapshot, Snapshot};
use crate::time::Span;

/// A planner that has looked at every job.
struct Passes {
    planner: Planner,
    memory: Memory,
    policy: Policy,
}

impl Passes {
    fn after(snapshot: &Snapshot) -> Self {
        let mut passes = Self {
            planner: Planner::default(),
            memory: Memory::default(),
            policy: super::product(),
        };
        let first =
            passes
                .planner
                .decide(snapshot, &mut passes.memory, &passes.policy, Changed::All);
        assert_eq!(first.report.jobs.len(), snapshot.jobs.len());
        passes
    }

    /// A pass after changes of the jobs at these positions, and how many jobs it looks at.
    fn pass(&mut self, snapshot: &Snapshot, news: &[usize]) -> (Plan, usize) {
        let marked: Vec<bool> = (0..snapshot.jobs.len())
            .map(|at| news.contains(&at))
            .collect();
        let changed = Changed::Marked(&marked);
        let plan = self
            .planner
            .decide(snapshot, &mut self.memory, &self.policy, changed);
        let appointments = self.planner.appointments();
        let looked = appointments.filter(|it| it.looked == snapshot.now);
        (plan, looked.count())
    }
}

/// A job whose task of 95 s runs, as it reported at 20 s.
fn running(name: &str) -> JobBuilder {
    let reports = attempt(0).on(0).progress(0.2, 20.0);
    job(name).tasks(1).deadline_in(1000.0).task(0, [reports])
}

fn many(jobs: usize, of: impl Fn(&str) -> JobBuilder) -> Snapshot {
    let names = (0..jobs).map(|index| format!("job-{index:05}"));
    let cluster = names.fold(world(20.0, 1, 1_000_000_000), |world, name| {
        world.job(of(&name))
    });
    cluster.build()
}

fn later(snapshot: &Snapshot, seconds: f64) -> Snapshot {
    Snapshot {
        now: snapshot.now.plus(Span::from_seconds_f64(seconds)),
        ..snapshot.clone()
    }
}

/// The same with another task, just launched, or with the first report of that task's attempt.
fn with_another(name: &str, reports: bool) -> JobBuilder {
    let launched = attempt(0).on(0).launched(20.0);
    let attempt = match reports {
        true => launched.progress(0.01, 22.5),
        false => launched,
    };
    running(name).tasks(2).task(1, [attempt])
}

fn with_changes(snapshot: &Snapshot, changes: &[(usize, bool)]) -> Snapshot {
    let mut snapshot = snapshot.clone();
    for &(at, reports) in changes {
        let name = snapshot.jobs[at].key.to_string();
        let changed = world(20.0, 1, 0).job(with_another(&name, reports)).build();
        snapshot.jobs[at].tasks = changed.jobs[0].tasks.clone();
    }
    snapshot
}

#[test]
fn a_pass_looks_soon_at_jobs_with_urgent_news_alone() {
    let snapshot = many(1000, |name| running(name).tasks(2));
    let mut passes = Passes::after(&snapshot);
    // Urgent news wait for 2 % of 95 s, or half of that in a pass that is made anyway.
    let launched = with_changes(&snapshot, &[(7, false), (8, false)]);
    let rows = [(0.5, vec![7, 9], 0), (1.5, vec![8, 9], 2), (1.6, vec![], 0)];
    for (seconds, news, expected) in rows {
        let (_, looks) = passes.pass(&later(&launched, seconds), &news);
        assert_eq!(looks, expected, "after {seconds} s");
    }
    let reported = with_changes(&snapshot, &[(7, true), (8, false)]);
    assert_eq!(passes.pass(&later(&reported, 2.6), &[7, 8]).1, 1);
    // The policy judges each job again after 4 %, in a pass some time before.
    assert_eq!(passes.pass(&later(&reported, 3.0), &[]).1, 998);
}

#[test]
fn a_job_whose_user_changes_it_or_asks_is_looked_at_at_once() {
    let cluster = many(10, running);
    let change = |of: fn(&mut JobSnapshot)| {
        let mut changed = later(&cluster, 0.1);
        of(&mut changed.jobs[3]);
        Passes::after(&cluster).pass(&changed, &[3]).1
    };
    assert_eq!(change(|_| ()), 0);
    assert_eq!(change(|job| job.deadline = Some(at(900.0))), 1);
    assert_eq!(change(|job| job.rules.max_clones_per_task = 1), 1);
    assert_eq!(change(|job| job.rules.suspend = true), 1);
    assert_eq!(change(|job| job.asks_feasibility = true), 1);
}

#[test]
fn a_job_that_ends_between_two_looks_teaches_its_class() {
    let class = JobClass::from("nightly");
    let mut cluster = many(2, running);
    cluster.jobs[0].class = Some(class.clone());
    let mut passes = Passes::after(&cluster);
    let mut ended = later(&cluster, 0.1);
    let job = &mut ended.jobs[0];
    (job.done, job.tasks) = ([TaskIndex(0)].into_iter().collect(), Vec::new());
    job.ended_runs = vec![Span::from_seconds(20)];
    assert_eq!(passes.pass(&ended, &[0]).1, 0);
    let mut gone = later(&ended, 0.1);
    gone.jobs.remove(0);
    passes.pass(&gone, &[]);
    let least = passes.memory.history().least(Some(&class)).unwrap();
    assert!((least - 20.0).abs() < 1e-9, "{least}");
}

#[test]
fn the_first_report_and_first_end_of_a_job_are_judged_at_once() {
    // Patience alone would delay a look by 5 000 s.
    let with = |reports: [bool; 2], ended: &[f64]| {
        let attempt = |reports| match reports {
            true => attempt(0).on(0).progress(0.2, 20.0),
            false => attempt(0).on(0),
        };
        let tasks = (0..).zip(reports.map(attempt));
        let job = job("a").tasks(3).deadline_in(1_000_000.0);
        let job = job.ended_runs(ended.iter().copied());
        let job = tasks.fold(job, |job, (index, attempt)| job.task(index, [attempt]));
        world(20.0, 1, 4000).job(job).build()
    };
    let looks = |changes: [Snapshot; 2]| {
        let mut passes = Passes::after(&with([false, false], &[]));
        let mut seconds = 0.0;
        changes.map(|changed| {
            seconds += 0.1;
            passes.pass(&later(&changed, seconds), &[0]).1
        })
    };
    let none = || with([false, false], &[]);
    let [one, both] = [[true, false], [true, true]].map(|reports| with(reports, &[]));
    assert_eq!(looks([none(), none()]), [0, 0]);
    assert_eq!(looks([one, both]), [1, 0]);
    let [first, second] = [&[9.0][..], &[9.0, 8.0]].map(|ended| with([false, false], ended));
    assert_eq!(looks([first, second]), [1, 0]);
}

#[test]
fn a_job_that_changes_at_every_event_is_looked_at_now_and_then() {
    let snapshot = many(1, running);
    let mut passes = Passes::after(&snapshot);
    let times = (1..=1000).map(|event| f64::from(event) / 100.0);
    let looks: usize = times
        .map(|at| passes.pass(&later(&snapshot, at), &[0]).1)
        .sum();
    // Ten seconds, and a look after each 3 % of 95 s.
    assert_eq!(looks, 3);
}

#[test]
fn ten_thousand_jobs_of_one_deadline_cost_a_pass_no_look() {
    let waiting = |name: &str| {
        job(name)
            .tasks(1)
            .cpu(i64::MAX / 1_000_000)
            .deadline_in(1000.0)
    };
    let snapshot = many(10_000, waiting);
    let mut passes = Passes::after(&snapshot);
    let (plan, due) = passes.pass(&later(&snapshot, 0.1), &[]);
    assert_eq!((due, plan.report.jobs.len()), (0, 10_000));
}

#[test]
fn every_job_is_judged_after_a_clock_step_back_or_node_change() {
    let snapshot = many(10, running);
    let mut passes = Passes::after(&snapshot);
    assert_eq!(passes.pass(&later(&snapshot, -5.0), &[]).1, 10);
    let mut cordoned = later(&snapshot, -5.0);
    let before = passes.planner.appointments().next();
    cordoned.nodes[0].usable = false;
    let mut flapping = Vec::new();
    for second in 0..4 {
        cordoned.now = cordoned.now.plus(Span::from_seconds_f64(0.1));
        cordoned.nodes[0].usable = second % 2 == 1;
        passes.pass(&cordoned, &[]);
        flapping.push(passes.planner.appointments().next());
    }
    // Each pass has looked at the jobs.
    flapping.insert(0, before);
    flapping.dedup();
    assert_eq!(flapping.len(), 5);
}

#[test]
fn what_waits_is_known_without_a_look() {
    let of = |running: u32| {
        let job = job("a").tasks(4).deadline_in(1000.0);
        (0..running).fold(job.ended_runs([100.0; 4]), |job, index| {
            job.task(index, [attempt(0).on(0)])
        })
    };
    let at_once = |job: JobBuilder| world(20.0, 1, 4000).job(job).build();
    let mut passes = Passes::after(&at_once(of(1)));
    // Two of the planned launches were recorded; a look is not due.
    let (plan, due) = passes.pass(&later(&at_once(of(3)), 0.1), &[0]);
    assert_eq!((due, brief(&plan)), (0, vec!["a: original 3".to_owned()]));
}

#[test]
fn the_next_pass_is_due_when_the_news_of_a_job_have_waited() {
    let snapshot = many(2, |name| running(name).tasks(2));
    let mut passes = Passes::after(&snapshot);
    let next = |plan: &Plan| {
        plan.report
            .next_pass
            .map(|next| next.since(at(20.0)).seconds())
    };
    let (plan, _) = passes.pass(&later(&snapshot, 0.1), &[]);
    // 4 % of 95 s without news and with usual ones, 2 % with urgent news.
    assert_eq!(next(&plan), Some(3.8));
    let (plan, _) = passes.pass(&later(&snapshot, 0.15), &[0]);
    assert_eq!(next(&plan), Some(3.8));
    let launched = with_changes(&snapshot, &[(1, false)]);
    let (plan, _) = passes.pass(&later(&launched, 0.2), &[1]);
    assert_eq!(next(&plan), Some(1.9));
}

#[test]
fn a_job_without_waiting_tasks_is_judged_later() {
    let silent = |tasks: u32| {
        let running = attempt(0).on(0).launched(20.0);
        many(1, |name| {
            let job = job(name).tasks(tasks).deadline_in(500.0);
            job.task(0, [running.clone()])
        })
    };
    let next = |snapshot: &Snapshot, changed: Changed<'_>| {
        let (mut planner, mut memory) = (Planner::default(), Memory::default());
        let plan = planner.decide(snapshot, &mut memory, &super::product(), changed);
        let next = plan.report.next_pass;
        next.map(|next| next.since(snapshot.now).seconds())
    };
    // 4 % of the 480 s that are left.
    let named = Changed::Marked(&[true]);
    assert_eq!(next(&silent(1), named), Some(19.2));
    assert_eq!(next(&silent(2), named), Some(3.0));
    assert_eq!(next(&silent(1), Changed::All), Some(3.0));
}
