//! The rules that only shed-prime has.

use super::{brief, plan_of, report};
use crate::fixtures::{JobBuilder, World, attempt, job, world};
use crate::fixtures::{findings, four_nodes as cluster, uneven};
use crate::ids::{JobKey, NodeName, Tenant};
use crate::memory::{Arrival, Arrivals, Memory, Redraws};
use crate::plan::{Finding, Plan};
use crate::policy::Policy;
use crate::snapshot::{KillKind, Preemption, Resume};
use crate::time::Instant;

/// Attempts that report take 60 s each on three nodes of one slot, and no other capacity is free.
fn full(job: JobBuilder) -> World {
    world(30.0, 3, 1000).job(job)
}

/// The plan on a cluster that does not grow.
fn decided(text: &str, world: World) -> Plan {
    let policy = Policy {
        surge_max: 0,
        ..text.parse().unwrap()
    };
    plan_of(&world.build(), &Memory::default(), &policy).0
}

#[track_caller]
fn check(text: &str, world: World, expected: &[&str]) {
    assert_eq!(brief(&decided(text, world)), expected, "{text}");
}

#[test]
fn an_attempt_is_judged_by_its_own_rate_and_not_by_the_spread_of_all() {
    // 252 s are left, and the clock shows 130 s: without a clone the task is lost, and its job with it.
    let plan = decided("shed-prime", cluster().job(uneven()));
    let [Finding::Late { miss }, ..] = findings(&plan)[..] else {
        panic!("{plan:?}");
    };
    assert!(miss > 0.999, "{miss}");
    let job = report(&plan, "a");
    assert!(job.pocd_before.unwrap() < 0.001);
    assert!(job.pocd_after.unwrap() > 0.9, "{job:?}");
    let gains: f64 = job.clones.iter().map(|clone| clone.pocd_gain).sum();
    assert!((gains - (job.pocd_after.unwrap() - job.pocd_before.unwrap())).abs() < 1e-9);
    // With 300 s there is nothing to do.
    check(
        "shed-prime",
        cluster().job(uneven().deadline_in(400.0)),
        &[],
    );
}

#[test]
fn siblings_of_an_attempt_that_is_sure_to_be_in_time_go() {
    let race = |deadline| {
        let rivals = [
            attempt(0).on(0).progress(0.3, 29.0),
            attempt(1).launched(28.0).on(1),
        ];
        job("a").tasks(1).deadline_in(deadline).task(0, rivals)
    };
    check(
        "shed-prime",
        cluster().job(race(160.0)),
        &["a: prune 0.1 for 0.0"],
    );
    // The attempt needs 67 s more with 65 s left; the silent one may still be in time.
    check("shed-prime{max_clones=1}", cluster().job(race(95.0)), &[]);
}

#[test]
fn a_lone_attempt_that_will_miss_is_drawn_again_where_there_is_no_room_beside_it() {
    let waiting = || job("b").submitted(20.0).tasks(2).deadline_in(500.0);
    let crowded = || full(uneven()).job(waiting());
    check("shed-prime", crowded(), &["a: restart 7.0"]);
    let plan = decided("shed-prime", crowded());
    let kill = &report(&plan, "a").kills[0];
    assert_eq!((kill.kind, kill.survivor), (KillKind::Restart, None));
    let lost = full(uneven().deadline_in(35.0)).job(waiting());
    check("shed-prime", lost, &[]);
    let patient = full(uneven().with(|job| job.deadline = None)).job(waiting());
    check("shed-prime", patient, &[]);
}

/// The memory after ten slow attempts were replaced, on the same nodes, by attempts of this ratio.
fn followed_by(ln_ratio: f64) -> Memory {
    let mut redraws = Redraws::default();
    for _ in 0..10 {
        redraws.give_up(&tenant(), &node(0), Instant(0), 2.0);
        redraws.note(&tenant(), &node(0), ln_ratio);
    }
    let mut memory = Memory::default();
    memory.set_redraws(redraws);
    memory
}

