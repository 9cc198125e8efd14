//! Shed+ on live jobs: stragglers, clones, and the report's figures.

mod prunes;
mod slow;
mod triggers;
mod utility;

use super::speculators::policy;
use shed_core::estimate::pareto::{ln_miss, ln_miss_silent};
use shed_core::fixtures::{
    JobBuilder, World, at, attempt, brief, job, plan_of, report, resume_point, world,
};
use shed_core::ids::JobKey;
use shed_core::memory::Memory;
use shed_core::plan::{CloneReport, Launch, LaunchReason, Move, Plan, Refusal, RefusalReason};
use shed_core::policy::Policy;
use shed_core::snapshot::{KillKind, SpeculationMode};

/// Shed+ with its defaults.
fn shed_plus() -> Policy {
    policy("shed-plus")
}

/// At 30 s: three tasks will take 70 s, task 3 will take 280 s, and 160 s are allowed.
pub(super) fn straggling() -> JobBuilder {
    let regular = |node| attempt(0).on(node).progress(0.4, 29.0);
    job("a")
        .deadline_in(160.0)
        .task(0, [regular(0)])
        .task(1, [regular(1)])
        .task(2, [regular(2)])
        .task(3, [attempt(0).on(3).progress(0.1, 29.0)])
}

/// Slots for `slots` more attempts than the four of `straggling`, spread over four nodes. The last one is on node 3,
/// where a clone would join the straggler.
pub(super) fn cluster(slots: usize) -> World {
    let mut cluster = world(30.0, 4, 4000);
    for slot in 0..12 - slots {
        cluster = cluster.others((slot + 3) % 4, 1000);
    }
    cluster
}

pub(super) fn plan(world: World) -> Plan {
    plan_of(&world.build(), &Memory::default(), &shed_plus()).0
}

#[track_caller]
fn check(world: World, expected: &[&str]) {
    check_by(&shed_plus(), world, expected);
}

/// The plan for this cluster has exactly these actions.
#[track_caller]
fn check_by(policy: &Policy, world: World, expected: &[&str]) {
    let (plan, _) = plan_of(&world.build(), &Memory::default(), policy);
    assert_eq!(brief(&plan), expected);
}

/// No clone of the straggler is launched, for that reason.
#[track_caller]
fn check_refused(world: World, why: RefusalReason) {
    let plan = plan(world);
    assert_eq!(brief(&plan), [""; 0]);
    let task = shed_core::ids::TaskIndex(3);
    assert_eq!(report(&plan, "a").refusals, [Refusal { task, why }]);
}

fn launches(plan: &Plan) -> Vec<Launch> {
    let actions = plan.actions.iter().map(|planned| &planned.action);
    let launches = actions.filter_map(|action| match action {
        Move::Launch(launch) => Some(launch.clone()),
        _ => None,
    });
    launches.collect()
}

#[test]
fn a_straggler_gets_clones_and_the_others_none() {
    check(cluster(2).job(straggling()), &["a: clone 3", "a: clone 3"]);
    let unshrunk = policy("shed-plus");
    let world = cluster(2).job(straggling()).build();
    let (plan, _) = plan_of(&world, &Memory::default(), &unshrunk);
    let report = report(&plan, "a");
    assert!(report.optimized);
    assert_eq!(report.stragglers, [shed_core::ids::TaskIndex(3)]);
    assert_eq!(report.clones.len(), 2);
    assert!((report.clones[0].cost_slot_seconds - 122.5).abs() < 1e-6);
    // The gains in the plan add up to the figures of the report.
    let (before, after) = (report.pocd_before.unwrap(), report.pocd_after.unwrap());
    let gains: f64 = report.clones.iter().map(|clone| clone.pocd_gain).sum();
    assert!((before + gains - after).abs() < 1e-12);
    let reasons: Vec<LaunchReason> = launches(&plan).iter().map(|l| l.reason).collect();
    let LaunchReason::Straggler {
        pocd_before,
        pocd_after: between,
    } = reasons[0]
    else {
        panic!("{reasons:?}");
    };
    assert_eq!(pocd_before, before);
    let LaunchReason::Straggler { pocd_before, .. } = reasons[1] else {
        panic!("{reasons:?}");
    };
    assert_eq!(pocd_before, between);
}

