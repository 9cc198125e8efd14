//! Policies that decide per job: once at its submission, at τ_est, or at each arrival.

use super::speculators::{
    check, cluster, decide_by, findings, remembered, remembering, slow, uneven,
};
use shed_core::fixtures::{
    AttemptBuilder, JobBuilder, World, at, attempt, job, resume_point, world,
};
use shed_core::ids::{JobClass, JobKey, TaskIndex, Tenant};
use shed_core::memory::{Arrival, Arrivals, Memory};
use shed_core::plan::{Finding, Move, Plan, Refusal, RefusalReason};
use shed_core::snapshot::{AttemptKind, NodeIndex};
use shed_papers::state::{Decided, Looked};

use shed_core::fixtures::{brief, report};

/// How many clones each of the tasks gets.
fn clones(plan: &Plan, tasks: u32) -> Vec<usize> {
    let of = |task: u32| {
        let launches = plan.actions.iter().filter(|planned| match &planned.action {
            Move::Launch(l) => l.kind == AttemptKind::Clone && l.task == TaskIndex(task),
            _ => false,
        });
        launches.count()
    };
    (0..tasks).map(of).collect()
}

fn with_rival(clone: AttemptBuilder) -> JobBuilder {
    let others = uneven().with(|job| {
        job.tasks.pop();
    });
    others.task(7, [slow(), clone.on(3)])
}

const DISTRIBUTION: &str = "t_min=20,beta=1.5";

#[test]
fn mantri_duplicates_where_that_saves_machine_time() {
    let given = "t_min=60,beta=2";
    let (plan, _) = decide_by(
        &format!("mantri{{{given}}}"),
        cluster().job(uneven()),
        &Memory::default(),
    );
    assert_eq!(brief(&plan), ["a: clone 7"]);
    let [Finding::Saves { probability }] = findings(&plan)[..] else {
        panic!("{plan:?}");
    };
    // 1 − (60/(251/2))².
    assert!((probability - 0.77).abs() < 0.01, "{probability}");
    check(
        &format!("mantri{{delta=0.9,{given}}}"),
        cluster().job(uneven()),
        &[],
    );
}

#[test]
fn mantri_keeps_only_the_best_attempt_after_some_minutes() {
    let fast = || attempt(1).launched(20.0).progress(0.3, 29.0);
    let text = |keep: u32| format!("mantri{{max_clones=1,keep_interval={keep}}}");
    check(
        &text(20),
        cluster().job(with_rival(fast())),
        &["a: prune 7.0 for 7.1"],
    );
    check(&text(40), cluster().job(with_rival(fast())), &[]);
}

/// Three slots, all taken, and a job that waits for two: a pod of it is there already, so that the
/// cluster may grow.
fn crowded() -> World {
    let full = world(30.0, 3, 1000).job(uneven());
    let waiting = job("b").submitted(20.0).tasks(2);
    full.job(waiting.task(0, [attempt(0).pending()]))
}

#[test]
fn mantri_restarts_only_if_allowed_and_while_tasks_wait() {
    let text = |restarts: u32, gain: u32| {
        format!("mantri{{restarts={restarts},restart_gain={gain},t_min=60,beta=2}}")
    };
    check(&text(0, 30), crowded(), &[]);
    // It needs 251 s more, a new one 120 s.
    check(&text(1, 130), crowded(), &["a: restart 7.0"]);
    check(&text(1, 132), crowded(), &[]);
    let idle = world(30.0, 3, 1000).job(uneven());
    check(&text(1, 30), idle, &[]);
    // Tasks that wait for parallelism alone wait for no slot.
    let narrow = world(30.0, 3, 1000).job(uneven().tasks(9).parallelism(3));
    check(&text(1, 30), narrow, &[]);
}