/// The tenant of jobs that name none.
fn tenant() -> Tenant {
    job("a").build().tenant
}

fn node(number: usize) -> NodeName {
    world(0.0, 3, 1000).build().nodes[number].name.clone()
}

#[test]
fn nothing_is_drawn_again_where_slowness_is_seen_to_stay_with_the_place() {
    let policy = Policy {
        surge_max: 0,
        ..("shed-prime".parse().unwrap())
    };
    let waiting = || job("b").submitted(20.0).tasks(2).deadline_in(500.0);
    let crowded = full(uneven()).job(waiting()).build();
    let kills = |memory: &Memory| brief(&plan_of(&crowded, memory, &policy).0);
    assert_eq!(kills(&followed_by(0.0)), ["a: restart 7.0"]);
    assert_eq!(kills(&followed_by(2.0)), [""; 0]);
}

#[test]
fn what_follows_a_slow_attempt_that_was_given_up_is_learned_from() {
    let policy: Policy = "shed-prime".parse().unwrap();
    let usual = |node| attempt(0).on(node).progress(0.5, 29.0);
    let a = job("a").tasks(4).deadline_in(1000.0);
    let a = a
        .task(0, [usual(1)])
        .task(1, [usual(1)])
        .task(2, [usual(2)]);
    // Launched after it, and as slow.
    let slow = attempt(1).launched(10.0).on(0).progress(0.1, 29.0);
    let seen = cluster().job(a.task(3, [slow])).build();
    let kept_after = |given_up: i64| {
        let mut redraws = Redraws::default();
        redraws.give_up(&tenant(), &node(0), Instant(given_up), 1.5);
        let mut memory = Memory::default();
        memory.set_redraws(redraws);
        let (_, after) = plan_of(&seen, &memory, &policy);
        after.redraws().kept(&tenant())
    };
    let before = Redraws::default().kept(&tenant());
    assert!(kept_after(5000) > before);
    // An attempt that ran there at the same time is no evidence.
    assert!((kept_after(20_000) - before).abs() < 1e-12);
}

/// Two long tasks that have time, with checkpoints.
fn patient() -> JobBuilder {
    let long = |node| attempt(0).on(node).progress(0.3, 29.0).checkpoint(0.3);
    job("a")
        .tasks(2)
        .deadline_in(1000.0)
        .resumes()
        .task(0, [long(0)])
        .task(1, [long(1)])
        .with(|job| job.rules.preemption = Preemption::WhenCheckpointed)
}

fn urgent(deadline: f64) -> JobBuilder {
    job("b")
        .tasks(1)
        .submitted(25.0)
        .deadline_in(deadline)
        .ended_runs([20.0; 4])
}

#[test]
fn attempts_with_time_make_way_for_tasks_without_where_their_user_allows_it() {
    let both = |a: JobBuilder, b: JobBuilder| world(30.0, 2, 1000).job(a).job(b);
    let text = "shed-prime";
    check(text, both(patient(), urgent(35.0)), &["a: preempt 1.0"]);
    let never = patient().with(|job| job.rules.preemption = Preemption::Never);
    check(text, both(never, urgent(35.0)), &[]);
    // The job can wait for 70 s more, and is examined again after that.
    let plan = decided(text, both(patient(), urgent(120.0)));
    assert_eq!(brief(&plan), [""; 0]);
    assert!(plan.report.next_pass.is_some());
    // Equally urgent jobs are left alone, and so are those without a checkpoint.
    check(text, both(patient().deadline_in(105.0), urgent(35.0)), &[]);
    // More slack alone does not suffice: one of three tasks of 20 s takes the slot.
    let hardly = || patient().deadline_in(140.0);
    check(text, both(hardly(), urgent(35.0)), &[]);
    let bare = patient().with(|job| {
        for task in &mut job.tasks {
            task.attempts[0].checkpoint = None;
        }
    });
    check(text, both(bare, urgent(35.0)), &[]);
}