#[test]
fn expected_ends_are_those_of_stragglers_and_clones_and_bounded() {
    let ends = |job: JobBuilder| {
        let plan = plan(world(30.0, 4, 4000).job(job));
        let ends = &report(&plan, "a").ends;
        let ids = ends.iter().map(|end| (end.task.0, end.attempt.0, end.at));
        ids.collect::<Vec<_>>()
    };
    let shown = ends(straggling());
    assert!(
        matches!(shown[..], [(3, 0, end)] if end > at(190.0)),
        "{shown:?}"
    );
    let regular = |node| attempt(0).on(node).progress(0.4, 29.0);
    let clone = attempt(1).on(1).progress(0.2, 29.0);
    let cloned = job("a")
        .deadline_in(160.0)
        .task(0, [regular(0), clone])
        .task(1, [regular(1)])
        .task(2, [regular(2)])
        .task(3, [attempt(0).on(3).progress(0.1, 29.0)]);
    let shown = ends(cloned);
    let ids: Vec<_> = shown
        .iter()
        .map(|(task, number, _)| (*task, *number))
        .collect();
    assert_eq!(ids, [(0, 0), (0, 1), (3, 0)]);
    let usual = |job: JobBuilder, task| job.task(task, [regular(task as usize % 3)]);
    let slow = |job: JobBuilder, task| job.task(task, [attempt(0).on(3).progress(0.1, 29.0)]);
    let many = (84..104).fold((4..84).fold(straggling().tasks(104), usual), slow);
    assert_eq!(ends(many).len(), shed_core::plan::ENDS_MAX);
}

#[test]
fn the_policy_and_the_job_bound_the_clones_of_a_task() {
    check(cluster(12).job(straggling()), &["a: clone 3"; 5]);
    check(
        cluster(12).job(straggling().max_clones(2)),
        &["a: clone 3"; 2],
    );
    let one = policy("shed-plus{max_clones=1}");
    check_by(&one, cluster(12).job(straggling()), &["a: clone 3"]);
}

#[test]
fn a_job_gets_no_clone_beyond_its_target_pocd() {
    let of = |target| {
        let world = cluster(12).job(straggling().target(target)).build();
        let plan = plan_of(&world, &Memory::default(), &shed_plus()).0;
        let pocd = report(&plan, "a").pocd_after.unwrap();
        (
            brief(&plan).len(),
            pocd,
            report(&plan, "a").refusals.clone(),
        )
    };
    let (five, most, refusals) = of(1.0);
    assert_eq!((five, refusals.len()), (5, 0));
    let mut before = 0;
    for target in [0.01, 0.5, 0.8, 0.95, 0.98] {
        let (clones, pocd, refusals) = of(target);
        assert!(clones >= before && clones <= 5, "{target}: {clones}");
        assert!(pocd >= target || pocd == most, "{target}: {pocd}");
        let task = shed_core::ids::TaskIndex(3);
        let why = RefusalReason::Target;
        assert_eq!(
            refusals.contains(&Refusal { task, why }),
            clones == 0,
            "{target}"
        );
        before = clones;
    }
    assert_eq!(of(0.01).0, 0);
    assert!(before > 1);
}

/// Winners took about 20 s, one attempt has been silent for 69 s.
fn silent() -> JobBuilder {
    job("a")
        .silent()
        .tasks(9)
        .done(0..8)
        .deadline_in(110.0)
        .ended_runs([20.0, 20.5, 21.0, 21.5, 22.0, 23.0, 25.0, 40.0])
        .task(8, [attempt(0).on(0)])
}