#[test]
fn mantri_gives_a_task_up_no_more_often_than_it_may() {
    let text = "mantri{restarts=2,t_min=60,beta=2}";
    let before =
        |times| remembering(|memory: &mut Looked| memory.restarts = [(TaskIndex(7), times)].into());
    let (plan, after) = decide_by(text, crowded(), &before(1));
    assert_eq!(brief(&plan), ["a: restart 7.0"]);
    let restarts = remembered::<Looked>(&after, "a").restarts;
    assert_eq!(restarts, [(TaskIndex(7), 2)].into());
    assert_eq!(report(&plan, "a").kills[0].survivor, None);
    assert_eq!(brief(&decide_by(text, crowded(), &before(2)).0), [""; 0]);
}

#[test]
fn hopper_clones_within_the_share_of_the_job() {
    check("hopper", cluster().job(uneven()), &["a: clone 7"]);
    // Three slots for three tasks: none is left for a clone.
    let tight = world(30.0, 3, 4000);
    let tight = tight.others(0, 3000).others(1, 3000).others(2, 3000);
    let (plan, _) = decide_by("hopper", tight.job(uneven()), &Memory::default());
    assert_eq!(brief(&plan), [""; 0]);
    let (task, why) = (TaskIndex(7), RefusalReason::Budget);
    assert_eq!(report(&plan, "a").refusals, [Refusal { task, why }]);
}

#[test]
fn chronos_clones_all_tasks_from_their_start() {
    let new = || job("a").tasks(2).deadline_in(60.0);
    let (plan, memory) = decide_by(
        &format!("chronos-clone{{{DISTRIBUTION}}}"),
        cluster().job(new()),
        &Memory::default(),
    );
    let copies = remembered::<Decided>(&memory, "a").copies.unwrap();
    assert!(copies > 1, "{copies}");
    assert_eq!(clones(&plan, 2), [copies as usize - 1; 2]);
    // Without a distribution nothing is known of a new job.
    let (plan, _) = decide_by("chronos-clone", cluster().job(new()), &Memory::default());
    assert_eq!(clones(&plan, 2), [0; 2]);
}

#[test]
fn at_tau_kill_the_best_attempt_is_kept_once() {
    let fast = || attempt(1).launched(20.0).progress(0.3, 29.0);
    let text = "chronos-clone{tau_est=0,tau_kill=0.1}";
    let (plan, memory) = decide_by(text, cluster().job(with_rival(fast())), &Memory::default());
    assert_eq!(brief(&plan)[..1], ["a: prune 7.0 for 7.1"]);
    assert_eq!(remembered::<Decided>(&memory, "a").pruned, Some(at(30.0)));
    let (plan, _) = decide_by(text, cluster().job(with_rival(fast())), &memory);
    assert_eq!(brief(&plan), [""; 0]);
}

#[test]
fn at_tau_est_the_late_tasks_are_judged_once() {
    for name in ["chronos-s-restart", "chronos-s-resume", "srquant", "laser"] {
        let (plan, _) = decide_by(name, cluster().job(uneven()), &Memory::default());
        assert_eq!(
            brief(&plan),
            [""; 0],
            "{name}: 30 s are before 0.48 of 160 s"
        );
        assert_eq!(plan.report.next_pass, Some(at(76.8)), "{name}");
        let text = format!("{name}{{tau_est_seconds=25}}");
        let (plan, memory) = decide_by(&text, cluster().job(uneven()), &Memory::default());
        let of_job = remembered::<Decided>(&memory, "a");
        assert_eq!(of_job.judged, [TaskIndex(7)], "{name}");
        let copies = of_job.copies.unwrap() as usize;
        assert!(copies > 1, "{name}");
        let mut expected = vec![0; 8];
        expected[7] = copies - 1;
        assert_eq!(clones(&plan, 8), expected, "{name}");
    }
}