#[test]
fn attempts_make_way_for_a_pod_that_was_launched_beyond_capacity() {
    let both = |a: JobBuilder, b: JobBuilder| world(30.0, 2, 1000).job(a).job(b);
    let surging = || urgent(35.0).task(0, [attempt(0).pending()]);
    let text = "shed-prime";
    check(text, both(patient(), surging()), &["a: preempt 1.0"]);
    // One is enough.
    let making_way = patient().with(|job| {
        job.tasks[1].attempts[0].kill = Some(KillKind::Preempt);
        job.tasks[1].attempts[0].killed_at = Some(job.submitted);
    });
    check(text, both(making_way, surging()), &[]);
}

#[test]
fn nobody_makes_way_right_after_it_was_launched() {
    let both = world(30.0, 2, 1000).job(patient()).job(urgent(35.0));
    check("shed-prime", both.launch_overhead(15.0), &[]);
}

#[test]
fn a_hopeless_job_is_served_last() {
    let lost = job("a").tasks(1).deadline_in(31.0).ended_runs([60.0; 4]);
    let fine = job("b")
        .tasks(1)
        .submitted(5.0)
        .deadline_in(200.0)
        .ended_runs([60.0; 4]);
    let one_slot = world(30.0, 1, 1000).job(lost).job(fine);
    check("shed-prime", one_slot, &["b: original 0"]);
}

/// Three slots, taken by a task that will miss, its clone and another job's task.
fn with_a_clone(deadline: f64, usual: f64) -> World {
    let late = [
        attempt(0).on(0).progress(0.1, 29.0),
        attempt(1).launched(28.0).on(1).pending(),
    ];
    let a = job("a").tasks(1).deadline_in(deadline).task(0, late);
    let b = job("b").submitted(20.0).tasks(1);
    full(a.ended_runs([usual; 4])).job(b.task(0, [attempt(0).on(2)]))
}

#[test]
fn a_clone_makes_way_only_for_attempts_that_bring_more() {
    let waiting = |tasks: u32| {
        let job = job("c").submitted(25.0).tasks(tasks).deadline_in(100.0);
        job.ended_runs([20.0; 4])
    };
    // The clone saves a job within 50 s; each of ten tasks saves a tenth of one within 20 s.
    let useful = || with_a_clone(130.0, 50.0);
    check("shed-prime", useful().job(waiting(10)), &[]);
    // One task alone completes its job.
    let evicted = ["a: evict 0.1 for 0.0"];
    check("shed-prime", useful().job(waiting(1)), &evicted);
    // A job without a deadline can wait.
    let patient = waiting(1).with(|job| job.deadline = None);
    check("shed-prime", useful().job(patient), &[]);
    // A useless clone is evicted for any first attempt.
    let useless = with_a_clone(300.0, 400.0);
    check("shed-prime", useless.job(waiting(10)), &evicted);
}

#[test]
fn a_clone_that_brings_more_than_all_that_wait_comes_first() {
    // Silent, so that it is not restarted.
    let late = attempt(0).on(0);
    let a = || job("a").tasks(1).deadline_in(110.0).task(0, [late.clone()]);
    let a = || a().ended_runs([60.0, 70.0, 120.0, 200.0]);
    let waiting = |tasks| {
        let job = job("b").submitted(5.0).tasks(tasks).deadline_in(120.0);
        job.ended_runs([70.0; 4])
    };
    let two_slots = |b| world(30.0, 2, 1000).job(a()).job(b);
    let text = "shed-prime";
    // One slot is left: a clone saves a job of one task, an original saves a twentieth of one.
    check(text, two_slots(waiting(20)), &["a: clone 0"]);
    check(text, two_slots(waiting(1)), &["b: original 0"]);
}