#[test]
fn a_silent_attempt_is_no_straggler_and_lowers_the_pocd() {
    let late = world(70.0, 2, 1000).job(silent());
    check(late.clone(), &[]);
    let before = |world| report(&plan(world), "a").pocd_before.unwrap();
    let (tight, wide) = (
        before(late),
        before(world(70.0, 2, 1000).job(silent().deadline_in(500.0))),
    );
    assert!(tight > 0.2 && tight < wide && wide < 1.0, "{tight} {wide}");
}

#[test]
fn without_any_known_time_nothing_is_guessed() {
    let unknown = silent().with(|job| job.ended_runs.clear());
    let plan = plan(world(70.0, 2, 1000).job(unknown));
    assert_eq!(brief(&plan), [""; 0]);
    let report = report(&plan, "a");
    assert!(report.optimized && report.stragglers.is_empty());
    assert_eq!(
        (report.pocd_before, report.estimated_completion),
        (None, None)
    );
}

#[test]
fn a_clone_resumes_at_the_best_checkpoint() {
    let with_point = straggling()
        .resumes()
        .with(|job| job.tasks[3].resume_point = Some(resume_point(0.08)));
    check(cluster(1).job(with_point), &["a: clone 3 from 0.08"]);
}

#[test]
fn a_clone_gains_by_theorem_2_wherever_it_begins() {
    let gain = |builder: JobBuilder| {
        let plan = plan(cluster(1).job(builder));
        report(&plan, "a").clones[0].clone()
    };
    let resumed = straggling()
        .resumes()
        .with(|job| job.tasks[3].resume_point = Some(resume_point(0.09)));
    let (over, resumed) = (gain(straggling()), gain(resumed));
    assert_eq!(resumed.pocd_gain, over.pocd_gain);
    assert!(resumed.cost_slot_seconds < over.cost_slot_seconds);
}

#[test]
fn an_observing_job_reports_what_it_would_do_and_does_nothing() {
    let slow_clone = attempt(1).launched(5.0).on(2).progress(0.05, 29.0);
    let observing = straggling()
        .speculation(SpeculationMode::Observe)
        .task(4, [attempt(0).on(1).progress(0.4, 29.0), slow_clone])
        .tasks(5);
    let plan = plan(cluster(3).job(observing));
    assert_eq!(brief(&plan), [""; 0]);
    let report = report(&plan, "a");
    assert_eq!(report.clones.len(), 1);
    assert!(report.clones[0].pocd_gain > 0.01);
    assert_eq!(report.pocd_after, report.pocd_before);
    assert_eq!(report.refusals[0].why, RefusalReason::Observe);
}

#[test]
fn observing_jobs_take_nothing_from_others() {
    let observing = straggling()
        .speculation(SpeculationMode::Observe)
        .with(|job| {
            job.key = JobKey::from("0");
            job.deadline = Some(at(150.0));
        });
    let both = world(30.0, 4, 4000)
        .others(0, 1000)
        .others(1, 2000)
        .others(2, 2000)
        .others(3, 2000)
        .job(observing)
        .job(straggling());
    check(both, &["a: clone 3"]);
}

#[test]
fn a_job_without_speculation_still_has_a_pocd() {
    let plan = plan(cluster(2).job(straggling().speculation(SpeculationMode::Disabled)));
    assert_eq!(brief(&plan), [""; 0]);
    let report = report(&plan, "a");
    assert!(!report.optimized);
    assert!(
        report
            .pocd_before
            .is_some_and(|pocd| pocd > 0.0 && pocd < 1.0)
    );
    assert_eq!(report.pocd_after, report.pocd_before);
}

#[test]
fn a_straggler_that_gets_no_clone_is_reported_why() {
    let with = |change: fn(&mut shed_core::snapshot::JobSnapshot)| {
        cluster(2).job(straggling().with(change))
    };
    check_refused(
        cluster(2).job(straggling().not_idempotent()),
        RefusalReason::NotIdempotent,
    );
    check_refused(
        cluster(2).job(straggling().max_clones(0)),
        RefusalReason::Maximum,
    );
    check_refused(
        with(|job| job.tasks[3].clone_failures = 2),
        RefusalReason::CloneFailures,
    );
    check_refused(cluster(0).job(straggling()), RefusalReason::Capacity);
}