#[test]
fn only_what_resumes_takes_the_place_of_the_original() {
    let judged = remembering(|memory: &mut Decided| {
        memory.judged = vec![TaskIndex(7)];
        memory.copies = Some(2);
    });
    let clone = || attempt(1).launched(20.0);
    let resuming = |clone| with_rival(clone).resumes();
    for name in ["chronos-s-resume", "srquant", "laser"] {
        let text = format!("{name}{{tau_est_seconds=25}}");
        let moves = |job| brief(&decide_by(&text, cluster().job(job), &judged).0);
        // It runs on until the clone has started, and no further.
        assert_eq!(moves(resuming(clone().pending())), [""; 0], "{name}");
        let stops = ["a: prune 7.0 for 7.1"];
        assert_eq!(moves(resuming(clone())), stops, "{name}");
        let reporting = clone().progress(0.11, 29.0);
        assert_eq!(moves(resuming(reporting.clone())), stops, "{name}");
        assert_eq!(moves(with_rival(reporting)), [""; 0], "{name}");
    }
    let text = "chronos-s-restart{tau_est_seconds=25}";
    let (plan, _) = decide_by(text, cluster().job(resuming(clone())), &judged);
    assert_eq!(brief(&plan), [""; 0]);
}

#[test]
fn as_many_resumed_attempts_as_decided_replace_one_original() {
    // r = 1: two clones, also once the original is gone.
    let judged = remembering(|memory: &mut Decided| {
        memory.judged = vec![TaskIndex(7)];
        memory.copies = Some(3);
    });
    let others = || {
        uneven().resumes().with(|job| {
            job.tasks.pop();
        })
    };
    let clone = |number| attempt(number).launched(25.0).on(3);
    let moves =
        |job| brief(&decide_by("srquant{tau_est_seconds=25}", cluster().job(job), &judged).0);
    let gone = others().task(7, [clone(1)]);
    assert_eq!(moves(gone), ["a: clone 7"]);
    let complete = others().task(7, [clone(1), clone(2)]);
    assert_eq!(moves(complete), [""; 0]);
    let stopping = others().task(7, [slow(), clone(1)]);
    assert_eq!(moves(stopping), ["a: prune 7.0 for 7.1", "a: clone 7"]);
}

#[test]
fn at_tau_kill_resumed_attempts_with_less_progress_stop() {
    let clone = |number, progress| attempt(number).launched(5.0).progress(progress, 29.0).on(3);
    let others = uneven().resumes().with(|job| {
        job.tasks.pop();
    });
    // The second would end first, because it began at 20 s.
    let late = attempt(2).launched(20.0).progress(0.3, 29.0).on(2);
    let racing = others.task(7, [clone(1, 0.4), late]);
    for (name, kept) in [
        ("srquant", "a: prune 7.2 for 7.1"),
        ("chronos-s-restart", "a: prune 7.1 for 7.2"),
    ] {
        let text = format!("{name}{{tau_est=0.1,tau_kill=0.15}}");
        let (plan, _) = decide_by(&text, cluster().job(racing.clone()), &Memory::default());
        assert_eq!(brief(&plan)[..1], [kept], "{name}");
    }
}

#[test]
fn only_resumed_attempts_begin_at_the_checkpoint() {
    let resumable = || {
        uneven().resumes().with(|job| {
            let tasks = job.tasks.iter_mut();
            tasks.for_each(|task| task.resume_point = Some(resume_point(0.05)));
        })
    };
    let begins = |name: &str| {
        let text = format!("{name}{{tau_est_seconds=25}}");
        let (plan, _) = decide_by(&text, cluster().job(resumable()), &Memory::default());
        brief(&plan)[0].clone()
    };
    assert_eq!(begins("srquant"), "a: clone 7 from 0.05");
    assert_eq!(begins("chronos-s-restart"), "a: clone 7");
}