#[test]
fn a_clone_is_expected_to_begin_where_the_original_will_be() {
    let late = attempt(0).on(0).progress(0.2, 29.0);
    let a = |resume| {
        let job = job("a").tasks(1).deadline_in(150.0).task(0, [late.clone()]);
        let job = job.ended_runs([100.0; 8]);
        job.with(|job| job.rules.resume = resume)
    };
    let pocd = |resume| {
        let plan = decided("shed-prime", cluster().job(a(resume)).launch_overhead(28.0));
        report(&plan, "a").pocd_after.unwrap()
    };
    // It starts 28 s later, at 0.4 instead of 0.2.
    let (at_launch, at_start) = (pocd(Resume::Checkpoint), pocd(Resume::Latest));
    assert!(at_start > at_launch, "{at_launch} {at_start}");
}

#[test]
fn a_job_that_has_shown_nothing_is_judged_by_what_the_others_show() {
    let known = |key: &str| {
        let half = attempt(0).launched(1.0).on(0).progress(0.5, 29.0);
        let job = job(key).submitted(1.0).tasks(1).deadline_in(100.0);
        job.task(0, [half]).ended_runs([40.0, 60.0, 60.0, 90.0])
    };
    let unknown = || {
        let launched = attempt(0).launched(29.5).on(1);
        let job = job("d").submitted(29.0).tasks(1).deadline_in(100.0);
        job.task(0, [launched])
    };
    let jobs = |others: &[&'static str], d| {
        let world = world(30.0, 3, 4000).launch_overhead(20.0).job(d);
        let known = others.iter().map(|key| known(key));
        known.fold(world, World::job)
    };
    let hedged = ["d: clone 0"];
    check("shed-prime", jobs(&["a", "b", "c"], unknown()), &hedged);
    check(
        "shed-prime{pool=off}",
        jobs(&["a", "b", "c"], unknown()),
        &[],
    );
    check("shed-prime", jobs(&["a", "b"], unknown()), &[]);
    // Assumed times are never reported for a job.
    let plan = decided("shed-prime", jobs(&["a", "b", "c"], unknown()));
    assert_eq!(report(&plan, "d").pocd_before, None);
    // There is time for a clone once the attempt has reported.
    let patient = jobs(&["a", "b", "c"], unknown().deadline_in(1000.0));
    check("shed-prime", patient, &[]);
}

#[test]
fn what_will_soon_report_is_waited_for() {
    let jobs = |launched| {
        let silent = attempt(0).launched(launched).on(1);
        let a = job("a").submitted(0.0).tasks(1).deadline_in(100.0);
        let a = a.task(0, [silent]).ended_runs([30.0, 40.0, 40.0, 60.0]);
        world(30.0, 3, 1000).launch_overhead(10.0).job(a)
    };
    let text = "shed-prime{max_clones=1}";
    check(text, jobs(29.0), &["a: clone 0"]);
    check(text, jobs(22.0), &[]);
    // It should have reported by now.
    check(text, jobs(-1.0), &["a: clone 0"]);
}

/// A memory of `count` jobs that each took this share of the cluster for 20 s. The last was submitted at 1000 s.
fn came(count: i64, width: f64) -> Memory {
    let mut arrivals = Arrivals::default();
    for at in 0..count {
        let submitted = Instant(1_000_000 - 25_000 * at);
        let arrival = Arrival {
            submitted,
            width,
            volume: width * 20.0,
            slack: 5.0,
            deadline: submitted,
            has_run: true,
            is_launched: false,
        };
        arrivals.note(&JobKey::from(&*format!("past-{at}")), arrival);
    }
    let mut memory = Memory::default();
    memory.set_arrivals(arrivals);
    memory
}