#[test]
fn a_clone_that_no_node_can_take_is_refused_for_that() {
    let halves = world(30.0, 4, 1500).job(straggling());
    check_refused(halves, RefusalReason::NoNode);
}

#[test]
fn a_job_past_its_deadline_gets_no_clones() {
    let plan = plan(cluster(2).job(straggling().deadline_in(30.0)));
    assert_eq!(brief(&plan), [""; 0]);
    let report = report(&plan, "a");
    assert_eq!(report.pocd_before, Some(0.0));
    assert_eq!(report.stragglers.len(), 4);
    assert!(
        report
            .refusals
            .iter()
            .all(|refusal| refusal.why == RefusalReason::Hopeless)
    );
}

#[test]
fn clones_wait_for_no_launches_of_a_job_that_is_held_off() {
    let held = straggling().with(|job| job.launch_not_before = Some(at(31.0)));
    check(cluster(2).job(held), &[]);
}

#[test]
fn a_waiting_first_attempt_gets_the_capacity_before_any_clone() {
    let cluster = cluster(2).job(straggling());
    let waiting = job("b").tasks(2);
    let expected = ["b: original 0", "b: original 1"];
    check(cluster.job(waiting), &expected);
}

#[test]
fn no_clone_takes_the_capacity_that_a_first_attempt_waits_for() {
    // One cpu of node 0 is free; another comes free there when a killed attempt is gone.
    let dying = attempt(1).on(0).killed(KillKind::Prune, 29.0);
    let blocked = straggling()
        .task(4, [attempt(0).on(0).progress(0.4, 29.0), dying])
        .tasks(5);
    let full = world(30.0, 4, 4000)
        .others(1, 3000)
        .others(2, 3000)
        .others(3, 3000);
    let waiting = job("b").tasks(1).cpu(2000);
    check(full.clone().job(blocked.clone()).job(waiting), &[]);
    check(full.job(blocked), &["a: clone 3"]);
}

#[test]
fn a_prediction_that_time_has_refuted_is_replaced() {
    // At 29 s it predicted its end for 71 s; at 90 s it has still not ended.
    let plan = plan(world(90.0, 4, 4000).job(straggling()));
    assert_eq!(report(&plan, "a").stragglers.len(), 4);
}

#[test]
fn the_pocd_is_the_formulas() {
    let two = job("a")
        .tasks(3)
        .done([2])
        .deadline_in(100.0)
        .ended_runs([40.0])
        .task(0, [attempt(0).on(0).progress(0.2, 29.0)])
        .task(1, [attempt(0).on(1).pending().launched(29.0)]);
    let plan = plan(cluster(4).launch_overhead(4.0).job(two));
    // Task 0 takes 140 s, and 29 s of it are over; the least observed time is 40 s.
    let total = 140.0;
    let running = ln_miss(29.0 / total, 40.0, 70.0, total / (total - 40.0));
    // The shape has no other evidence: one end, which set the least time, and young attempts.
    let shape = 8.0 / (8.0 / 2.0);
    let starting = ln_miss_silent(-3.0, 40.0, 70.0, shape);
    let expected = (1.0 - libm::exp(running)) * (1.0 - libm::exp(starting));
    let before = report(&plan, "a").pocd_before.unwrap();
    assert!((before - expected).abs() < 1e-12, "{before} {expected}");
}

#[test]
fn tasks_in_later_waves_lower_the_pocd_and_delay_the_end() {
    let of = |parallelism| {
        let runs = [20.0, 21.0, 22.0, 30.0];
        let waves = job("a")
            .tasks(6)
            .parallelism(parallelism)
            .deadline_in(100.0);
        let plan = plan(world(0.0, 4, 4000).job(waves.ended_runs(runs)));
        let report = report(&plan, "a").clone();
        (
            report.pocd_before.unwrap(),
            report.estimated_completion.unwrap(),
        )
    };
    let (all, two, one) = (of(6), of(2), of(1));
    assert!(all.0 > two.0 && two.0 > one.0, "{all:?} {two:?} {one:?}");
    // Mean run 23.25 s, launch 3 s; in one, three and six waves.
    assert_eq!(all.1, at(26.25));
    assert_eq!(two.1, at(72.75));
    assert_eq!(one.1, at(142.5));
    assert_eq!(one.0, 0.0);
}