#[test]
fn shed_gives_all_tasks_of_a_job_the_same_number_once() {
    let (plan, memory) = decide_by("shed{keep=on}", cluster().job(uneven()), &Memory::default());
    let copies = remembered::<Decided>(&memory, "a").copies.unwrap() as usize;
    assert!(copies > 1);
    let mut expected = vec![copies - 1; 8];
    expected[..5].fill(0);
    assert_eq!(clones(&plan, 8), expected);
    // The next pass is no arrival: another job's does make a run.
    let calm = decide_by(
        "shed{keep=on}",
        cluster().job(uneven().deadline_in(900.0)),
        &memory,
    );
    let of_job = |memory: &Memory| remembered::<Decided>(memory, "a").copies;
    assert_eq!(of_job(&calm.1), of_job(&memory));
}

#[test]
fn sca_clones_new_jobs_only_while_there_is_capacity_for_all() {
    let new = || job("a").tasks(2);
    let text = format!("sca{{{DISTRIBUTION}}}");
    let (plan, memory) = decide_by(&text, cluster().job(new()), &Memory::default());
    let copies = remembered::<Decided>(&memory, "a").copies.unwrap() as usize;
    assert!(copies > 1);
    assert_eq!(clones(&plan, 2), [copies - 1; 2]);
    let (plan, memory) = decide_by(&text, world(30.0, 1, 2000).job(new()), &Memory::default());
    assert_eq!(clones(&plan, 2), [0; 2]);
    assert_eq!(remembered::<Decided>(&memory, "a").copies, Some(1));
}

/// A job of a class with times of a heavy tail, by its winners.
fn skewed(key: &str) -> JobBuilder {
    let runs = [20.0, 21.0, 24.0, 31.0, 60.0, 240.0];
    let job = job(key).with(|job| job.class = Some(JobClass::from("etl")));
    job.tasks(10).done(0..6).ended_runs(runs)
}

#[test]
fn sca_clones_a_new_job_of_a_class_that_is_known() {
    // A class teaches what its jobs took once they are gone.
    let before = skewed("before").tasks(6);
    let (_, memory) = decide_by("sca", cluster().job(before), &Memory::default());
    let (_, memory) = decide_by("sca", cluster(), &memory);
    let new = |key| {
        job("a")
            .tasks(2)
            .with(|job| job.class = Some(JobClass::from(key)))
    };
    let (plan, after) = decide_by("sca", cluster().job(new("etl")), &memory);
    let copies = remembered::<Decided>(&after, "a").copies.unwrap() as usize;
    assert!(copies > 1);
    assert_eq!(clones(&plan, 2), [copies - 1; 2]);
    let (plan, after) = decide_by("sca", cluster().job(new("other")), &memory);
    assert_eq!(remembered::<Decided>(&after, "a").copies, None);
    assert_eq!(clones(&plan, 2), [0; 2]);
}

#[test]
fn sca_clones_tasks_that_run_or_wait_once_the_job_has_a_winner() {
    let running = |job: JobBuilder| {
        let old = |node| [attempt(0).on(node).progress(0.1, 29.0)];
        job.task(6, old(1)).task(7, old(2))
    };
    let (plan, memory) = decide_by(
        "sca",
        cluster().job(running(skewed("a"))),
        &Memory::default(),
    );
    let copies = remembered::<Decided>(&memory, "a").copies.unwrap() as usize;
    assert!(copies > 1);
    // Two run, and two wait until now.
    let expected = [vec![0; 6], vec![copies - 1; 4]].concat();
    assert_eq!(clones(&plan, 10), expected);
    // Reports without a winner show no shape.
    let first = running(job("a").tasks(10));
    let (_, memory) = decide_by("sca", cluster().job(first), &Memory::default());
    assert_eq!(remembered::<Decided>(&memory, "a").copies, None);
}