#[test]
fn room_is_kept_for_short_jobs_that_are_likely_to_come() {
    let launches = |text: &str, key: &str, run: f64, memory: &Memory| {
        let job = job(key).submitted(999.0).tasks(4).deadline_in(3.0 * run);
        let job = job.ended_runs([run; 4]);
        let snapshot = world(1000.0, 4, 1000).job(job).build();
        let (plan, after) = plan_of(&snapshot, memory, &text.parse().unwrap());
        assert_eq!(
            report(&plan, key).kept_back as usize,
            4 - plan.actions.len()
        );
        (plan.actions.len(), after)
    };
    // A job that holds its slots for long starts with one attempt.
    let (started, after) = launches("shed-prime", "long", 1000.0, &came(20, 0.5));
    assert_eq!(started, 1);
    let noted = after
        .arrivals()
        .iter()
        .find(|(key, _)| **key == JobKey::from("long"));
    let (_, noted) = noted.unwrap();
    assert_eq!((noted.submitted, noted.width), (Instant(999_000), 1.0));
    // A job as short as those need not wait, and one arrival gives no rate.
    assert_eq!(launches("shed-prime", "short", 20.0, &came(20, 0.5)).0, 4);
    assert_eq!(launches("shed-prime", "long", 1000.0, &came(1, 0.5)).0, 4);
    let off = "shed-prime{reserve=off}";
    assert_eq!(launches(off, "long", 1000.0, &came(20, 0.5)).0, 4);
}

/// Two jobs of one task each wait for one slot. The large one has to start within this many seconds; the small one
/// has a higher value density and can wait.
fn two_wait(within: f64) -> World {
    let large = job("large").tasks(1).deadline_in(30.0 + 100.0 + within);
    let small = job("small").submitted(5.0).tasks(1).deadline_in(400.0);
    let small = small.ended_runs([20.0; 4]);
    let large = large.ended_runs([100.0; 4]);
    world(30.0, 1, 1000).job(small).job(large)
}

#[test]
fn while_all_can_be_in_time_who_could_wait_least_comes_first() {
    let text = |timely| format!("shed-prime{{timely={timely},reserve=off}}");
    let (on, off) = (text("on"), text("off"));
    check(&on, two_wait(10.0), &["large: original 0"]);
    check(&off, two_wait(10.0), &["small: original 0"]);
    // If they cannot all be in time, the job of the lowest value density is left out.
    let third = job("third").submitted(1.0).tasks(1).deadline_in(95.0);
    let crowded = two_wait(10.0).job(third.ended_runs([50.0; 4]));
    check(&on, crowded, &["third: original 0"]);
}

#[test]
fn a_place_is_not_counted_on_though_its_silent_attempt_is_overdue() {
    let silent = || attempt(0).launched(0.0).on(0);
    let held = |attempt| {
        let overdue = job("overdue").tasks(1).deadline_in(2000.0);
        let overdue = overdue
            .ended_runs([5.0, 5.0, 10.0, 80.0])
            .task(0, [attempt]);
        let small = job("small").submitted(5.0).tasks(1).deadline_in(75.0);
        let large = job("large").tasks(1).deadline_in(30.0 + 100.0 + 10.0);
        let world = world(30.0, 2, 1000).job(overdue);
        let world = world.job(small.ended_runs([20.0; 4]));
        world.job(large.ended_runs([100.0; 4]))
    };
    let text = "shed-prime{reserve=off}";
    check(text, held(silent()), &["small: original 0"]);
    // An attempt that reports its near end is left alone.
    let ending = silent().progress(0.99, 29.5);
    check(text, held(ending), &["large: original 0"]);
}

#[test]
fn a_job_that_no_node_can_hold_keeps_nobody_waiting() {
    let mid = || {
        let job = job("mid").submitted(999.0).tasks(4).deadline_in(300.0);
        job.ended_runs([100.0; 4])
    };
    let gpu = job("gpu").submitted(990.0).tasks(4).deadline_in(300.0);
    let gpu = gpu.with(|job| job.demand.set("gpu", 1));
    for world in [
        world(1000.0, 4, 1000).job(mid()),
        world(1000.0, 4, 1000).job(mid()).job(gpu),
    ] {
        let policy = Policy {
            surge_max: 0,
            .."shed-prime".parse().unwrap()
        };
        let (plan, _) = plan_of(&world.build(), &came(20, 0.1), &policy);
        assert_eq!(plan.actions.len(), 2, "some room is kept: {plan:?}");
    }
}