#[test]
fn a_job_that_is_done_is_sure_and_one_with_a_failed_task_lost() {
    let pocd = |builder: JobBuilder| {
        let plan = plan(cluster(4).job(builder));
        report(&plan, "a").pocd_before
    };
    assert_eq!(pocd(job("a").done(0..4)), Some(1.0));
    assert_eq!(
        pocd(job("a").done(0..3).task(3, [attempt(0).succeeded(29.0)])),
        Some(1.0)
    );
    assert_eq!(pocd(job("a").done(0..3).failed([3])), Some(0.0));
    assert_eq!(
        pocd(job("a").with(|job| job.deadline = None).ended_runs([9.0])),
        None
    );
}

#[test]
fn hostile_progress_does_no_harm() {
    for (value, start) in [
        (7.0, 0.0),
        (-3.0, 0.0),
        (f64::NAN, 0.0),
        (0.5, 1.0),
        (0.5, f64::NAN),
    ] {
        let strange = attempt(0).on(0).resumed_at(start).progress(value, 29.0);
        let plan = plan(cluster(4).job(straggling().tasks(5).task(4, [strange])));
        let pocd = report(&plan, "a").pocd_before;
        assert!(
            pocd.is_none_or(|pocd| (0.0..=1.0).contains(&pocd)),
            "{pocd:?}"
        );
    }
}

#[test]
fn pocd_does_not_jump_while_successes_wait_to_be_recorded() {
    let slow = || attempt(0).on(3).progress(0.1, 29.0);
    let rest = |job: JobBuilder| {
        let job = job.tasks(6).deadline_in(160.0);
        job.task(4, [slow()]).task(5, [slow()])
    };
    let unrecorded = (0..4).fold(rest(job("a")), |job, task| {
        job.task(task, [attempt(0).on(0).launched(0.0).succeeded(25.0)])
    });
    let recorded = rest(job("a")).done(0..4).ended_runs([24.0; 4]);
    let pocd = |job: JobBuilder| {
        let plan = plan(cluster(12).job(job));
        report(&plan, "a").pocd_before
    };
    assert_eq!(pocd(unrecorded), pocd(recorded));
}

#[test]
fn its_parameters_are_read_back_and_its_wrong_ones_refused() {
    let text = "shed-plus{xi=0.25,theta=0.01,theta_floor=off,joint=off,keep=end,max_clones=3,utility=alpha,alpha=0.5,\
                launch_overhead=1.5,min_interval=2}";
    assert_eq!(policy(text).speculation.to_string(), text);
    for (text, fault) in [
        ("shed-plus{xi=2}", "xi=2 is not from 0 to 1"),
        ("shed-plus{utility=best}", "unknown utility `best`"),
        ("shed-plus{alpha=inf}", "alpha=inf is not from 0 to 100"),
        ("shed-plus{alpha=NaN}", "alpha=NaN is not from 0 to 100"),
    ] {
        let message = shed_papers::registry().speculation(text).unwrap_err();
        assert!(message.to_string().contains(fault), "{message}");
    }
}

#[test]
fn a_policy_without_a_price_reports_no_trade() {
    let plan = plan(cluster(2).job(straggling()));
    let clone = &report(&plan, "a").clones[0];
    assert_eq!(clone.trade, None);
    // Reports of before have none either.
    let text = serde_json::to_string(clone).unwrap();
    assert!(!text.contains("trade"), "{text}");
    assert_eq!(&serde_json::from_str::<CloneReport>(&text).unwrap(), clone);
}