#[test]
fn sca_is_ese_above_the_cutoff_if_it_switches_regimes() {
    // Tasks of 600 s on average, too long for ESE's clones of small jobs.
    let text = |regimes| format!("sca{{t_min=200,beta=1.5,regimes={regimes}}}");
    let decided = |regimes, volume: f64| {
        let arrival = |submitted: f64| Arrival {
            submitted: at(submitted),
            volume,
        };
        let mut arrivals = Arrivals::default();
        for (key, submitted) in [("first", -970.0), ("second", -40.0)] {
            let tenant = Tenant::from("default");
            arrivals.note(&JobKey::from(key), &tenant, arrival(submitted));
        }
        let mut memory = Memory::default();
        memory.set_arrivals(arrivals);
        let new = cluster().job(job("a").tasks(2));
        let (_, memory) = decide_by(&text(regimes), new, &memory);
        remembered::<Decided>(&memory, "a").copies
    };
    // In 1000 s since the first arrival: loads of 0.5 and 1.2, and less than 0.1 of the new job. The cutoff is 1.
    assert!(decided("on", 500.0) > Some(1));
    assert_eq!(decided("on", 1200.0), Some(1));
    assert!(decided("off", 1200.0) > Some(1));
}

#[test]
fn ese_duplicates_what_needs_long_and_clones_small_new_jobs() {
    let given = "ese{t_min=60,beta=2}";
    let (plan, _) = decide_by(given, cluster().job(uneven()), &Memory::default());
    assert_eq!(brief(&plan), ["a: clone 7"]);
    let [Finding::Overdue { times }] = findings(&plan)[..] else {
        panic!("{plan:?}");
    };
    // 251 s against a mean of 120 s; σ* = 1.707.
    assert!((times - 2.09).abs() < 0.01, "{times}");
    check(
        "ese{t_min=60,beta=2,sigma=2.2}",
        cluster().job(uneven()),
        &[],
    );
    let new = || job("a").tasks(2);
    let (plan, _) = decide_by(
        &format!("ese{{{DISTRIBUTION}}}"),
        cluster().job(new()),
        &Memory::default(),
    );
    assert!(clones(&plan, 2)[0] > 0);
    let long = format!("ese{{xi=1,{DISTRIBUTION}}}");
    let (plan, _) = decide_by(&long, cluster().job(new()), &Memory::default());
    assert_eq!(clones(&plan, 2), [0; 2]);
}

#[test]
fn dollymp_clones_with_what_is_left_second_copies_first() {
    let (plan, _) = decide_by("dollymp", cluster().job(uneven()), &Memory::default());
    let twice = ["a: clone 5", "a: clone 6", "a: clone 7"];
    assert_eq!(brief(&plan), [twice, twice].concat());
    // Four slots in addition to the three running attempts: each task once, and one of them twice.
    let narrow = || {
        cluster()
            .others(0, 3000)
            .others(1, 3000)
            .others(2, 2000)
            .others(3, 1000)
    };
    let (plan, _) = decide_by("dollymp", narrow().job(uneven()), &Memory::default());
    assert_eq!(brief(&plan), [&twice[..], &["a: clone 5"]].concat());
    check("dollymp{clone_budget=0}", cluster().job(uneven()), &[]);
    // One clone is a sixteenth of the cluster.
    check(
        "dollymp{clone_budget=0.07}",
        cluster().job(uneven()),
        &twice[..1],
    );
}

#[test]
fn no_clone_takes_the_capacity_freed_by_an_eviction() {
    let cloned = job("a")
        .tasks(1)
        .task(0, [attempt(0).on(1), attempt(1).on(0)]);
    let single = |node| job("c").tasks(1).task(0, [attempt(0).on(node)]);
    // The eviction leaves 2 cores on node 0 for `b`; one of them is free now.
    let waits = || job("b").tasks(1).cpu(2000);
    let with = |third| {
        world(9.0, 3, 2000)
            .job(cloned.clone())
            .job(waits())
            .job(third)
    };
    let busy = with(single(2)).others(1, 1000);
    check("dollymp", busy, &["a: evict 0.1 for 0.0"]);
    // Where it can't, it is launched.
    let only_there = single(2).with(|job| job.eligible_nodes = [NodeIndex(2)].into());
    let busy = with(only_there).others(1, 1000);
    check("dollymp", busy, &["a: evict 0.1 for 0.0", "c: clone 0"]);
}
